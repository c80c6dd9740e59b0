//! Room for a file: what the disk still has, what a file already takes, and the limit on one file's size.
#![allow(unsafe_code, reason = "statvfs, getrlimit and signal have no form in std")]

use std::ffi::CString;
use std::fs::Metadata;
use std::io;
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

    #[test]
    fn a_filesystem_without_room_says_so() {
        assert!(available(&std::env::temp_dir()).unwrap() > 0);
        assert_eq!(available(Path::new("/proc")).unwrap(), 0);
        assert!(available(Path::new("/nonexistent")).is_err());
    }
}
