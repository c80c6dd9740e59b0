//! Opening a file that may be anything: a FIFO does not block, a device is not read, a change is noticed.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// What a path is when it is not a regular file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAFile {
    /// A directory.
    Directory,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

impl NotAFile {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Directory => "a directory",
            Self::Fifo => "a FIFO",
            Self::Socket => "a socket",
            Self::Device => "a device",
        }
    }
}

/// Why a regular file could not be opened.
#[derive(Debug)]
pub enum Refusal {
    /// The path is something else.
    NotAFile(NotAFile),
    /// The system's own error.
    Io(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(cause: io::Error) -> Self {
        Self::Io(cause)
    }
}

/// How a file of our own is opened for writing: 0600 when it is made, no link followed, no wait for a FIFO's reader.
pub(crate) fn own() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options
}

/// Opens a regular file for reading, links followed, without ever waiting for a writer of a FIFO.
pub fn regular(path: &Path) -> Result<(File, Metadata), Refusal> {
    with(path, 0)
}

/// As [`regular`], and a link is an error (ELOOP): for files of our own.
pub fn no_link(path: &Path) -> Result<(File, Metadata), Refusal> {
    with(path, libc::O_NOFOLLOW)
}

fn with(path: &Path, flags: i32) -> Result<(File, Metadata), Refusal> {
    let flags = flags | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = match file {
        Ok(file) => file,
        // A socket cannot be opened at all.
        Err(cause) if cause.raw_os_error() == Some(libc::ENXIO) => {
            return Err(Refusal::NotAFile(NotAFile::Socket));
        }
        Err(cause) => return Err(cause.into()),
    };
    let meta = file.metadata()?;
    let kind = meta.file_type();
    let other = if kind.is_file() {
        return Ok((file, meta));
    } else if kind.is_dir() {
        NotAFile::Directory
    } else if kind.is_fifo() {
        NotAFile::Fifo
    } else if kind.is_socket() {
        NotAFile::Socket
    } else {
        NotAFile::Device
    };
    Err(Refusal::NotAFile(other))
}

/// What `stat` says of a file's identity and content; another value means it is not the same file any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Print {
    /// Bytes.
    pub size: u64,
    /// Last change of content, nanoseconds since 1970.
    pub mtime_ns: i128,
    /// Last change of the inode, nanoseconds since 1970.
    pub ctime_ns: i128,
    /// Inode number.
    pub inode: u64,
    /// Device number.
    pub device: u64,
}

impl Print {
    /// The print of what `meta` describes.
    pub fn of(meta: &Metadata) -> Self {
        let ns = |s: i64, n: i64| i128::from(s) * 1_000_000_000 + i128::from(n);
        Self {
            size: meta.size(),
            mtime_ns: ns(meta.mtime(), meta.mtime_nsec()),
            ctime_ns: ns(meta.ctime(), meta.ctime_nsec()),
            inode: meta.ino(),
            device: meta.dev(),
        }
    }
}
