//! Stretches of a file that the file system holds nothing for: a download that never wrote them.
#![allow(unsafe_code, reason = "lseek with SEEK_HOLE has no form in std")]

use std::fs::File;
use std::os::fd::AsRawFd as _;

/// The first hole that begins within `from..to`, cut at `to`; `None` also where the file system cannot tell.
/// Moves the file's own position.
pub(crate) fn first(file: &File, from: u64, to: u64) -> Option<(u64, u64)> {
    if from >= to {
        return None;
    }
    let start = seek(file, from, libc::SEEK_HOLE)?;
    if start >= to {
        return None;
    }
    // No data up to the end of the file is ENXIO.
    let end = seek(file, start, libc::SEEK_DATA).unwrap_or(to);
    Some((start, end.min(to)))
}

fn seek(file: &File, at: u64, whence: i32) -> Option<u64> {
    let at = libc::off_t::try_from(at).ok()?;
    // SAFETY: lseek takes numbers and a descriptor that `file` keeps open; it touches no memory.
    let found = unsafe { libc::lseek(file.as_raw_fd(), at, whence) };
    u64::try_from(found).ok()
}
