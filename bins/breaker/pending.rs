//! What a shell recorded while this program was missing: one line each, seconds since 1970.
//!
//! `date +%s >>"$SELFHEAL_HOME/state/breaker/scout.pending"` is all a shell has to do after a failure, and
//! `echo "$(date +%s) ok"` after a success. A line that is neither counts as a failure as of the file's last
//! change: what cannot be read must not make failing attempts free.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use contract::clock::Stamp;

use crate::content::{self, Content};
use crate::machine::{self, Breaker, Change, Rules};

/// Bytes that are read: thousands of lines, of which the last few matter.
const LIMIT: u64 = 64 << 10;

/// A file of pending lines.
pub(crate) struct Pending {
    events: Vec<(Stamp, bool)>,
    /// Which file this is.
    pub(crate) print: String,
}

/// Reads a file of pending lines; `None` when there is none or it is no regular file. No event lies in the
/// future.
pub(crate) fn read(path: &Path, now: &Stamp) -> io::Result<Option<Pending>> {
    let Content::File(bytes, meta) = content::read(path, LIMIT)? else { return Ok(None) };
    let changed = u64::try_from(meta.mtime()).unwrap_or(0);
    let event = |line: &[u8]| {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
        let wall = words.next().and_then(|w| std::str::from_utf8(w).ok()?.parse().ok());
        let failed = wall.is_none() || words.next() != Some(b"ok");
        let age = now.wall.saturating_sub(wall.unwrap_or(changed)).saturating_mul(1000);
        (machine::ago(now, age), failed)
    };
    let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let events = lines.map(event).collect();
    let print = format!("{}-{}-{}.{}", meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec());
    Ok(Some(Pending { events, print }))
}

impl Pending {
    /// Applies every event in its order; the last opening or closing is what is told of it.
    pub(crate) fn apply(&self, breaker: &mut Breaker, rules: Rules) -> Change {
        let mut told = Change::Nothing;
        for (at, failed) in &self.events {
            let change = if *failed { breaker.fail(at, rules) } else { breaker.succeed() };
            if matches!(change, Change::Opened | Change::Closed) {
                told = change;
            }
        }
        told
    }
}
