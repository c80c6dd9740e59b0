//! Reading a manifest from a file or a pipe, bounded.

use std::io::Read;
use std::path::Path;

use contract::{Error, exit, message};
use files::open::{self, Refusal};

use crate::manifest::LIMIT;

/// The exact bytes of a manifest file; missing is `bad`, 4.
pub fn file(path: &Path) -> Result<Vec<u8>, Error> {
    let name = path.as_os_str();
    let (from, _) = open::regular(path).map_err(|refusal| match refusal {
        Refusal::Io(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            Error::new(exit::swr::MANIFEST, format!("there is no manifest at {}", message::quoted(name)))
                .hint("swr autopilot makes one of the healthy workspace")
        }
        Refusal::Io(cause) => Error::io("read", name, &cause),
        Refusal::NotAFile(what) => {
            Error::new(exit::IO, format!("cannot read {}: it is {}", message::quoted(name), what.words()))
        }
    })?;
    stream(from).map_err(|cause| Error::io("read", name, &cause))
}

/// The exact bytes of standard input.
pub fn stdin() -> Result<Vec<u8>, Error> {
    stream(std::io::stdin().lock()).map_err(|cause| Error::io("read", "standard input".as_ref(), &cause))
}

/// At most one byte more than a manifest may have: the parser then says that it is too large.
fn stream(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LIMIT as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
