//! A file that exists in memory only: content for a child in check mode, where nothing may be written.
#![allow(unsafe_code, reason = "memfd_create has no form in std")]

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::path::PathBuf;

/// An anonymous file holding `bytes`. A child that inherits the descriptor opens it by [`path`].
pub fn holding(bytes: &[u8]) -> io::Result<File> {
    // SAFETY: the name is a NUL-terminated literal; the call returns a new descriptor or -1.
    let fd = unsafe { libc::memfd_create(c"selfheal".as_ptr(), 0) };
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just created and belongs to nobody else.
    let mut file = unsafe { File::from_raw_fd(fd) };
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// The name under which a child that inherits `file` can open it.
pub fn path(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}
