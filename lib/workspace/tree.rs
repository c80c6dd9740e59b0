//! A directory tree against its entry: sentinels, lower bounds, recorded members, and the Merkle root.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use contract::State;
use files::beneath::Root;
use files::digest::Sha;
use rustix::fs::{Mode, OFlags, Stat};

use crate::entry::{Entry, Member, MemberKind, Shape};
use crate::verify::{Depth, Proof, Repair, Result};
use crate::walk::{self, Node, Walk, What};
use crate::work::Counted;
use crate::{cache, content, merkle, modes, name, repository};

/// Looks at a tree; `path` is a directory, and `stat` of it.
pub(crate) fn check(
    root: &Root,
    entry: &Entry,
    path: &[u8],
    stat: &Stat,
    depth: &Depth,
    result: &mut Result,
) {
    let Shape::Tree { sentinels, files, bytes, count, members, git, merkle } = &entry.shape else { return };
    if let Some(shut) = modes::shut_dir(stat, path, ".") {
        result.findings.push(shut);
        return;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
    let dir = match root.open_at(path, flags, Mode::empty()) {
        Ok(dir) => dir,
        Err(cause) => return result.unknown("", &cause),
    };
    let walk = walk::tree(&dir, depth.jobs);
    let counted = Counted::of(path, git.is_some(), merkle.is_some());
    let (have_files, have_bytes) = totals(&walk, counted);
    for (member, cause) in walk.unreadable.iter().take(modes::SAID) {
        let (text, at) = (name::encode(member), [path, b"/", member].concat());
        let shut = root.stat(&at).ok().and_then(|stat| modes::shut_dir(&stat, &at, &text));
        match shut {
            Some(finding) => result.findings.push(finding),
            None => result.unknown(&format!("'{text}': "), cause),
        }
    }
    if !walk.unreadable.is_empty() {
        return;
    }
    for sentinel in sentinels {
        check_sentinel(&walk, sentinel, result);
    }
    let mut bound = |what: &str, have: u64, want: u64| {
        if have < want {
            let detail = format!("{have} {what} (want at least {want})");
            result.add(State::Short, Repair::Recipe, detail);
        }
    };
    bound("files", have_files, *files);
    bound("bytes", have_bytes, *bytes);
    for (file, want) in count {
        bound(&format!("files named '{}'", name::encode(file)), named(&walk, file, counted), *want);
    }
    for git in git.iter().flatten() {
        result.findings.extend(repository::check(&walk, path, git));
    }
    for member in members {
        if member.path == b"." {
            result.findings.extend(modes::opened(member, stat.st_mode & 0o7777, path));
        } else {
            check_member(&walk, path, member, result);
        }
    }
    result.findings.extend(modes::shut_files(&walk, path, members));
    let proof =
        |content| Proof::Tree { files: have_files, bytes: have_bytes, sentinels: sentinels.len(), content };
    result.proof = proof(false);
    if let Some(want) = merkle
        && check_root(root, entry, path, &walk, *want, depth, result)
    {
        result.proof = proof(true);
    }
}

/// Number of counted regular files and their bytes.
pub(crate) fn totals(walk: &Walk, counted: Counted) -> (u64, u64) {
    let files = walk.nodes.iter().filter(|n| n.what == What::File && counted.has(n));
    files.fold((0, 0), |(count, bytes), node| (count + 1, bytes + node.print.size))
}

/// Number of counted regular files with this name, wherever they are.
pub(crate) fn named(walk: &Walk, file: &[u8], counted: Counted) -> u64 {
    let is = |node: &&Node| node.what == What::File && node.path.rsplit(|b| *b == b'/').next() == Some(file);
    walk.nodes.iter().filter(|n| is(n) && counted.has(n)).count() as u64
}

/// The member at a path.
pub(crate) fn find<'a>(walk: &'a Walk, path: &[u8]) -> Option<&'a Node> {
    walk.nodes.binary_search_by(|n| n.path.as_slice().cmp(path)).ok().map(|at| &walk.nodes[at])
}

fn check_sentinel(walk: &Walk, path: &[u8], result: &mut Result) {
    let text = name::encode(path);
    let (state, detail) = match find(walk, path) {
        None => (State::Corrupt, format!("sentinel missing: {text}")),
        Some(Node { what: What::File, print, .. }) if print.size == 0 => {
            (State::Corrupt, format!("sentinel empty: {text}"))
        }
        Some(Node { what: What::Dir { empty: true }, .. }) => {
            (State::Corrupt, format!("sentinel empty: {text}"))
        }
        Some(_) => return,
    };
    result.add(state, Repair::Recipe, detail);
}

