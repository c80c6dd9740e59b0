//! Room for a file: what the disk still has, what a file already takes, and the limit on one file's size.
#![allow(unsafe_code, reason = "statvfs, fallocate, getrlimit and signal have no form in std")]

use std::ffi::CString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Bytes that an unprivileged writer may still add to the filesystem of `dir`.
pub fn available(dir: &Path) -> io::Result<u64> {
    let name = CString::new(dir.as_os_str().as_bytes())?;
    // SAFETY: statvfs is plain numbers, for which zero is valid.
    let mut space: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `name` is NUL-terminated and `space` is ours; the call fills it or fails.
    if unsafe { libc::statvfs(name.as_ptr(), &raw mut space) } != 0 {
        return Err(io::Error::last_os_error());
    }
    #[allow(clippy::useless_conversion, reason = "the field types differ between targets")]
    Ok(u64::from(space.f_bavail).saturating_mul(u64::from(space.f_frsize)))
}

/// Bytes of disk that a file takes; less than its size where it has holes.
pub fn taken(meta: &Metadata) -> u64 {
    meta.blocks().saturating_mul(512)
}

/// Reserves the disk for `count` bytes from `first` on, without making the file longer.
pub fn reserve(file: &File, first: u64, count: u64) -> io::Result<()> {
    let wide = |n: u64| libc::off_t::try_from(n).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge));
    // SAFETY: the descriptor is open for the call, which touches no memory of ours.
    let status =
        unsafe { libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, wide(first)?, wide(count)?) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The largest size that this process may give a file (`ulimit -f`); `None` without a limit.
pub fn size_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is ours and the call only fills it.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    (known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Makes a write beyond the size limit an error (EFBIG) instead of the end of the process (SIGXFSZ).
pub fn survive_size_limit() {
    // SAFETY: SIG_IGN installs no handler; the call touches no memory of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_home::Home;

    #[test]
    fn reserved_disk_is_taken_and_does_not_lengthen_the_file() {
        let home = Home::new();
        let path = home.path("reserved");
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).create_new(true).open(&path).unwrap();
        // Not every filesystem can.
        if reserve(&file, 0, 1 << 20).is_ok() {
            assert_eq!((file.metadata().unwrap().len(), taken(&file.metadata().unwrap()) >> 20), (0, 1));
        }
        assert!(reserve(&file, u64::MAX, 1).is_err());
    }

    #[test]
    fn a_filesystem_without_room_says_so() {
        assert!(available(&std::env::temp_dir()).unwrap() > 0);
        assert_eq!(available(Path::new("/proc")).unwrap(), 0);
        assert!(available(Path::new("/nonexistent")).is_err());
    }
}
