//! Moving aside instead of deleting, and putting back.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use contract::{Error, Fix, clock};
use files::atomic::make_dir;
use files::beneath::Root;
use files::tree::rename_new_at;
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;

/// The place a thing of entry `id` will have: a directory of its own, so that it keeps its name.
pub(crate) fn place(fix: &Fix, home: &Path, id: &str, path: &[u8]) -> Result<PathBuf, Error> {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    let stamp = clock::utc(clock::now().wall).replace([':', '-'], "");
    let all = home.join("quarantine");
    make_dir(fix, &all).map_err(|cause| Error::io("make", all.as_os_str(), &cause))?;
    for n in 1..10_000_u32 {
        let dir = all.join(format!("{stamp}-{id}-{n}"));
        match std::fs::DirBuilder::new().create(&dir) {
            Ok(()) => return Ok(dir.join(OsStr::from_bytes(name))),
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
            Err(cause) => return Err(Error::io("make", dir.as_os_str(), &cause)),
        }
    }
    Err(Error::io("make", all.as_os_str(), &Errno::EXIST.into()))
}

/// Moves `path` to `place`; on another filesystem beside itself as `NAME.aside-N`. Where it is then. Never overwrites.
pub(crate) fn move_aside(root: &Root, path: &[u8], place: &Path) -> io::Result<PathBuf> {
    let from = root.place(path)?;
    let to = place.as_os_str().as_bytes();
    match rename_new_at(&from.parent, &from.name, CWD, to) {
        Ok(()) => return Ok(place.to_owned()),
        Err(Errno::XDEV) => {}
        Err(cause) => return Err(cause.into()),
    }
    for n in 1..10_000_u32 {
        let mut name = from.name.clone();
        name.extend_from_slice(format!(".aside-{n}").as_bytes());
        match rename_new_at(&from.parent, &from.name, &from.parent, &name) {
            Ok(()) => {
                let mut beside = root.path().join(OsStr::from_bytes(path));
                beside.set_file_name(OsStr::from_bytes(&name));
                return Ok(beside);
            }
            Err(Errno::EXIST) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
    Err(Errno::EXIST.into())
}

/// Puts a thing back to `path`, if nothing is there.
pub(crate) fn put_back(root: &Root, path: &[u8], aside: &Path) -> io::Result<()> {
    let to = root.place(path)?;
    Ok(rename_new_at(CWD, aside.as_os_str().as_bytes(), &to.parent, &to.name)?)
}

/// Takes the directory of a [`place`] away that holds nothing; any other stays.
pub(crate) fn tidy(home: &Path, place: &Path) {
    if let Some(dir) = place.parent().filter(|d| d.parent().is_some_and(|all| all == home.join("quarantine")))
    {
        let _ = rustix::fs::unlinkat(CWD, dir, AtFlags::REMOVEDIR);
    }
}
