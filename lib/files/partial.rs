//! A file that grows under a name of its own until it is whole: held by one process at a time, kept when that
//! process dies, renamed when its content is proven.
//!
//! The lock is on the partial file itself, so a holder killed with -9 frees it and nothing else has to be cleaned.
//! Whoever gets the lock checks that the name still means the file it locked: it may have been renamed meanwhile.
//! A note beside it says where its bytes come from; a torn or missing note is as good as none.
#![expect(clippy::disallowed_methods, reason = "the one home of renames and removals")]

use std::ffi::OsString;
use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use contract::Fix;
use contract::clock::Deadline;

use crate::digest::Hasher;

/// Disk is reserved in steps of this.
const RESERVE: u64 = 64 << 20;
/// A longer note is not ours.
const NOTE: u64 = 4096;
/// How often a held lock is asked for again.
const POLL: Duration = Duration::from_millis(50);

/// A partial file and its lock.
#[derive(Debug)]
pub struct Partial {
    file: File,
    path: PathBuf,
    target: PathBuf,
    length: u64,
    /// The disk behind the bytes up to here is reserved.
    reserved: u64,
}

/// Where the partial file of `target` is: `.NAME.KEY.part` beside it.
fn name(target: &Path, key: &str) -> io::Result<PathBuf> {
    let mut name = OsString::from(".");
    name.push(target.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    name.push(format!(".{key}.part"));
    Ok(target.with_file_name(name))
}

impl Partial {
    /// Opens or makes the partial file of `target` and takes its lock; `None` when another process still holds it
    /// at the deadline. `key` names the content: 12 lower-case hexadecimal digits.
    pub fn open(_fix: &Fix, target: &Path, key: &str, deadline: Deadline) -> io::Result<Option<Self>> {
        let path = name(target, key)?;
        loop {
            let mut file = crate::open::own().read(true).create(true).open(&path)?;
            let meta = file.metadata()?;
            if !meta.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
            }
            match file.try_lock() {
                Ok(()) if path.symlink_metadata().is_ok_and(|now| same(&now, &meta)) => {
                    let length = file.seek(io::SeekFrom::End(0))?;
                    let (target, reserved) = (target.to_owned(), length);
                    return Ok(Some(Self { file, path, target, length, reserved }));
                }
                // Renamed or removed by the one who held it.
                Ok(()) if !deadline.over() => {}
                Ok(()) => return Ok(None),
                Err(TryLockError::WouldBlock) if deadline.over() => return Ok(None),
                Err(TryLockError::WouldBlock) => deadline.pause(POLL),
                Err(TryLockError::Error(cause)) => return Err(cause),
            }
        }
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes it holds.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Bytes of disk it takes.
    pub fn taken(&self) -> io::Result<u64> {
        Ok(crate::space::taken(&self.file.metadata()?))
    }

    /// Hashes what it holds; the next append goes behind it.
    pub fn hash(&mut self) -> io::Result<Hasher> {
        let mut hasher = Hasher::default();
        let mut buffer = vec![0; 64 << 10];
        self.file.rewind()?;
        let mut left = self.length;
        while left > 0 {
            let want = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            match self.file.read(&mut buffer[..want]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    hasher.update(&buffer[..n]);
                    left -= n as u64;
                }
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
        Ok(hasher)
    }

    /// The note beside it.
    pub fn note(&self) -> Option<Vec<u8>> {
        let (file, _) = crate::open::regular(&note(&self.path)).ok()?;
        let mut bytes = Vec::new();
        file.take(NOTE).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Replaces the note.
    pub fn set_note(&self, bytes: &[u8]) -> io::Result<()> {
        crate::open::own().create(true).truncate(true).open(note(&self.path))?.write_all(bytes)
    }

    /// Adds bytes at its end; `whole` is the size that it will have at last. After an error its length is read
    /// again: a full disk may take a part of them.
    pub fn append(&mut self, bytes: &[u8], whole: u64) -> io::Result<()> {
        let end = self.length + bytes.len() as u64;
        if end > self.reserved {
            // Without it writing takes twice the CPU time on ext4; where it cannot be had, nothing is lost.
            let step = RESERVE.min(whole.saturating_sub(self.reserved));
            let _ = crate::space::reserve(&self.file, self.reserved, step);
            self.reserved = end.max(self.reserved + step);
        }
        let written = self.file.write_all(bytes);
        match written {
            Ok(()) => self.length += bytes.len() as u64,
            Err(_) => self.length = self.file.metadata()?.len(),
        }
        written
    }

    /// Empties it and drops its note.
    pub fn restart(&mut self) -> io::Result<()> {
        remove_if_there(&note(&self.path))?;
        self.file.set_len(0)?;
        self.file.rewind()?;
        (self.length, self.reserved) = (0, 0);
        Ok(())
    }

    /// Gives back the disk that is reserved behind its end.
    pub fn trim(&self) -> io::Result<()> {
        self.file.set_len(self.length)
    }

    /// Gives it its mode, syncs it and renames it over its target.
    pub fn commit(self, mode: u32) -> io::Result<()> {
        if self.reserved > self.length {
            self.trim()?;
        }
        self.file.set_permissions(Permissions::from_mode(mode))?;
        self.file.sync_all()?;
        remove_if_there(&note(&self.path))?;
        std::fs::rename(&self.path, &self.target)?;
        if let Some(dir) = self.target.parent() {
            let _ = File::open(dir).and_then(|d| d.sync_all());
        }
        Ok(())
    }

    /// Removes it and its note.
    pub fn discard(self) -> io::Result<()> {
        remove_if_there(&note(&self.path))?;
        std::fs::remove_file(&self.path)
    }

    /// Removes the partial files that other contents of the same target left, unless someone holds them; returns
    /// their names. A name is ours when it is the target's with a dot, 12 digits and `.part` around it.
    pub fn remove_others(&self) -> io::Result<Vec<PathBuf>> {
        let mut removed = Vec::new();
        let mut head = OsString::from(".");
        head.push(self.target.file_name().unwrap_or_default());
        head.push(".");
        let dir = self.path.parent().unwrap_or(Path::new("."));
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().as_bytes();
            let ours = name.strip_prefix(head.as_bytes()).and_then(|n| n.strip_suffix(b".part")).is_some_and(
                |key| key.len() == 12 && key.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')),
            );
            if !ours || path == self.path {
                continue;
            }
            let Ok((file, meta)) = crate::open::regular(&path) else { continue };
            let free = file.try_lock().is_ok() && path.symlink_metadata().is_ok_and(|now| same(&now, &meta));
            if free && remove_if_there(&note(&path)).is_ok() && std::fs::remove_file(&path).is_ok() {
                removed.push(path);
            }
        }
        Ok(removed)
    }
}

/// Where the note of a partial file is: `.from` in place of `.part`.
fn note(path: &Path) -> PathBuf {
    path.with_extension("from")
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
        _ => Ok(()),
    }
}

fn same(a: &std::fs::Metadata, b: &std::fs::Metadata) -> bool {
    (a.ino(), a.dev()) == (b.ino(), b.dev())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_home::Home;
    use std::fs;

    fn open(target: &Path, key: &str) -> Option<Partial> {
        let fix = contract::mode::by_name();
        Partial::open(&fix, target, key, Deadline::after(Duration::from_millis(120))).unwrap()
    }

    const KEY: &str = "0123456789ab";

    #[test]
    fn it_is_kept_and_continued_and_renamed_whole() {
        let home = Home::new();
        let target = home.path("m.gguf");
        fs::write(&target, b"old").unwrap();
        let mut first = open(&target, KEY).unwrap();
        first.set_note(b"from a longer place").unwrap();
        first.set_note(b"from there").unwrap();
        first.append(b"abc", 6).unwrap();
        drop(first);
        let mut second = open(&target, KEY).unwrap();
        assert_eq!(second.length(), 3);
        assert_eq!(second.note().unwrap(), b"from there");
        let mut hasher = second.hash().unwrap();
        second.append(b"def", 6).unwrap();
        hasher.update(b"def");
        assert_eq!(hasher.finish(), crate::digest::of_reader(&mut &b"abcdef"[..]).unwrap().0);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        second.commit(0o644).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"abcdef");
        assert_eq!(fs::read_dir(target.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_second_process_waits_and_then_does_not_write_into_the_renamed_file() {
        let home = Home::new();
        let target = home.path("m.gguf");
        let mut first = open(&target, KEY).unwrap();
        assert!(open(&target, KEY).is_none());
        first.append(b"whole", 6).unwrap();
        let waiter = {
            let target = target.clone();
            let fix = contract::mode::by_name();
            let deadline = Deadline::after(Duration::from_secs(20));
            std::thread::spawn(move || Partial::open(&fix, &target, KEY, deadline).unwrap().unwrap())
        };
        Deadline::after(Duration::from_secs(1)).pause(Duration::from_millis(100));
        first.commit(0o644).unwrap();
        let mut second = waiter.join().unwrap();
        assert_eq!(second.length(), 0);
        second.append(b"x", 6).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        second.discard().unwrap();
    }

    #[test]
    fn partial_files_of_older_pins_go_and_nothing_else_does() {
        let home = Home::new();
        let target = home.path("m.gguf");
        let kept =
            [".m.gguf.short.part", ".n.gguf.ba9876543210.part", ".m.gguf.BA9876543210.part", "m.gguf.part"];
        for other in kept.iter().chain(&[".m.gguf.ba9876543210.part", ".m.gguf.ba9876543210.from"]) {
            fs::write(target.with_file_name(other), b"x").unwrap();
        }
        let held = open(&target, "aaaaaaaaaaaa").unwrap();
        let ours = open(&target, KEY).unwrap();
        let removed = ours.remove_others().unwrap();
        assert_eq!(removed, [target.with_file_name(".m.gguf.ba9876543210.part")]);
        assert_eq!(fs::read_dir(target.parent().unwrap()).unwrap().count(), kept.len() + 2);
        drop(held);
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let home = Home::new();
        let target = home.path("m.gguf");
        std::os::unix::fs::symlink("/etc/hostname", name(&target, KEY).unwrap()).unwrap();
        let fix = contract::mode::by_name();
        assert!(Partial::open(&fix, &target, KEY, Deadline::after(Duration::ZERO)).is_err());
    }
}
