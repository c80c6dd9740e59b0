//! Renames that never overwrite, and removal of a tree that is proven ours.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use contract::Fix;
use rustix::fs::{AtFlags, CWD, RenameFlags, renameat, renameat_with, statat};
use rustix::io::Errno;

/// Renames `from` to `to`; an existing `to` is an error, never replaced.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    Ok(rename_new_at(CWD, from.as_os_str().as_bytes(), CWD, to.as_os_str().as_bytes())?)
}

/// The same for names in open directories.
pub fn rename_new_at(from_dir: impl AsFd, from: &[u8], to_dir: impl AsFd, to: &[u8]) -> Result<(), Errno> {
    match renameat_with(&from_dir, from, &to_dir, to, RenameFlags::NOREPLACE) {
        // NFS and some filesystems in user space cannot.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => rename_unless_there(from_dir, from, to_dir, to),
        done => done,
    }
}

/// Second best: looks first, so that only what appears in this very moment could be replaced.
fn rename_unless_there(from_dir: impl AsFd, from: &[u8], to_dir: impl AsFd, to: &[u8]) -> Result<(), Errno> {
    match statat(&to_dir, to, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => renameat(from_dir, from, to_dir, to),
        Err(cause) => Err(cause),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_home::Home;

    #[test]
    fn nothing_is_replaced_also_where_the_filesystem_cannot_promise_it() {
        for kernel in [true, false] {
            let home = Home::new();
            let path = |name: &str| home.path(name);
            let rename = |from: &str, to: &str| {
                let (from, to) = (path(from), path(to));
                if kernel {
                    return rename_new(&from, &to).is_ok();
                }
                rename_unless_there(CWD, from.as_os_str().as_bytes(), CWD, to.as_os_str().as_bytes()).is_ok()
            };
            for name in ["a", "b"] {
                crate::atomic::write(&contract::mode::by_name(), &path(name), name.as_bytes(), 0o600)
                    .unwrap();
            }
            std::os::unix::fs::symlink("nowhere", path("link")).unwrap();
            std::fs::create_dir(path("empty")).unwrap();
            for taken in ["b", "link", "empty"] {
                assert!(!rename("a", taken), "{taken}");
            }
            assert!(rename("a", "c") && !rename("a", "d"));
            assert_eq!(std::fs::read_to_string(path("c")).unwrap(), "a");
            assert_eq!(std::fs::read_to_string(path("b")).unwrap(), "b");
        }
    }
}
