//! A lock that belongs to a process, as POSIX has it (fcntl): kept across exec, not inherited by children, and gone
//! when the process is, however it ended.
//!
//! A process loses it by closing any descriptor of the same file, so whoever holds one opens the file once.
#![allow(unsafe_code, reason = "fcntl locks have no form in std")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

/// A lock on one byte, which need not exist.
fn one(byte: u32, kind: libc::c_int) -> libc::flock {
    // SAFETY: plain data for which all zeroes is a value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_start = byte.into();
    lock.l_len = 1;
    lock.l_type = libc::c_short::try_from(kind).unwrap_or_default();
    lock.l_whence = libc::c_short::try_from(libc::SEEK_SET).unwrap_or_default();
    lock
}

/// Whether another process holds the lock on a byte of the file.
pub fn is_held(file: &File, byte: u32) -> io::Result<bool> {
    let mut lock = one(byte, libc::F_WRLCK);
    // SAFETY: the kernel reads and fills the structure, which outlives the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(i32::from(lock.l_type) != libc::F_UNLCK),
    }
}

/// Takes it for this process, beside others that may hold it, too; a file open for reading is enough.
pub fn share(file: &File, byte: u32) -> io::Result<()> {
    let lock = one(byte, libc::F_RDLCK);
    // SAFETY: the kernel reads the structure, which outlives the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
