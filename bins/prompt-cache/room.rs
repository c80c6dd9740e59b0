//! Keeps the directory within its caps: what was used least recently goes first.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use contract::{Fix, clock};
use files::tree;

use crate::store::{key_of, last_used, set_used};

/// How much is kept.
#[derive(Clone, Copy)]
pub(crate) struct Caps {
    /// Bytes of all entries together.
    pub(crate) bytes: u64,
    /// Entries.
    pub(crate) entries: u64,
}

/// A file that may have to go.
struct Old {
    path: PathBuf,
    size: u64,
    used: u64,
}

/// Makes room for `size` bytes that will become `path`, and returns the keys that had to go. The caller holds the
/// directory's lock, so that no temporary file here is being written: those that killed writers left are removed.
pub(crate) fn make(fix: &Fix, dir: &Path, path: &Path, size: u64, caps: Caps) -> io::Result<Vec<String>> {
    let now = clock::wall();
    let mut there = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.as_bytes().starts_with(b".") && name.as_bytes().ends_with(b".tmp") {
            tree::remove_own_file(fix, &entry.path())?;
        } else if key_of(&entry.path()).is_some() && entry.path() != path {
            // One that was removed meanwhile takes no room.
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_file() {
                there.push(Old {
                    used: used(&entry.path(), &meta, now),
                    path: entry.path(),
                    size: meta.len(),
                });
            }
        }
    }
    there.sort_unstable_by_key(|old| std::cmp::Reverse(old.used));
    let (mut bytes, mut entries) = (there.iter().map(|old| old.size).sum::<u64>(), there.len() as u64);
    let mut gone = Vec::new();
    while bytes.saturating_add(size) > caps.bytes || entries >= caps.entries {
        let Some(old) = there.pop() else { break };
        tree::remove_own_file(fix, &old.path)?;
        (bytes, entries) = (bytes - old.size, entries - 1);
        gone.extend(key_of(&old.path).map(|key| key.hex()));
    }
    Ok(gone)
}

/// When a file was last used. A time in the future becomes now, on the disk too, so that it ages from here.
fn used(path: &Path, meta: &Metadata, now: u64) -> u64 {
    let used = last_used(meta);
    if used > now {
        let _ = File::open(path).and_then(|file| set_used(&file, now));
    }
    used.min(now)
}
