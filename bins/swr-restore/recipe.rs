//! One recipe: shell text, bounded, without a terminal, its output in a log of its own.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use child::{Cause, Run, Sink};
use contract::message::note;
use contract::{Error, Fix};
use files::atomic::{fresh, make_dir};
use workspace::Entry;

/// Seconds a recipe may take when its entry does not say.
const LIMIT_S: u64 = 600;
/// Bytes of output kept.
const LOG: usize = 1 << 20;

/// How a recipe ended.
pub(crate) enum End {
    /// With 0.
    Well,
    /// Otherwise, in words.
    Badly(String),
    /// This process was told to stop.
    Stopped(i32),
}

/// Runs an entry's recipe in the workspace root, or in the home for an entry of the home.
pub(crate) fn run(fix: &Fix, entry: &Entry, recipe: &str, dir: &Path, home: &Path) -> End {
    let log = Rc::new(RefCell::new(Log::create(fix, home, &entry.id)));
    let each = |log: &Rc<RefCell<Log>>| {
        let log = Rc::clone(log);
        Sink::Each(Box::new(move |piece| log.borrow_mut().take(piece)))
    };
    let limit = entry.timeout_s.unwrap_or(LIMIT_S);
    let outcome = Run::new("/bin/sh")
        .arg("-c")
        .arg(recipe)
        .quiet_env()
        .env("SELFHEAL_MODE", "fix")
        .env_remove("SWR_IDENTITY")
        .current_dir(dir.to_owned())
        .stdout(each(&log))
        .stderr(each(&log))
        .limit(Duration::from_secs(limit))
        .run();
    let last = log.borrow().last_line();
    let with_last = |text: String| if last.is_empty() { text } else { format!("{text}: {last}") };
    match outcome.cause {
        Cause::Exited(0) => End::Well,
        Cause::Exited(status) => End::Badly(with_last(format!("recipe ended {status}"))),
        Cause::Signalled(signal) => End::Badly(with_last(format!("recipe died of signal {signal}"))),
        Cause::Expired => End::Badly(with_last(format!("recipe not done after {limit} s"))),
        Cause::NotStarted(_) => End::Badly("/bin/sh cannot be run".into()),
        Cause::Interrupted(signal) => End::Stopped(signal),
        other => End::Badly(format!("recipe {}", other.word())),
    }
}

/// Where the output of an entry's recipe is.
pub(crate) fn log(home: &Path, id: &str) -> PathBuf {
    home.join("log").join(format!("{id}.log"))
}

/// The output of one recipe, the first [`LOG`] bytes of it.
struct Log {
    file: Option<File>,
    left: usize,
    tail: Vec<u8>,
}

impl Log {
    /// A log that cannot be made or written does not stop a repair.
    fn create(fix: &Fix, home: &Path, id: &str) -> Self {
        let path = log(home, id);
        let file = make_dir(fix, &home.join("log")).and_then(|()| fresh(fix, &path));
        if let Err(cause) = &file {
            note("swr-restore", &Error::io("write", path.as_os_str(), cause).message);
        }
        Self { file: file.ok(), left: LOG, tail: Vec::new() }
    }

    fn take(&mut self, piece: &[u8]) {
        let kept = piece.len().min(self.left);
        self.left -= kept;
        if let Some(file) = &mut self.file {
            let _ = file.write_all(&piece[..kept]);
        }
        self.tail.extend_from_slice(piece);
        let over = self.tail.len().saturating_sub(400);
        self.tail.drain(..over);
    }

    fn last_line(&self) -> String {
        let text = String::from_utf8_lossy(&self.tail);
        text.lines().rev().map(str::trim).find(|l| !l.is_empty()).unwrap_or("").to_owned()
    }
}
