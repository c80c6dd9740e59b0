//! Every member of a directory tree, links never followed, in the order of their paths' bytes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use files::beneath;
use files::open::Print;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

/// Deeper directories are reported as unreadable: each level holds a descriptor.
const DEPTH: usize = 200;
/// Bytes of directory entries read at once.
const LISTING: usize = 16 << 10;
/// Directories listed before other threads join in.
const ALONE: usize = 4;

/// One member of a tree.
#[derive(Clone, Debug)]
pub struct Node {
    /// Relative to the tree, any bytes.
    pub path: Vec<u8>,
    /// What it is.
    pub what: What,
    /// Permission bits, 0 to 0o7777.
    pub mode: u32,
    /// Size, times, inode and device.
    pub print: Print,
}

/// What a member is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// A regular file.
    File,
    /// A directory, and whether nothing is in it.
    Dir {
        /// No member at all.
        empty: bool,
    },
    /// A symbolic link and its target.
    Link(Vec<u8>),
    /// A socket, FIFO or device.
    Other,
}

/// A walked tree.
#[derive(Debug, Default)]
pub struct Walk {
    /// Every member below the tree (not the tree itself), sorted by path.
    pub nodes: Vec<Node>,
    /// Members that could not be read, with the cause: the walk is incomplete there.
    pub unreadable: Vec<(Vec<u8>, io::Error)>,
}

/// Walks the tree below an open directory, `jobs` threads sharing its directories. A member that vanishes meanwhile is
/// left out.
pub fn tree(dir: impl AsFd, jobs: usize) -> Walk {
    tree_where(dir, jobs, &|_, _| true)
}

/// The same, but a directory is entered only when `enter` says so of its path and node; it is listed all the same.
pub fn tree_where(dir: impl AsFd, jobs: usize, enter: Enter<'_>) -> Walk {
    let (mut walk, mut buffer) = (Walk::default(), Vec::with_capacity(LISTING));
    let top = match open_dir(&dir, b".") {
        Ok(dir) => Arc::new(dir),
        Err(cause) => return Walk { nodes: Vec::new(), unreadable: vec![(Vec::new(), cause)] },
    };
    let queue = Queue::default();
    walk.members(&top, &mut Vec::new(), 1, &mut buffer, &mut queue.open().waiting);
    let next = |walk: &mut Walk, buffer: &mut Vec<u8>| {
        let Some(directory) = queue.next() else { return false };
        let found = walk.list(directory, buffer, enter);
        queue.done(found);
        true
    };
    // A thread costs more than a few directories.
    let mut few = ALONE;
    while few > 0 && next(&mut walk, &mut buffer) {
        few -= 1;
    }
    std::thread::scope(|scope| {
        let rest = || {
            let (mut walk, mut buffer) = (Walk::default(), Vec::with_capacity(LISTING));
            while next(&mut walk, &mut buffer) {}
            walk
        };
        let helpers = jobs.saturating_sub(1).min(queue.open().waiting.len());
        // Where no thread can be had, this one does it all.
        let helper = |_| std::thread::Builder::new().spawn_scoped(scope, rest).ok();
        let helpers: Vec<_> = (0..helpers).filter_map(helper).collect();
        walk.add(rest());
        for helper in helpers {
            // A panic there has already ended the process.
            walk.add(helper.join().unwrap_or_default());
        }
    });
    walk.nodes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    walk
}

/// Which directories to enter.
type Enter<'a> = &'a (dyn Fn(&[u8], &Node) -> bool + Sync);

/// A directory to be listed: its name in an open parent, and its path below the tree.
struct Directory {
    parent: Arc<OwnedFd>,
    name: Vec<u8>,
    path: Vec<u8>,
    depth: usize,
}

/// Directories to be listed, shared by threads.
#[derive(Default)]
struct Queue {
    open: Mutex<Open>,
    changed: Condvar,
}

#[derive(Default)]
struct Open {
    /// The last found is the next, so that few descriptors are open.
    waiting: Vec<Directory>,
    /// How many are being listed, each of which may find more.
    listed: usize,
}

impl Queue {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next directory; waits while a listing may still find one, and each listing ends.
    fn next(&self) -> Option<Directory> {
        let more = |open: &mut Open| open.waiting.is_empty() && open.listed > 0;
        let mut open = self.changed.wait_while(self.open(), more).unwrap_or_else(PoisonError::into_inner);
        let directory = open.waiting.pop()?;
        open.listed += 1;
        Some(directory)
    }

    /// One listing ended and found these.
    fn done(&self, found: Vec<Directory>) {
        let mut open = self.open();
        open.listed -= 1;
        open.waiting.extend(found);
        self.changed.notify_all();
    }
}

