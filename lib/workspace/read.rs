//! Reading a manifest from a file or a pipe, bounded.

use std::io::Read;
use std::path::Path;

use contract::{Error, Kind, Report, State, Swr, Verdict, exit, message};
use files::open::{self, Refusal};

use crate::manifest::{LIMIT, Manifest};

/// The exact bytes of a manifest file; missing is `bad`, 4.
pub fn file(path: &Path) -> Result<Vec<u8>, Error> {
    let name = path.as_os_str();
    let (from, meta) = open::regular(path).map_err(|refusal| match refusal {
        Refusal::Io(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            Error::new(exit::swr::MANIFEST, format!("there is no manifest at {}", message::quoted(name)))
                .hint("swr autopilot makes one of the healthy workspace")
        }
        Refusal::Io(cause) => {
            let denied = cause.kind() == std::io::ErrorKind::PermissionDenied;
            let open = format!("run this as the owner, or let the owner chmod 600 {}", message::quoted(name));
            let hint = if denied { open } else { "look at the disk and the path first".into() };
            Error::io("read", name, &cause).hint(hint)
        }
        Refusal::NotAFile(what) => {
            Error::new(exit::IO, format!("cannot read {}: it is {}", message::quoted(name), what.words()))
                .hint("move it aside, and bring back a copy of the manifest or swr autopilot makes a new one")
        }
    })?;
    stream(from, meta.len()).map_err(|cause| Error::io("read", name, &cause))
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
    stream(std::io::stdin().lock(), 0).map_err(|cause| Error::io("read", "standard input".as_ref(), &cause))
}

/// At most one byte more than a manifest may have: the parser then says that it is too large.
fn stream(from: impl Read, likely: u64) -> std::io::Result<Vec<u8>> {
    let most = LIMIT as u64 + 1;
    // A byte more, or the end would be looked for in a larger buffer.
    let mut bytes = Vec::with_capacity(usize::try_from(likely.min(most)).unwrap_or(0) + 1);
    from.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
