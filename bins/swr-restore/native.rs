//! Repairs that need no recipe: permission bits, links, empty directories, embedded files.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;

use contract::{Error, exit};
use files::beneath::{self, Place, Root};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use workspace::verify::Repair;
use workspace::{Entry, Shape, escrow};

/// Moves what is in the way to a safe place and says where.
pub(crate) type Aside<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), Error>;

/// Applies one native repair.
pub(crate) fn apply(
    root: &Root,
    entry: &Entry,
    path: &[u8],
    repair: &Repair,
    aside: Aside,
) -> Result<(), Error> {
    match repair {
        Repair::Nothing | Repair::Recipe => Ok(()),
        Repair::Mode(path, mode) => set_mode(root, path, *mode).map_err(|e| failed("chmod", path, &e)),
        Repair::Link(path, target) => link(root, path, target, aside),
        Repair::EmptyDir(path, mode) => {
            make_parents(root, path, aside)?;
            directory(root, path, *mode).map_err(|e| failed("make", path, &e))
        }
        Repair::Escrow => embedded(root, entry, path, aside),
    }
}

fn failed(doing: &str, path: &[u8], cause: &io::Error) -> Error {
    Error::io(doing, OsStr::from_bytes(path), cause)
}

/// Through a descriptor, so that the name cannot become a link in between.
pub(crate) fn set_mode(root: &Root, path: &[u8], mode: u32) -> io::Result<()> {
    let fd = root.open_at(path, OFlags::PATH, Mode::empty())?;
    let stat = rustix::fs::fstat(&fd)?;
    if !matches!(FileType::from_raw_mode(stat.st_mode), FileType::RegularFile | FileType::Directory) {
        return Err(Errno::LOOP.into());
    }
    let by_descriptor = format!("/proc/self/fd/{}", fd.as_raw_fd());
    Ok(rustix::fs::chmod(by_descriptor, Mode::from_raw_mode(mode))?)
}

fn link(root: &Root, path: &[u8], target: &[u8], aside: Aside) -> Result<(), Error> {
    make_parents(root, path, aside)?;
    match root.stat(path) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink => aside(path)?,
        Ok(_) | Err(_) => {}
    }
    let failed = |cause: io::Error| failed("link", path, &cause);
    let place = root.place(path).map_err(failed)?;
    let temporary = temporary(&place);
    rustix::fs::symlinkat(target, &place.parent, temporary.as_slice()).map_err(|e| failed(e.into()))?;
    rustix::fs::renameat(&place.parent, temporary.as_slice(), &place.parent, place.name.as_slice()).map_err(
        |cause| {
            let _ = rustix::fs::unlinkat(&place.parent, temporary.as_slice(), AtFlags::empty());
            failed(cause.into())
        },
    )
}

/// Makes a directory, or sets the mode of the one that is there.
pub(crate) fn directory(root: &Root, path: &[u8], mode: u32) -> io::Result<()> {
    make(root, path, 0o700)?;
    set_mode(root, path, mode)
}

fn embedded(root: &Root, entry: &Entry, path: &[u8], aside: Aside) -> Result<(), Error> {
    let Shape::File { size, sha256, mode, escrow: Some(text) } = &entry.shape else {
        return Err(Error::new(exit::IO, "nothing is embedded for it"));
    };
    let content = escrow::unpack(text, *size, *sha256).map_err(|why| Error::new(exit::IO, why))?;
    make_parents(root, path, aside)?;
    if root.stat(path).is_ok() {
        aside(path)?;
    }
    write_new(root, path, &content, *mode).map_err(|e| failed("write", path, &e))
}

/// A whole file or none, below the root.
fn write_new(root: &Root, path: &[u8], content: &[u8], mode: u32) -> io::Result<()> {
    let place = root.place(path)?;
    let temporary = temporary(&place);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(
        &place.parent,
        temporary.as_slice(),
        flags,
        Mode::from_raw_mode(0o600),
    )?);
    let written = file.write_all(content).and_then(|()| {
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        file.sync_all()?;
        Ok(rustix::fs::renameat(&place.parent, temporary.as_slice(), &place.parent, place.name.as_slice())?)
    });
    if written.is_err() {
        let _ = rustix::fs::unlinkat(&place.parent, temporary.as_slice(), AtFlags::empty());
    }
    written
}

fn temporary(place: &Place) -> Vec<u8> {
    let mut name = b".".to_vec();
    name.extend_from_slice(&place.name);
    name.truncate(200);
    name.extend_from_slice(format!(".{}.tmp", std::process::id()).as_bytes());
    name
}

/// Makes the directories above `path` that are missing, 0755, without following a link. A file in the place of one goes
/// aside.
pub(crate) fn make_parents(root: &Root, path: &[u8], aside: Aside) -> Result<(), Error> {
    for (at, _) in path.iter().enumerate().filter(|(_, b)| **b == b'/') {
        let dir = &path[..at];
        if root.stat(dir).is_ok_and(|s| beneath::kind_of(&s) == FileType::RegularFile) {
            aside(dir)?;
        }
        make(root, dir, 0o755).map_err(|cause| failed("make", dir, &cause))?;
    }
    Ok(())
}

fn make(root: &Root, dir: &[u8], mode: u32) -> io::Result<()> {
    let place = root.place(dir)?;
    match rustix::fs::mkdirat(&place.parent, place.name.as_slice(), Mode::from_raw_mode(mode)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(cause) => Err(cause.into()),
    }
}

/// An entry's absolute path, for messages.
pub(crate) fn absolute(root: &Root, path: &[u8]) -> std::path::PathBuf {
    root.path().join(OsStr::from_bytes(path))
}
