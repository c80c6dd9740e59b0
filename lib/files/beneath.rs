//! Paths that cannot leave a directory: no `..`, no absolute path, no link in any component, no swap in between.
//!
//! openat2(2) with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS` where the kernel has it (Linux 5.6, not every sandbox),
//! else one `O_NOFOLLOW` open a component.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

/// A directory that paths are resolved below.
#[derive(Debug)]
pub struct Root {
    dir: OwnedFd,
    path: PathBuf,
}

/// A path's parent directory, open, and its last component: what `*at` calls take.
#[derive(Debug)]
pub struct Place {
    /// The parent directory.
    pub parent: OwnedFd,
    /// The last component.
    pub name: Vec<u8>,
}

impl Root {
    /// Opens the directory itself; links on the way to it are followed, it is the caller's.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { dir: rustix::fs::open(path, flags, Mode::empty())?, path: path.to_owned() })
    }

    /// The name it was opened by, for messages and for recipes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens `below` with `flags`; `O_NOFOLLOW` and `O_CLOEXEC` are always set. A link anywhere is ELOOP.
    pub fn open_at(&self, below: &[u8], flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        if !contained(below) {
            return Err(io::Error::from_raw_os_error(libc::EXDEV));
        }
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.dir, below, flags, mode, resolve) {
            Err(Errno::NOSYS | Errno::PERM) => {
                let place = self.step_by_step(below)?;
                Ok(rustix::fs::openat(&place.parent, place.name.as_slice(), flags, mode)?)
            }
            other => Ok(other?),
        }
    }

    /// Opens a regular file, directory or whatever `below` is for reading, without waiting for a FIFO.
    pub fn read(&self, below: &[u8]) -> io::Result<File> {
        self.open_at(below, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty()).map(File::from)
    }

    /// The place of `below`; its parent must exist.
    pub fn place(&self, below: &[u8]) -> io::Result<Place> {
        if !contained(below) {
            return Err(io::Error::from_raw_os_error(libc::EXDEV));
        }
        let Some(at) = below.iter().rposition(|b| *b == b'/') else {
            return Ok(Place { parent: self.dir.try_clone()?, name: below.to_vec() });
        };
        let parent = match self.open_at(&below[..at], OFlags::PATH | OFlags::DIRECTORY, Mode::empty()) {
            Ok(parent) => parent,
            // A link as the last component is no directory for the kernel: one step at a time tells them apart.
            Err(cause) if cause.kind() == io::ErrorKind::NotADirectory => return self.step_by_step(below),
            Err(cause) => return Err(cause),
        };
        Ok(Place { parent, name: below[at + 1..].to_vec() })
    }

    /// The directory itself, open for reading its members.
    pub fn dir(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.dir, ".", flags, Mode::empty())?)
    }

    /// `stat` of the directory itself.
    pub fn stat_self(&self) -> io::Result<Stat> {
        Ok(rustix::fs::fstat(&self.dir)?)
    }

    /// `lstat` of `below`.
    pub fn stat(&self, below: &[u8]) -> io::Result<Stat> {
        self.place(below)?.stat()
    }

    fn step_by_step(&self, below: &[u8]) -> io::Result<Place> {
        let mut parent = self.dir.try_clone()?;
        let mut components = below.split(|b| *b == b'/').peekable();
        while let Some(name) = components.next() {
            if components.peek().is_none() {
                return Ok(Place { parent, name: name.to_vec() });
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            parent = rustix::fs::openat(&parent, name, flags, Mode::empty()).map_err(|cause| {
                // O_DIRECTORY with O_NOFOLLOW says ENOTDIR of a link.
                let is_link =
                    stat_at(&parent, name).is_ok_and(|s| kind_of(&s) == rustix::fs::FileType::Symlink);
                if is_link { Errno::LOOP } else { cause }
            })?;
        }
        Err(io::Error::from(io::ErrorKind::InvalidInput))
    }
}

/// `lstat` of many paths one after the other: the directory of the last one stays open for its neighbours.
#[derive(Debug)]
pub struct Neighbours<'r> {
    root: &'r Root,
    last: Option<(Vec<u8>, OwnedFd)>,
}

impl<'r> Neighbours<'r> {
    /// Paths below `root`.
    pub fn new(root: &'r Root) -> Self {
        Self { root, last: None }
    }

