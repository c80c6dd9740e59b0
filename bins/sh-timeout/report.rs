//! `--report FILE`: one line per key, written by rename, read by `while IFS='<TAB>' read -r key value`.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use child::Outcome;
use contract::{Error, mode};
use files::atomic::{self, Pending};

/// A report that is begun and waits for its content.
pub(crate) struct Report {
    path: PathBuf,
    pending: Pending,
}

impl Report {
    /// Makes sure that it can be written. Whatever is no regular file (a device, a link to one) is not replaced.
    pub(crate) fn begin(path: &Path) -> Result<Self, Error> {
        let begun = match path.symlink_metadata() {
            Ok(meta) if !meta.is_file() => Err(io::Error::other("it is there and is not a regular file")),
            _ => atomic::begin(&mode::by_name(), path),
        };
        match begun {
            Ok(pending) => Ok(Self { path: path.to_owned(), pending }),
            Err(cause) => Err(Error::io("write", path.as_os_str(), &cause)
                .hint("--report takes a file in a directory that can be written; nothing was started")),
        }
    }

    /// Gives it its content and its name. `counted`: the output went through us.
    pub(crate) fn write(mut self, outcome: &Outcome, counted: bool) -> Result<(), Error> {
        let text = text(outcome, counted);
        let written = self.pending.write_all(text.as_bytes()).and_then(|()| self.pending.commit(0o600));
        written.map_err(|cause| {
            let status = outcome.status.map_or("no status".to_owned(), |s| format!("status {s}"));
            Error::io("write", self.path.as_os_str(), &cause)
                .hint(format!("the command was run and ended with {status}"))
        })
    }
}

fn text(outcome: &Outcome, counted: bool) -> String {
    let or_none = |value: Option<u64>| value.map_or("-".to_owned(), |v| v.to_string());
    let mut text = String::new();
    let mut line = |key: &str, value: String| {
        let _ = writeln!(text, "{key}\t{value}");
    };
    line("cause", outcome.cause.word().to_owned());
    line("status", or_none(outcome.status.map(u64::from)));
    for (key, time) in [("wall", outcome.wall), ("user", outcome.user), ("sys", outcome.sys)] {
        line(key, format!("{}.{:06}", time.as_secs(), time.subsec_micros()));
    }
    line("peak_rss", or_none(outcome.status.map(|_| outcome.peak_rss)));
    line("bytes", or_none(counted.then_some(outcome.bytes)));
    text
}