fn check_member(walk: &Walk, tree: &[u8], member: &Member, result: &mut Result) {
    let text = name::encode(&member.path);
    let path = [tree, b"/", member.path.as_slice()].concat();
    let found = find(walk, &member.path);
    match (&member.what, found) {
        (MemberKind::File(mode), Some(node)) if node.what == What::File => {
            if node.mode & 0o111 == mode & 0o111 {
                result.findings.extend(modes::opened(member, node.mode, &path));
            } else {
                let detail =
                    format!("mode {:04o} of '{text}', execute bit differs (want {mode:04o})", node.mode);
                result.add(State::Stripped, Repair::Mode(path, *mode), detail);
            }
        }
        (MemberKind::File(_), None) => {
            result.add(State::Missing, Repair::Recipe, format!("file '{text}' absent"));
        }
        (MemberKind::File(_), Some(_)) => {
            result.add(State::Corrupt, Repair::Recipe, format!("'{text}' is no file any more"));
        }
        (MemberKind::Empty(mode), None) => {
            result.add(State::Missing, Repair::EmptyDir(path, *mode), format!("directory '{text}' absent"));
        }
        (MemberKind::Empty(_), Some(node)) => {
            if !matches!(node.what, What::Dir { .. }) {
                result.add(State::Corrupt, Repair::Recipe, format!("'{text}' is no directory any more"));
            }
        }
        (MemberKind::Link(target), found) => {
            let want = name::encode(target);
            let repair = Repair::Link(path, target.clone());
            match found.map(|n| &n.what) {
                Some(What::Link(now)) if now == target => {}
                Some(What::Link(now)) => {
                    let detail = format!("link '{text}' to '{}' (want '{want}')", name::encode(now));
                    result.add(State::Corrupt, repair, detail);
                }
                Some(_) => {
                    result.add(
                        State::Corrupt,
                        repair,
                        format!("link '{text}' replaced (want a link to '{want}')"),
                    );
                }
                None => result.add(State::Missing, repair, format!("link '{text}' absent (want '{want}')")),
            }
        }
    }
}

/// Whether the root is the wanted one; what is wrong is added to the result.
fn check_root(
    root: &Root,
    entry: &Entry,
    path: &[u8],
    walk: &Walk,
    want: Sha,
    depth: &Depth,
    result: &mut Result,
) -> bool {
    let fingerprint = cache::fingerprint(walk.nodes.iter().map(|n| &n.print));
    let cached = depth.cache.and_then(|c| c.get(&entry.id, fingerprint, depth.now));
    let found = match cached {
        Some(sha) => Ok(sha),
        None => merkle_root(root, path, walk, depth.jobs),
    };
    match found {
        Err(cause) => result.unknown("", &cause),
        Ok(sha) if sha == want => {
            let settled =
                cached.is_none() && cache::is_settled(walk.nodes.iter().map(|n| &n.print), depth.now);
            result.hashed = settled.then(|| Box::new((fingerprint, sha)));
            return true;
        }
        // Named findings say more than a root that differs.
        Ok(_) if result.findings.is_empty() => {
            let detail =
                "content differs: a file or its mode was changed, or one was added or removed".to_owned();
            result.add(State::Corrupt, Repair::Recipe, detail);
        }
        Ok(_) => {}
    }
    false
}

/// The Merkle root of a walked tree, file contents hashed by `jobs` threads.
pub fn merkle_root(root: &Root, path: &[u8], walk: &Walk, jobs: usize) -> io::Result<Sha> {
    let next = AtomicUsize::new(0);
    let leaves = Mutex::new(vec![Sha([0; 32]); walk.nodes.len()]);
    let failure: Mutex<Option<io::Error>> = Mutex::new(None);
    let work = || {
        let mut done = Vec::new();
        while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < walk.nodes.len()) {
            match leaf(root, path, &walk.nodes[at]) {
                Ok(sha) => done.push((at, sha)),
                Err(cause) => {
                    next.store(walk.nodes.len(), Ordering::Relaxed);
                    *failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(cause);
                }
            }
        }
        let mut leaves = leaves.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for (at, sha) in done {
            leaves[at] = sha;
        }
    };
    std::thread::scope(|scope| {
        // A thread costs more than hashing a handful of files.
        for _ in 1..jobs.min(walk.nodes.len() / 64) {
            // Where no thread can be had, this one does it all.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    match failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some(cause) => Err(cause),
        None => Ok(merkle::root(&leaves.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))),
    }
}

fn leaf(root: &Root, tree: &[u8], node: &Node) -> io::Result<Sha> {
    if node.what != What::File {
        return Ok(merkle::leaf(node, None));
    }
    let path = [tree, b"/", node.path.as_slice()].concat();
    let mut file = root.read(&path)?;
    let sha = content::whole(&mut file, &node.print)?
        .ok_or_else(|| io::Error::other("it changed while it was read"))?;
    Ok(merkle::leaf(node, Some(sha)))
}
