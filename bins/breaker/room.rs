//! Keeps the directory small: what killed writers left is removed, and the oldest of too many subjects forgotten.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use contract::Fix;
use files::tree;

/// Subjects that are remembered at once.
pub(crate) const SUBJECTS: usize = 1000;

/// Makes room for the state file `path`. The caller holds the directory's lock, so that no temporary file here
/// is being written.
pub(crate) fn make(fix: &Fix, path: &Path) -> io::Result<()> {
    let dir = path.parent().unwrap_or(path);
    let mut states = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.as_bytes();
        if name.starts_with(b".") && name.ends_with(b".tmp") {
            tree::remove_own_file(fix, &entry.path())?;
        } else if name.ends_with(b".state") {
            states.push(entry.path());
        }
    }
    if states.iter().any(|s| s == path) {
        return Ok(());
    }
    while states.len() >= SUBJECTS {
        let changed = |p: &PathBuf| p.symlink_metadata().and_then(|m| m.modified()).ok();
        let Some((at, _)) = states.iter().enumerate().min_by_key(|(_, p)| changed(p)) else { break };
        tree::remove_own_file(fix, &states.swap_remove(at))?;
    }
    Ok(())
}
