//! Reading a small file of our own that may have become anything else: no link, no wait, no more than a limit.

use std::fs::Metadata;
use std::io::{self, Read as _};
use std::path::Path;

use files::open::{self, Refusal};

/// What is at a path.
pub(crate) enum Content {
    Missing,
    /// A regular file: its bytes, at most as many as asked for, and what `stat` says.
    File(Vec<u8>, Metadata),
    /// Something else, in words.
    Odd(&'static str),
}

/// Reads at most `limit` bytes.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Content> {
    match open::no_link(path) {
        Ok((file, meta)) => {
            let mut bytes = Vec::new();
            file.take(limit).read_to_end(&mut bytes)?;
            Ok(Content::File(bytes, meta))
        }
        Err(Refusal::NotAFile(what)) => Ok(Content::Odd(what.words())),
        Err(Refusal::Io(cause)) => match cause.raw_os_error() {
            Some(libc::ENOENT) => Ok(Content::Missing),
            Some(libc::ELOOP) => Ok(Content::Odd("a link")),
            _ => Err(cause),
        },
    }
}
