//! Reading a manifest from a file or a pipe, bounded.

use std::io::Read;
use std::path::Path;

use contract::{Error, exit, message};
use files::open::{self, Refusal};

use crate::manifest::LIMIT;

/// The exact bytes of a manifest file; missing is `bad`, 4.
pub fn file(path: &Path) -> Result<Vec<u8>, Error> {
    let name = path.as_os_str();
    let (from, meta) = open::regular(path).map_err(|refusal| match refusal {
        Refusal::Io(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            Error::new(exit::swr::MANIFEST, format!("there is no manifest at {}", message::quoted(name)))
                .hint("swr autopilot makes one of the healthy workspace")
        }
        Refusal::Io(cause) => Error::io("read", name, &cause),
        Refusal::NotAFile(what) => {
            Error::new(exit::IO, format!("cannot read {}: it is {}", message::quoted(name), what.words()))
        }
    })?;
    stream(from, meta.len()).map_err(|cause| Error::io("read", name, &cause))
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
