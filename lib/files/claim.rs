//! Many locks in one empty file: a number is claimed by locking the byte at that offset.
//!
//! These are open file description locks (fcntl(2), Linux 3.15): a holder killed with -9 frees its number, and no
//! file is left behind for each.
#![allow(unsafe_code, reason = "F_OFD_SETLK has no form in std")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use contract::Fix;

/// One number of a file of claims, held by [`Claim::take`] until dropped.
#[derive(Debug)]
pub struct Claim {
    file: File,
    at: i64,
}

impl Claim {
    /// Opens the file, made 0600 when it is missing; nothing is held yet. A link is an error. Of the number the lower
    /// 62 bits count.
    pub fn of(_fix: &Fix, path: &Path, number: u64) -> io::Result<Self> {
        let file = crate::open::own().read(true).create(true).open(path)?;
        // The locked byte and its end must be offsets.
        Ok(Self { file, at: (number & (u64::MAX >> 2)).cast_signed() })
    }

    /// Takes the number if nobody has it, without waiting.
    pub fn take(&self) -> io::Result<bool> {
        // SAFETY: flock is plain numbers, for which zero is valid; l_pid must be zero.
        let mut range: libc::flock = unsafe { std::mem::zeroed() };
        range.l_type = libc::F_WRLCK.try_into().unwrap_or_default();
        range.l_whence = libc::SEEK_SET.try_into().unwrap_or_default();
        range.l_start = self.at;
        range.l_len = 1;
        // SAFETY: the descriptor is open and `range` lives past the call.
        if unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) } == 0 {
            return Ok(true);
        }
        match io::Error::last_os_error() {
            cause if matches!(cause.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
            cause => Err(cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_home::Home;

    #[test]
    fn a_number_has_one_holder_and_its_neighbour_another() {
        let fix = contract::mode::by_name();
        let home = Home::new();
        let path = home.path("claims");
        let claim = |number: u64| Claim::of(&fix, &path, number).unwrap();
        let (first, same, other, last) = (claim(8), claim(8), claim(9), claim(u64::MAX));
        assert!(first.take().unwrap() && other.take().unwrap() && last.take().unwrap());
        assert!(!same.take().unwrap());
        drop(first);
        assert!(same.take().unwrap());
    }
}