    /// `lstat` of `below`.
    pub fn stat(&mut self, below: &[u8]) -> io::Result<Stat> {
        let at = below.iter().rposition(|b| *b == b'/').unwrap_or(0);
        if let Some((dir, parent)) = &self.last
            && at > 0
            && dir.as_slice() == &below[..at]
            && contained(below)
        {
            return Ok(stat_at(parent, &below[at + 1..])?);
        }
        let place = self.root.place(below)?;
        let stat = place.stat();
        if at > 0 {
            self.last = Some((below[..at].to_vec(), place.parent));
        }
        stat
    }
}

impl AsFd for Root {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

impl Place {
    /// `lstat`.
    pub fn stat(&self) -> io::Result<Stat> {
        Ok(stat_at(&self.parent, &self.name)?)
    }

    /// The target of a link.
    pub fn link_target(&self) -> io::Result<Vec<u8>> {
        Ok(rustix::fs::readlinkat(&self.parent, self.name.as_slice(), Vec::new())?.into_bytes())
    }

    /// The last component, for messages.
    pub fn name(&self) -> &OsStr {
        OsStr::from_bytes(&self.name)
    }
}

/// The file type bits of a `stat`.
pub fn kind_of(stat: &Stat) -> rustix::fs::FileType {
    rustix::fs::FileType::from_raw_mode(stat.st_mode)
}

/// The same print as [`crate::open::Print::of`] of the same file.
pub fn print_of(stat: &Stat) -> crate::open::Print {
    let ns = |s: i64, n: u64| i128::from(s) * 1_000_000_000 + i128::from(n);
    #[expect(clippy::cast_sign_loss, reason = "the kernel gives sizes of zero and more")]
    let size = stat.st_size as u64;
    #[allow(clippy::unnecessary_cast, reason = "the width of these fields differs by architecture")]
    crate::open::Print {
        size,
        mtime_ns: ns(stat.st_mtime as i64, stat.st_mtime_nsec as u64),
        ctime_ns: ns(stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        inode: stat.st_ino as u64,
        device: stat.st_dev as u64,
    }
}

fn stat_at(parent: &OwnedFd, name: &[u8]) -> Result<Stat, Errno> {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// Relative, not empty, no `.`, `..`, empty component or NUL.
fn contained(path: &[u8]) -> bool {
    !path.contains(&0) && path.split(|b| *b == b'/').all(|c| !matches!(c, b"" | b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_home::Home;
    use std::io::Read as _;

    #[test]
    fn no_way_out_of_the_root() {
        let home = Home::new();
        let dir = &home.dir;
        std::fs::create_dir_all(dir.join("in/deep")).unwrap();
        std::fs::create_dir_all(dir.join("out")).unwrap();
        File::create_new(dir.join("out/secret")).unwrap();
        File::create_new(dir.join("in/deep/file")).unwrap();
        for (link, to) in
            [("dir", "../out"), ("file", "../out/secret"), ("deep/up", ".."), ("abs", "/etc/passwd")]
        {
            std::os::unix::fs::symlink(to, dir.join("in").join(link)).unwrap();
        }
        let root = Root::open(&dir.join("in")).unwrap();
        let mut text = String::new();
        assert!(root.read(b"deep/file").unwrap().read_to_string(&mut text).is_ok());
        assert!(root.step_by_step(b"deep/file").unwrap().stat().is_ok());
        for path in [
            "../out/secret",
            "/etc/passwd",
            "dir/secret",
            "file",
            "deep/up/deep/file",
            "abs",
            "",
            ".",
            "deep/../x",
        ] {
            assert!(root.read(path.as_bytes()).is_err(), "{path}");
            let walked = contained(path.as_bytes()).then(|| root.step_by_step(path.as_bytes()));
            let opened = walked.is_some_and(|w| {
                w.is_ok_and(|p| {
                    rustix::fs::openat(&p.parent, p.name.as_slice(), OFlags::NOFOLLOW, Mode::empty()).is_ok()
                })
            });
            assert!(!opened, "{path} without openat2");
        }
        assert_eq!(root.place(b"file").unwrap().link_target().unwrap(), b"../out/secret");
        let mut neighbours = Neighbours::new(&root);
        for (path, there) in [
            ("deep/file", true),
            ("deep/none", false),
            ("deep/file", true),
            ("deep/..", false),
            ("deep/up/deep", false),
            ("deep/up", true),
            ("file", true),
            ("dir/secret", false),
            ("deep/file", true),
        ] {
            assert_eq!(neighbours.stat(path.as_bytes()).is_ok(), there, "{path} beside the last one");
        }
    }
}
