//! Every member of a directory tree, links never followed, in the order of their paths' bytes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use files::beneath;
use files::open::Print;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};

/// Deeper directories are reported as unreadable: each level holds a descriptor.
const DEPTH: usize = 200;

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

/// Walks the tree below an open directory. A member that vanishes meanwhile is left out.
pub fn tree(dir: impl AsFd) -> Walk {
    tree_where(dir, &|_, _| true)
}

/// The same, but a directory is entered only when `enter` says so of its path and node; it is listed all the same.
pub fn tree_where(dir: impl AsFd, enter: Select<'_>) -> Walk {
    let mut walk = Walk::default();
    descend(&mut walk, &dir, &mut Vec::new(), 0, enter);
    walk.nodes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    walk
}

/// Which directories to enter.
type Select<'a> = &'a dyn Fn(&[u8], &Node) -> bool;

/// Reads one directory and then those below it; returns whether it has no member.
fn descend(walk: &mut Walk, dir: &impl AsFd, path: &mut Vec<u8>, depth: usize, select: Select<'_>) -> bool {
    let mut buffer = Vec::with_capacity(16 << 10);
    let mut entries = RawDir::new(dir, buffer.spare_capacity_mut());
    let mut directories: Vec<Vec<u8>> = Vec::new();
    let mut empty = true;
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(cause) => {
                walk.unreadable.push((path.clone(), cause.into()));
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
        match node(dir, name, path) {
            Ok(Some(node)) if matches!(node.what, What::Dir { .. }) => directories.push(name.to_vec()),
            Ok(Some(node)) => walk.nodes.push(node),
            Ok(None) => {}
            Err(cause) => walk.unreadable.push((path.clone(), cause)),
        }
        path.truncate(length);
    }
    for name in directories {
        let length = path.len();
        if length > 0 {
            path.push(b'/');
        }
        path.extend_from_slice(&name);
        enter(walk, dir, &name, path, depth + 1, select);
        path.truncate(length);
    }
    empty
}

fn enter(
    walk: &mut Walk,
    parent: &impl AsFd,
    name: &[u8],
    path: &mut Vec<u8>,
    depth: usize,
    select: Select<'_>,
) {
    let node = node(parent, name, path);
    if let Ok(Some(node)) = &node
        && !select(path, node)
    {
        walk.nodes.push(node.clone());
        return;
    }
    let opened = if depth > DEPTH { Err(io::Error::from_raw_os_error(40)) } else { open_dir(parent, name) };
    match (opened, node) {
        (Ok(dir), Ok(Some(mut node))) => {
            let at = walk.nodes.len();
            node.what = What::Dir { empty: false };
            walk.nodes.push(node);
            if descend(walk, &dir, path, depth, select) {
                walk.nodes[at].what = What::Dir { empty: true };
            }
        }
        (_, Ok(None)) => {}
        (Err(cause), _) if cause.kind() == io::ErrorKind::NotFound => {}
        (Err(cause), _) | (_, Err(cause)) => walk.unreadable.push((path.clone(), cause)),
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
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(cause) => return Err(cause.into()),
    };
    let what = match beneath::kind_of(&stat) {
        FileType::RegularFile => What::File,
        FileType::Directory => What::Dir { empty: false },
        FileType::Symlink => match rustix::fs::readlinkat(dir, name, Vec::new()) {
            Ok(target) => What::Link(target.into_bytes()),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
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
        let walk = tree(std::fs::File::open(dir).unwrap());
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
            ]
        );
        assert!(walk.unreadable.is_empty());
    }
}
