//! Reading a manifest from a file or a pipe, bounded.

use std::io::{IsTerminal as _, Read, StdinLock};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use contract::{Error, Kind, Report, State, Swr, Verdict, exit, home, message, origin};
use files::open::{self, Refusal};
use rustix::process::geteuid;

use crate::manifest::{LIMIT, Manifest};

/// Of a box that has no manifest: what is damaged already must not become the truth.
const GONE: &str = "bring back a copy of .swr if there is one; else swr autopilot makes one, and takes what is here now for healthy";
const NAMED: &str = "--manifest takes the file of a manifest; without it this box's own is read";

/// The exact bytes of a manifest file; missing is `bad`, 4.
pub fn file(path: &Path) -> Result<Vec<u8>, Error> {
    let name = path.as_os_str();
    let is_own = home::swr_home().is_ok_and(|home| name == home.join("manifest.jsonl").as_os_str());
    let (from, meta) = open::regular(path).map_err(|refusal| match refusal {
        Refusal::Io(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            Error::new(exit::swr::MANIFEST, format!("there is no manifest at {}", message::quoted(name)))
                .hint(if is_own { GONE } else { NAMED })
        }
        Refusal::Io(cause) => {
            let hint = way_in(path, &cause).unwrap_or_else(|| "look at the disk and the path first".into());
            Error::io("read", name, &cause).hint(hint)
        }
        Refusal::NotAFile(what) => {
            let anew =
                "move it aside, and bring back a copy of the manifest or swr autopilot makes a new one";
            Error::new(exit::IO, format!("cannot read {}: it is {}", message::quoted(name), what.words()))
                .hint(if is_own { anew } else { NAMED })
        }
    })?;
    stream(from, meta.len()).map_err(|cause| Error::io("read", name, &cause))
}

/// What could not be written, and what makes it so that it can be.
pub fn unwritable(path: &Path, cause: &std::io::Error) -> Error {
    let hint = match cause.kind() {
        std::io::ErrorKind::ReadOnlyFilesystem => Some("mount it writable, then run this again".into()),
        _ => way_in(path, cause),
    };
    Error::io("write", path.as_os_str(), cause)
        .hint(hint.unwrap_or_else(|| "make room on the disk, then run this again".into()))
}

/// What opens a file that could not be opened, or made, for want of permission: itself, or the first directory on the way
/// that this user gets no further in; `None` for another cause.
pub fn way_in(path: &Path, cause: &std::io::Error) -> Option<String> {
    if cause.kind() != std::io::ErrorKind::PermissionDenied {
        return None;
    }
    // What can be seen at all lies in directories that are open.
    let (mut what, mut mode) = (path, "600");
    let owner = loop {
        match (what.metadata(), what.parent()) {
            (Ok(meta), _) => break Some(meta.uid()),
            (Err(_), None) => break None,
            (Err(_), Some(above)) => (what, mode) = (above, "700"),
        }
    };
    let front =
        if owner == Some(geteuid().as_raw()) { "" } else { "run this as the owner, or let the owner " };
    Some(format!("{front}chmod {mode} {}", message::quoted(what.as_os_str())))
}

/// The manifest in these bytes; for tools that speak in verdicts: one that is missing or unusable is a `bad` line.
pub fn manifest(bytes: Result<Vec<u8>, Error>, report: &mut Report<Swr>) -> Result<Manifest, Error> {
    let parsed = bytes.and_then(|bytes| Manifest::parse_or_bad(&bytes));
    parsed.or_else(|unusable| Err(bad_line(unusable, "manifest", report)?))
}

/// Says an error of number 4 as a `bad` line; what is left of it is number and hint. Others stay as they are.
pub fn bad_line(error: Error, subject: &str, report: &mut Report<Swr>) -> Result<Error, Error> {
    if error.code != exit::swr::MANIFEST {
        return Ok(error);
    }
    report.say(&Verdict::new(State::Bad, Kind::Manifest, subject, error.message))?;
    Ok(Error { message: String::new(), ..error })
}

/// The exact bytes of standard input.
pub fn stdin() -> Result<Vec<u8>, Error> {
    let way = "swr add, swr escrow and swr sign read the manifest by themselves; else give it with <FILE";
    stream(no_terminal("a manifest", way)?, 0)
        .map_err(|cause| Error::io("read", "standard input".as_ref(), &cause))
}

/// Standard input, which must be open and no terminal: nobody types `what`, and waiting for it would have no end.
pub(crate) fn no_terminal(what: &str, hint: &str) -> Result<StdinLock<'static>, Error> {
    if origin::was_closed(0) {
        return Err(Error::new(exit::IO, "cannot read standard input: it is closed").hint(hint));
    }
    let input = std::io::stdin().lock();
    if input.is_terminal() {
        return Err(Error::usage(format!("standard input is a terminal, not {what}")).hint(hint));
    }
    Ok(input)
}

/// At most one byte more than a manifest may have: the parser then says that it is too large.
fn stream(from: impl Read, likely: u64) -> std::io::Result<Vec<u8>> {
    let most = LIMIT as u64 + 1;
    // A byte more, or the end would be looked for in a larger buffer.
    let mut bytes = Vec::with_capacity(usize::try_from(likely.min(most)).unwrap_or(0) + 1);
    from.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
