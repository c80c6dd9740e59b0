//! Entries below a tree that was moved aside: what was healthy there comes back to its place.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use contract::Error;
use contract::message::{note, quoted};
use files::beneath::{self, Root};
use files::tree::rename_new_at;
use rustix::fs::FileType;
use workspace::Entry;
use workspace::verify::{Finding, Repair};

use crate::native;
use crate::repair::{Bench, Moved};

/// A tree that stands aside.
struct Copy<'a> {
    /// The directory it stands in.
    dir: Root,
    name: &'a [u8],
}

impl Copy<'_> {
    /// The path from `dir` of what is `below` the tree; `below` begins with a slash.
    fn path(&self, below: &[u8]) -> Vec<u8> {
        [self.name, below].concat()
    }
}

impl Bench<'_> {
    /// Puts back what the tree of `entry` took with it to `copy`: each other entry below `path` that is healthy in the copy
    /// and not in its place. Looks alone decide, so that it may be done again by a restore that goes on after a kill.
    pub(crate) fn put_below_back(
        &self,
        root: &Root,
        entry: &Entry,
        path: &[u8],
        copy: &Path,
        moved: &mut Moved,
    ) -> Result<(), Error> {
        let below = self.below(native::absolute(root, path).as_os_str().as_bytes());
        let (Some(dir), Some(name), false) = (copy.parent(), copy.file_name(), below.is_empty()) else {
            return Ok(());
        };
        // Put back whole after a recipe that failed.
        if copy.symlink_metadata().is_err() {
            return Ok(());
        }
        let dir = Root::open(dir).map_err(|cause| Error::io("open", dir.as_os_str(), &cause))?;
        let copy = Copy { dir, name: name.as_bytes() };
        let mut trouble = Ok(());
        for (inner, below) in below {
            let place = [path, &below].concat();
            let lost = self.look(root, inner, &place, false);
            let back = if lost.is_empty() {
                continue;
            } else if self.is_good(&copy, inner, &below) {
                self.put_one_back(root, entry, (path, &place), &copy, moved)
            } else if lost.iter().all(|f| !matches!(f.repair, Repair::Nothing | Repair::Recipe)) {
                // The tree may count what has its turn only later.
                self.natively(root, inner, &place, &lost, moved)
            } else {
                continue;
            };
            match back {
                Ok(()) => moved.below += 1,
                Err(why) => trouble = Err(why),
            }
        }
        trouble
    }

    /// The other entries below a directory, upper ones first, each with the rest of its path, which begins with a slash.
    fn below(&self, dir: &[u8]) -> Vec<(&Entry<'static>, Vec<u8>)> {
        let mut levels = Vec::new();
        for entry in self.manifest.lines.iter().map(|l| &l.entry) {
            let Ok((root, path)) = self.places.of(entry) else { continue };
            let absolute = native::absolute(root, path);
            let Some(rest) = absolute.as_os_str().as_bytes().strip_prefix(dir) else { continue };
            if rest.first() == Some(&b'/') {
                let level = rest.split(|b| *b == b'/').count() - 1;
                levels.resize_with(levels.len().max(level), Vec::new);
                levels[level - 1].push((entry, rest.to_vec()));
            }
        }
        levels.concat()
    }

    /// Whether an entry's copy is healthy but for modes, which its own turn sets.
    fn is_good(&self, copy: &Copy, entry: &Entry, below: &[u8]) -> bool {
        let is_mode = |f: &Finding| matches!(f.repair, Repair::Mode(..));
        self.look(&copy.dir, entry, &copy.path(below), false).iter().all(is_mode)
    }

    fn put_one_back(
        &self,
        root: &Root,
        entry: &Entry,
        (tree, place): (&[u8], &[u8]),
        copy: &Copy,
        moved: &mut Moved,
    ) -> Result<(), Error> {
        let absolute = native::absolute(root, place);
        let failed = |cause: std::io::Error| Error::io("put back", absolute.as_os_str(), &cause);
        let mut new_dirs = Vec::new();
        for at in (tree.len()..place.len()).filter(|at| place[*at] == b'/') {
            let dir = &place[..at];
            if let Ok(stat) = root.stat(dir) {
                if beneath::kind_of(&stat) == FileType::Directory {
                    continue;
                }
                self.aside(root, entry, dir, moved)?;
            }
            let mode = copy.dir.stat(&copy.path(&dir[tree.len()..])).map_err(failed)?.st_mode & 0o7777;
            native::directory(root, dir, 0o700).map_err(failed)?;
            new_dirs.push((dir, mode));
        }
        if root.stat(place).is_ok() {
            self.aside(root, entry, place, moved)?;
        }
        let from = copy.dir.place(&copy.path(&place[tree.len()..])).map_err(failed)?;
        let to = root.place(place).map_err(failed)?;
        rename_new_at(&from.parent, &from.name, &to.parent, &to.name).map_err(|e| failed(e.into()))?;
        for (dir, mode) in new_dirs.into_iter().rev() {
            native::set_mode(root, dir, mode).map_err(failed)?;
        }
        note("swr-restore", &format!("put {} back", quoted(absolute.as_os_str())));
        Ok(())
    }

    /// Does that for what an interrupted restore had moved aside: `aside` are ids and places, oldest first.
    pub(crate) fn put_interrupted_back(&self, aside: &[(String, PathBuf)]) {
        for (id, place) in aside.iter().rev().filter(|(_, place)| place.is_dir()) {
            let Some(entry) = self.manifest.entry(id) else { continue };
            let Ok((root, path)) = self.places.of(entry) else { continue };
            if let Err(trouble) = self.put_below_back(root, entry, path, place, &mut Moved::default()) {
                note("swr-restore", &trouble.message);
            }
        }
    }

    /// The newest copy of what was at `path` that stands in the quarantine and is healthy: moved aside itself, or with a tree
    /// that it is below.
    pub(crate) fn copy_aside(&self, root: &Root, entry: &Entry, path: &[u8]) -> Option<PathBuf> {
        let absolute = native::absolute(root, path);
        let all = std::fs::read_dir(self.home.join("quarantine")).ok()?;
        let mut newest: Option<(OsString, PathBuf)> = None;
        for dir in all.flatten().map(|d| d.file_name()) {
            let is_newer = newest.as_ref().is_none_or(|(name, _)| *name < dir);
            let absolute = absolute.as_os_str().as_bytes();
            if is_newer && let Some(place) = self.copy_in(&dir, entry, absolute) {
                newest = Some((dir, place));
            }
        }
        newest.map(|(_, place)| place)
    }

    /// Where the good copy of an entry is in one directory of the quarantine.
    fn copy_in(&self, dir: &OsStr, entry: &Entry, absolute: &[u8]) -> Option<PathBuf> {
        // As `quarantine::place` names them: STAMP-ID-N.
        let (_, id) = dir.to_str()?.split_once('-')?;
        let (id, _) = id.rsplit_once('-')?;
        let outer = self.manifest.entry(id)?;
        let (root, path) = self.places.of(outer).ok()?;
        let below = absolute.strip_prefix(native::absolute(root, path).as_os_str().as_bytes())?;
        if !matches!(below.first(), None | Some(b'/')) {
            return None;
        }
        let dir = self.home.join("quarantine").join(dir);
        let copy = Copy { dir: Root::open(&dir).ok()?, name: path.rsplit(|b| *b == b'/').next()? };
        self.is_good(&copy, entry, below).then(|| dir.join(OsStr::from_bytes(&copy.path(below))))
    }
}
