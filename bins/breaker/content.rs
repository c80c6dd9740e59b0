//! Reading a small file of our own that may have become anything else: no link, no wait, no more than a limit.

use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

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
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(cause) => {
            return match cause.raw_os_error() {
                Some(libc::ENOENT) => Ok(Content::Missing),
                Some(libc::ELOOP) => Ok(Content::Odd("a link")),
                Some(libc::ENXIO) => Ok(Content::Odd("a socket")),
                _ => Err(cause),
            };
        }
    };
    let meta = file.metadata()?;
    if meta.is_dir() {
        return Ok(Content::Odd("a directory"));
    }
    if !meta.is_file() {
        return Ok(Content::Odd("not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(Content::File(bytes, meta))
}
