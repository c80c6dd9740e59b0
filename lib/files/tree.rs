//! Renames that never overwrite, and removal of a tree that is proven ours.
#![allow(unsafe_code, reason = "renameat2 has no form in std")]

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use contract::Fix;

/// Renames `from` to `to`; an existing `to` is an error, never replaced.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let (a, b) = (CString::new(from.as_os_str().as_bytes())?, CString::new(to.as_os_str().as_bytes())?);
    // SAFETY: both are NUL-terminated strings that live past the call; the system call only reads them.
    let status = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            libc::AT_FDCWD,
            a.as_ptr(),
            libc::AT_FDCWD,
            b.as_ptr(),
            libc::RENAME_NOREPLACE,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Removes a temporary directory that this process made itself: its name must end in `.tmp`. Links inside are
/// removed, not followed.
#[expect(clippy::disallowed_methods, reason = "the one home of removals")]
pub fn remove_own(_fix: &Fix, dir: &Path) -> io::Result<()> {
    if !dir.as_os_str().as_bytes().ends_with(b".tmp") {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a temporary directory of this toolkit"));
    }
    std::fs::remove_dir_all(dir)
}

/// Removes one file of the toolkit's own state; one that is not there is no error. A link is removed, not
/// followed.
#[expect(clippy::disallowed_methods, reason = "the one home of removals")]
pub fn remove_own_file(_fix: &Fix, path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
        _ => Ok(()),
    }
}