impl Walk {
    /// Adds what another thread saw; the larger part is not moved.
    fn add(&mut self, mut other: Self) {
        if other.nodes.len() > self.nodes.len() {
            std::mem::swap(self, &mut other);
        }
        self.nodes.extend(other.nodes);
        self.unreadable.extend(other.unreadable);
    }

    /// Lists one directory below the top, its own node included; returns the directories found in it.
    fn list(&mut self, directory: Directory, buffer: &mut Vec<u8>, enter: Enter<'_>) -> Vec<Directory> {
        let Directory { parent, name, mut path, depth } = directory;
        let mut found = Vec::new();
        // Looked at only now: something else may be there since its parent was listed.
        let listed = node(&*parent, &name, &path).and_then(|node| {
            let Some(mut node) = node else { return Ok(None) };
            if matches!(node.what, What::Dir { .. }) && enter(&path, &node) {
                if depth > DEPTH {
                    return Err(Errno::LOOP.into());
                }
                let dir = Arc::new(open_dir(&*parent, &name)?);
                let empty = self.members(&dir, &mut path, depth + 1, buffer, &mut found);
                node.what = What::Dir { empty };
            }
            Ok(Some(node))
        });
        match listed {
            Ok(node) => self.nodes.extend(node),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => self.unreadable.push((path, cause)),
        }
        found
    }

    /// Every member of one directory, its directories to `found` and the others seen; whether there is none.
    fn members(
        &mut self,
        dir: &Arc<OwnedFd>,
        path: &mut Vec<u8>,
        depth: usize,
        buffer: &mut Vec<u8>,
        found: &mut Vec<Directory>,
    ) -> bool {
        let mut entries = RawDir::new(dir, buffer.spare_capacity_mut());
        let mut empty = true;
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(cause) => {
                    self.unreadable.push((path.clone(), cause.into()));
                    break;
                }
            };
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            empty = false;
            let length = path.len();
            if length > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(name);
            // Not every filesystem tells the type; a directory is looked at when its turn comes.
            if entry.file_type() == FileType::Directory || !self.add_other(dir, name, path) {
                let (parent, name) = (Arc::clone(dir), name.to_vec());
                found.push(Directory { parent, name, path: path.clone(), depth });
            }
            path.truncate(length);
        }
        empty
    }

    /// Adds a member that is no directory; whether it was none.
    fn add_other(&mut self, dir: &impl AsFd, name: &[u8], path: &[u8]) -> bool {
        match node(dir, name, path) {
            Ok(Some(Node { what: What::Dir { .. }, .. })) => return false,
            Ok(node) => self.nodes.extend(node),
            Err(cause) => self.unreadable.push((path.to_vec(), cause)),
        }
        true
    }
}

fn open_dir(parent: &impl AsFd, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

/// The node of a name, or `None` when it vanished.
fn node(dir: &impl AsFd, name: &[u8], path: &[u8]) -> io::Result<Option<Node>> {
    let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(cause) => return Err(cause.into()),
    };
    let what = match beneath::kind_of(&stat) {
        FileType::RegularFile => What::File,
        FileType::Directory => What::Dir { empty: false },
        FileType::Symlink => match rustix::fs::readlinkat(dir, name, Vec::new()) {
            Ok(target) => What::Link(target.into_bytes()),
            Err(Errno::NOENT) => return Ok(None),
            Err(cause) => return Err(cause.into()),
        },
        _ => What::Other,
    };
    Ok(Some(Node { path: path.to_vec(), what, mode: stat.st_mode & 0o7777, print: beneath::print_of(&stat) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_home::Home;

    #[test]
    fn every_member_is_seen_once_and_no_link_is_followed() {
        let home = Home::new();
        let dir = &home.dir;
        std::fs::create_dir_all(dir.join("a/empty")).unwrap();
        for name in ["a/x", "b\nc", "-z"] {
            std::fs::File::create_new(dir.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("..", dir.join("a/loop")).unwrap();
        for n in 0..40 {
            std::fs::create_dir_all(dir.join(format!("many/{}/{n}", n % 7))).unwrap();
        }
        let open = || std::fs::File::open(dir).unwrap();
        let paths = |walk: Walk| walk.nodes.into_iter().map(|n| (n.path, n.what)).collect::<Vec<_>>();
        assert_eq!(paths(tree(open(), 1)), paths(tree(open(), 5)));
        let walk = tree_where(open(), 2, &|path, _| path != b"many");
        let seen: Vec<_> = walk.nodes.iter().map(|n| (n.path.as_slice(), n.what.clone())).collect();
        assert_eq!(
            seen,
            [
                (&b"-z"[..], What::File),
                (b"a", What::Dir { empty: false }),
                (b"a/empty", What::Dir { empty: true }),
                (b"a/loop", What::Link(b"..".to_vec())),
                (b"a/x", What::File),
                (b"b\nc", What::File),
                (b"many", What::Dir { empty: false }),
            ]
        );
        assert!(walk.unreadable.is_empty());
    }
}
