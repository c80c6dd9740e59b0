//! Whole files or nothing: a private temporary file beside the target, then one rename.
#![expect(clippy::disallowed_methods, reason = "this is the one home of writes")]

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use contract::Fix;

/// A file under a temporary name in the target's directory, 0600 from creation; removed when dropped.
pub struct Pending {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
    done: bool,
}

/// Starts a file that will become `target`. The name begins with a dot and ends in `.tmp`.
pub fn begin(_fix: &Fix, target: &Path) -> io::Result<Pending> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = target.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let temporary = target.with_file_name(temporary);
    let file = crate::open::own().read(true).create_new(true).open(&temporary)?;
    Ok(Pending { file, temporary, target: target.to_owned(), done: false })
}

impl Pending {
    /// The open file.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives the file its mode, syncs it and renames it over its target.
    pub fn commit(self, mode: u32) -> io::Result<()> {
        self.finish(mode, |from, to| std::fs::rename(from, to))
    }

    /// The same, but never in the place of something: `AlreadyExists` then.
    pub fn commit_new(self, mode: u32) -> io::Result<()> {
        self.finish(mode, |from, to| match crate::tree::rename_new(from, to) {
            // Some network and user-space filesystems cannot rename so: a second name is as exclusive.
            Err(cause) if matches!(cause.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => {
                std::fs::hard_link(from, to)?;
                std::fs::remove_file(from)
            }
            other => other,
        })
    }

    fn finish(mut self, mode: u32, rename: impl Fn(&Path, &Path) -> io::Result<()>) -> io::Result<()> {
        self.file.set_permissions(Permissions::from_mode(mode))?;
        self.file.sync_all()?;
        rename(&self.temporary, &self.target)?;
        self.done = true;
        // The name is durable only once its directory is; a filesystem that cannot sync one still has the file.
        if let Some(dir) = self.target.parent() {
            let _ = File::open(if dir.as_os_str().is_empty() { Path::new(".") } else { dir })
                .and_then(|d| d.sync_all());
        }
        Ok(())
    }

    fn rename(&mut self) -> io::Result<()> {
        std::fs::rename(&self.temporary, &self.target)?;
        self.done = true;
        Ok(())
    }
}

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.done {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// Replaces `target` by `bytes` in one step.
pub fn write(fix: &Fix, target: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut pending = begin(fix, target)?;
    pending.write_all(bytes)?;
    pending.commit(mode)
}

/// As [`write`] without waiting for the disk, which under load takes seconds: no killed process leaves anything but
/// the old or the new content, but a power cut may. For state whose loss is harmless.
pub fn write_unsynced(fix: &Fix, target: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut pending = begin(fix, target)?;
    pending.write_all(bytes)?;
    pending.file.set_permissions(Permissions::from_mode(mode))?;
    pending.rename()
}

/// Removes what killed writers of `target` left under temporary names. The caller holds the lock under which it is
/// written, so that none of them is being written now.
pub fn sweep(_fix: &Fix, target: &Path) -> io::Result<()> {
    let Some(name) = target.file_name().map(OsStr::as_bytes) else { return Ok(()) };
    let dir = target.parent().unwrap_or(target);
    for entry in std::fs::read_dir(if dir.as_os_str().is_empty() { Path::new(".") } else { dir })? {
        let entry = entry?;
        let of_target = entry.file_name().as_bytes().strip_prefix(b".").is_some_and(|rest| {
            rest.strip_prefix(name).is_some_and(|rest| rest.starts_with(b".") && rest.ends_with(b".tmp"))
        });
        if of_target {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Empties or makes a file, 0600, that is written while the work goes on, such as a log. A link is not followed.
pub fn fresh(_fix: &Fix, path: &Path) -> io::Result<File> {
    crate::open::own().create(true).truncate(true).open(path)
}

/// Renames over whatever is at `to`: the one rotation of a log or history.
pub fn replace(_fix: &Fix, from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

/// Makes a directory and its parents, each 0700 from creation; those that exist stay as they are.
pub fn make_dir(_fix: &Fix, dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Moves `path` aside to the first free `PATH.aside-N` in the same directory and returns that place.
pub fn move_aside(_fix: &Fix, path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    for n in 1..10_000_u32 {
        let mut aside = name.to_owned();
        aside.push(format!(".aside-{n}"));
        let place = path.with_file_name(aside);
        match crate::tree::rename_new(path, &place) {
            Ok(()) => return Ok(place),
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
            Err(cause) => return Err(cause),
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_home::Home;
    use std::fs;

    #[test]
    fn a_dropped_file_leaves_the_target_as_it_was() {
        let fix = contract::mode::by_name();
        let home = Home::new();
        let target = home.path("x");
        write(&fix, &target, b"old", 0o644).unwrap();
        write_unsynced(&fix, &target, b"old", 0o600).unwrap();
        assert_eq!(target.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let mut pending = begin(&fix, &target).unwrap();
        pending.write_all(b"half").unwrap();
        drop(pending);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(fs::read_dir(target.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_killed_writer_left_is_swept_and_nothing_else() {
        let fix = contract::mode::by_name();
        let home = Home::new();
        let target = home.path("z");
        let keep = [".z.tmp-not", ".zz.1.0.tmp", "z.1.0.tmp", "z"];
        for name in keep.iter().chain(&[".z.1.0.tmp", ".z.99.7.tmp"]) {
            fs::write(target.with_file_name(name), "x").unwrap();
        }
        sweep(&fix, &target).unwrap();
        for name in keep {
            assert!(target.with_file_name(name).exists(), "{name}");
        }
        assert_eq!(fs::read_dir(target.parent().unwrap()).unwrap().count(), keep.len());
    }

    #[test]
    fn moving_aside_never_overwrites() {
        let fix = contract::mode::by_name();
        let home = Home::new();
        let target = home.path("y");
        let mut places = Vec::new();
        for content in [b"1", b"2"] {
            write(&fix, &target, content, 0o600).unwrap();
            places.push(move_aside(&fix, &target).unwrap());
        }
        assert_eq!(fs::read(&places[0]).unwrap(), b"1");
        assert_eq!(fs::read(&places[1]).unwrap(), b"2");
        assert!(!target.exists());
    }
}
