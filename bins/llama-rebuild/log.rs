//! The build log: bounded on the disk, watched for progress and for the cause of a failure.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use child::Sink;
use contract::{Fix, State, message};

use crate::halt::{Halt, io, say};

/// A whole build writes 1.2 MB; a loop that prints for ever ends here.
const LIMIT: usize = 8 << 20;

/// A line is looked at this far.
const LINE: usize = 4 << 10;

/// The log of one rebuild; clones write to the same.
#[derive(Clone)]
pub(crate) struct Log {
    inner: Rc<RefCell<Inner>>,
    path: PathBuf,
}

struct Inner {
    file: File,
    left: usize,
    line: Vec<u8>,
    seen: Seen,
    said: u32,
}

/// What the output told.
#[derive(Default)]
struct Seen {
    disk_full: bool,
    out_of_memory: bool,
    compiler_broken: bool,
    /// The first line that names an error.
    error: Option<String>,
    /// The last line that is not empty.
    last: String,
}

impl Log {
    /// Empties or makes the file.
    pub(crate) fn open(fix: &Fix, path: &Path) -> Result<Self, Halt> {
        let file = files::atomic::fresh(fix, path).map_err(io("write", path))?;
        let inner = Inner { file, left: LIMIT, line: Vec::new(), seen: Seen::default(), said: 0 };
        Ok(Self { inner: Rc::new(RefCell::new(inner)), path: path.to_owned() })
    }

    /// A sink for a stream of a command.
    pub(crate) fn sink(&self) -> Sink {
        let inner = Rc::clone(&self.inner);
        Sink::Each(Box::new(move |bytes| inner.borrow_mut().take(bytes)))
    }

    /// Forgets what was seen, before the next command.
    pub(crate) fn begin(&self) {
        let mut inner = self.inner.borrow_mut();
        inner.seen = Seen::default();
        inner.line.clear();
    }

    /// Why a command failed, as a verdict that points to the log; `what` is what failed, `configuring`.
    pub(crate) fn failure(&self, what: &str) -> Halt {
        let mut inner = self.inner.borrow_mut();
        inner.end_of_line();
        let seen = &inner.seen;
        let log = format!("less {}", message::quoted(self.path.as_os_str()));
        if seen.disk_full {
            return Halt::new(State::Failed, format!("{what} failed: the disk is full"))
                .hint("df -h; free about 500 MB, then run this again: what is compiled is kept");
        }
        if seen.out_of_memory {
            return Halt::new(State::Failed, format!("{what} failed: the compiler ran out of memory"))
                .hint("llama-rebuild --jobs 1");
        }
        if seen.compiler_broken {
            return Halt::new(State::Failed, format!("{what} failed: the compiler does not work")).hint(log);
        }
        let said = seen.error.as_deref().unwrap_or(&seen.last);
        let said = if said.is_empty() { "it said nothing" } else { said };
        Halt::new(State::Failed, format!("{what} failed: {said}")).hint(log)
    }
}

impl Inner {
    fn take(&mut self, bytes: &[u8]) {
        let kept = &bytes[..bytes.len().min(self.left)];
        self.left -= kept.len();
        if let Err(cause) = self.file.write_all(kept) {
            // A log that cannot be written stops nothing, but tells why the compiler will fail too.
            self.left = 0;
            self.seen.disk_full |= cause.kind() == std::io::ErrorKind::StorageFull;
        }
        if self.left == 0 && !kept.is_empty() {
            let _ = self.file.write_all(b"\n(the log is cut here)\n");
        }
        for byte in bytes {
            if *byte == b'\n' {
                self.end_of_line();
            } else if self.line.len() < LINE {
                self.line.push(*byte);
            }
        }
    }

    fn end_of_line(&mut self) {
        let text = String::from_utf8_lossy(&self.line).trim().to_owned();
        self.line.clear();
        if text.is_empty() {
            return;
        }
        if let Some(percent) = percent(&text)
            && percent >= self.said + 10
        {
            self.said = percent / 10 * 10;
            say(&format!("compiled {} %", self.said));
        }
        self.seen.look(&text);
        self.seen.last = message::one_line(&text);
    }
}

impl Seen {
    fn look(&mut self, text: &str) {
        let has = |words: &[&str]| words.iter().any(|w| text.contains(w));
        self.disk_full |= has(&["No space left on device", "Disk quota exceeded"]);
        self.out_of_memory |= has(&[
            "Killed signal terminated program",
            "virtual memory exhausted",
            "out of memory allocating",
            "LLVM ERROR: out of memory",
            "ld terminated with signal 9",
        ]);
        self.compiler_broken |=
            has(&["is not able to compile a simple test program", "COMPILER could be found"]);
        if self.error.is_none()
            && has(&["error: ", "Error: ", "ERROR: ", "fatal: ", "undefined reference", "*** "])
        {
            self.error = Some(message::one_line(text));
        }
    }
}

/// The per cent that make (`[ 12%]`) or ninja (`[12/345]`) puts before a line.
fn percent(line: &str) -> Option<u32> {
    let inside = line.strip_prefix('[')?.split_once(']')?.0.trim();
    if let Some(number) = inside.strip_suffix('%') {
        return number.trim().parse().ok().filter(|p| *p <= 100);
    }
    let (done, all) = inside.split_once('/')?;
    let (done, all): (u64, u64) = (done.parse().ok()?, all.parse().ok()?);
    u32::try_from(done.checked_mul(100)?.checked_div(all)?).ok().filter(|p| *p <= 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_of_make_and_of_ninja_is_read() {
        for (line, want) in [
            ("[  2%] Building C object x", Some(2)),
            ("[100%] Built target x", Some(100)),
            ("[12/345] Building", Some(3)),
            ("[345/345] Linking", Some(100)),
            ("[1/0] x", None),
            ("[101%] x", None),
            ("[abc] x", None),
            ("[  2% Building", None),
            ("no bracket", None),
        ] {
            assert_eq!(percent(line), want, "{line}");
        }
    }
}
