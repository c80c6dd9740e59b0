//! The healthy disk as an entry: what is there now becomes the truth.

use std::io;

use files::beneath::{self, Root};
use files::open::Print;
use rustix::fs::{FileType, Mode, OFlags};

use crate::entry::{Member, MemberKind, Shape};
use crate::walk::{self, Walk, What};
use crate::work::Counted;
use crate::{content, modes, name, repository, tree, verify};

/// A file at least this large is a blob unless it is asked for otherwise.
pub const BLOB: u64 = 1 << 20;
/// Share of a tree's files and bytes that may go before the lower bounds notice, in per cent.
const TOLERANCE: u64 = 4;
/// Most members recorded of one tree.
const MEMBERS: usize = 4096;

/// What kind of entry to make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum As {
    /// What fits the path: a link or small file, a large file, a directory.
    Fitting,
    /// A file, hashed at every look that its cache does not cover.
    File,
    /// A blob, looked at by size and samples.
    Blob,
    /// A tree.
    Tree,
}

/// What to record of a tree beyond its bounds.
#[derive(Clone, Debug, Default)]
pub struct TreeOptions {
    /// Files that must exist and not be empty.
    pub sentinels: Vec<Vec<u8>>,
    /// File names to count.
    pub count: Vec<Vec<u8>>,
    /// Whether to record a Merkle root.
    pub hash: bool,
    /// Threads that may hash.
    pub jobs: usize,
}

/// What is at `path` in words, where it cannot be the kind of entry that is asked for.
pub fn misfit(root: &Root, path: &[u8], kind: As) -> Option<&'static str> {
    let stat = root.stat(path).ok()?;
    let is = beneath::kind_of(&stat);
    let fits = match kind {
        As::Fitting => true,
        As::File => matches!(is, FileType::RegularFile | FileType::Symlink),
        As::Blob => is == FileType::RegularFile,
        As::Tree => is == FileType::Directory,
    };
    (!fits).then(|| verify::kind_words(&stat))
}

/// Captures `path` below `root`. The error is one line for a person.
pub fn shape(root: &Root, path: &[u8], kind: As, options: &TreeOptions) -> Result<Shape, String> {
    let text = name::encode(path);
    let failed = |cause: &io::Error| format!("cannot read '{text}': {}", verify::words(cause));
    let stat = root.stat(path).map_err(|e| failed(&e))?;
    let mode = stat.st_mode & 0o7777;
    match beneath::kind_of(&stat) {
        FileType::Symlink => {
            let target = root.place(path).and_then(|p| p.link_target()).map_err(|e| failed(&e))?;
            Ok(Shape::Link { target })
        }
        FileType::Directory => directory(root, path, mode, options),
        FileType::RegularFile => {
            let print = beneath::print_of(&stat);
            regular(root, path, kind, mode, &print).map_err(|e| failed(&e))
        }
        _ => Err(format!(
            "'{text}' is {}: only files, links and directories can be protected",
            verify::kind_words(&stat)
        )),
    }
}

fn regular(root: &Root, path: &[u8], kind: As, mode: u32, print: &Print) -> io::Result<Shape> {
    let mut file = root.read(path)?;
    let changed = || io::Error::other("it changed while it was read");
    let sha256 = content::whole(&mut file, print)?.ok_or_else(changed)?;
    let size = print.size;
    if kind == As::Blob || (kind == As::Fitting && size >= BLOB) {
        let samples = content::samples(&file, size, content::SAMPLES)?;
        return Ok(Shape::Blob { size, sha256: Some(sha256), mode, samples });
    }
    Ok(Shape::File { size, sha256, mode, escrow: None })
}

fn directory(root: &Root, path: &[u8], own: u32, options: &TreeOptions) -> Result<Shape, String> {
    let text = name::encode(path);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
    let dir = root
        .open_at(path, flags, Mode::empty())
        .map_err(|cause| format!("cannot read '{text}': {}", verify::words(&cause)))?;
    let walk = walk::tree(&dir, options.jobs);
    if let Some((member, cause)) = walk.unreadable.first() {
        return Err(format!("cannot read '{text}/{}': {}", name::encode(member), verify::words(cause)));
    }
    for sentinel in &options.sentinels {
        let node = walk.nodes.iter().find(|n| n.path == *sentinel);
        let what = match node.map(|n| (&n.what, n.print.size)) {
            None => "is missing",
            Some((What::File, 0)) => "is empty",
            Some((What::Other, _)) => "is a FIFO, socket or device",
            Some(_) => continue,
        };
        let sentinel = name::encode(sentinel);
        return Err(format!("the sentinel '{sentinel}' {what} in '{text}'"));
    }
    let counted = Counted::of(path, !options.hash, options.hash);
    let (files, bytes) = tree::totals(&walk, counted);
    let count = |file: &Vec<u8>| (file.clone(), bound(tree::named(&walk, file, counted)));
    let count = options.count.iter().map(count).collect();
    let merkle = if options.hash {
        let root = tree::merkle_root(root, path, &walk, options.jobs.max(1));
        Some(root.map_err(|cause| format!("cannot read '{text}': {}", verify::words(&cause)))?)
    } else {
        None
    };
    Ok(Shape::Tree {
        sentinels: options.sentinels.clone(),
        files: bound(files),
        bytes: bound(bytes),
        count,
        members: members(&walk, counted, own & 0o7777),
        git: (!options.hash).then(|| repository::all(&walk, counted)),
        merkle,
    })
}

/// The lower bound of a count: few things must all be there, of many some may go.
fn bound(count: u64) -> u64 {
    count - count / 100 * TOLERANCE
}

/// What a platform loses silently: execute bits, links, empty directories, and that something was closed to others.
fn members(walk: &Walk, counted: Counted, own: u32) -> Vec<Member> {
    let special = walk.nodes.iter().filter(|n| counted.may_be_member(n)).filter_map(|node| {
        let what = match &node.what {
            What::File if node.mode & 0o111 != 0 => MemberKind::File(node.mode),
            What::Dir { empty: true } => MemberKind::Empty(node.mode),
            What::Link(target) => MemberKind::Link(target.clone()),
            _ => return None,
        };
        Some(Member { path: node.path.clone(), what })
    });
    let mut members = modes::closed(walk, own, |node| counted.has(node));
    members.extend(special);
    members.truncate(MEMBERS);
    members.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    members
}
