//! The walk: what is large, executable, secret or uncommitted, and covered by no entry.

use std::collections::HashSet;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use contract::{Kind, State, home};
use files::beneath::Root;
use workspace::walk::{Node, What};
use workspace::{Manifest, walk, wipe};

/// Larger scripts are programs, and come back by their package.
const SCRIPT: u64 = 256 << 10;
/// More findings of one sort are summed up unless all are asked for.
pub(crate) const MOST: usize = 200;

/// Something that no entry covers.
pub(crate) struct Found {
    pub(crate) state: State,
    pub(crate) kind: Kind,
    pub(crate) path: Vec<u8>,
    pub(crate) why: String,
}

/// Everything that is not covered, in the order of paths; of each sort at most `most`, and then how many more.
pub(crate) fn all(root: &Root, manifest: &Manifest, least: u64, most: usize) -> Vec<Found> {
    let covered = Covered::of(root, manifest);
    let device = root.stat_self().map(|s| files::beneath::print_of(&s).device).ok();
    let own = home::swr_home().ok();
    let own = own.as_deref().and_then(|own| own.strip_prefix(root.path()).ok()).map(Path::as_os_str);
    let enter = |path: &[u8], node: &Node| {
        let base = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
        Some(node.print.device) == device
            && !wipe::VOLATILE.iter().any(|v| v.as_bytes() == base)
            && !matches!(base, b".git" | b".swr" | b".selfheal" | b".swr-canary" | b"proc" | b"sys")
            && own.is_none_or(|own| own.as_bytes() != path)
            && !covered.whole(path)
    };
    let walked = match root.dir() {
        Ok(dir) => walk::tree_where(dir, 1, &enter),
        Err(cause) => return vec![unreadable(b"", &cause)],
    };
    let mut found: Vec<Found> =
        walked.unreadable.iter().take(most).map(|(path, cause)| unreadable(path, cause)).collect();
    if walked.unreadable.len() > most {
        found.push(more(
            State::Unknown,
            &format!("{} more could not be checked", walked.unreadable.len() - most),
        ));
    }
    let (mut told, mut files, mut blobs) = (0_usize, 0_usize, 0_usize);
    for node in walked.nodes.iter().filter(|n| n.what == What::File && !covered.whole(&n.path)) {
        let Some((kind, why)) = worth(root, node, least) else { continue };
        if told < most {
            told += 1;
            found.push(Found { state: State::Untracked, kind, path: node.path.clone(), why });
        } else if kind == Kind::Blob {
            blobs += 1;
        } else {
            files += 1;
        }
    }
    if files + blobs > 0 {
        found.push(more(
            State::Untracked,
            &format!("{files} more files and {blobs} more blobs are untracked"),
        ));
    }
    found
}

/// What stands for findings that are not listed: about the whole, so no path.
fn more(state: State, what: &str) -> Found {
    Found { state, kind: Kind::Manifest, path: b"more".to_vec(), why: format!("{what}; --all lists them") }
}

/// A member that could not be read is said, and is no gap in protection.
fn unreadable(path: &[u8], cause: &io::Error) -> Found {
    let why = format!("could not be checked: {}", contract::message::cause_of(cause));
    let path = if path.is_empty() { b".".to_vec() } else { path.to_vec() };
    Found { state: State::Unknown, kind: Kind::Tree, path, why }
}

/// Why a file is worth an entry, and of which kind.
fn worth(root: &Root, node: &Node, least: u64) -> Option<(Kind, String)> {
    if node.print.size < SCRIPT && wipe::is_secret(&node.path) {
        return Some((Kind::File, "a credential: tier 0, and a recipe that gets it anew".into()));
    }
    if node.print.size >= least && node.print.size > 0 {
        return Some((
            Kind::Blob,
            format!("{} bytes: the first to go when a snapshot has a size cap", node.print.size),
        ));
    }
    if node.mode & 0o111 != 0 && node.print.size < SCRIPT && is_script(root, &node.path) {
        return Some((Kind::File, "a script: execute bits are lost far more often than content".into()));
    }
    None
}

fn is_script(root: &Root, path: &[u8]) -> bool {
    use std::io::Read as _;
    let mut first = [0; 2];
    root.read(path).is_ok_and(|mut file| file.read_exact(&mut first).is_ok()) && first == *b"#!"
}

/// The paths that entries cover, as seen from the root.
struct Covered {
    paths: HashSet<Vec<u8>>,
}

impl Covered {
    fn of(root: &Root, manifest: &Manifest) -> Self {
        let home = home::user_home().ok();
        // An entry of the home may lie below the root too: home /a, root /a/b, entry ~/b/c.
        let below = |path: &[u8]| {
            let Some(rest) = path.strip_prefix(b"~/") else { return Some(path.to_vec()) };
            let absolute = home.as_ref()?.join(std::ffi::OsStr::from_bytes(rest));
            Some(absolute.strip_prefix(root.path()).ok()?.as_os_str().as_bytes().to_vec())
        };
        Self { paths: manifest.lines.iter().filter_map(|l| below(&l.entry.path)).collect() }
    }

    /// Whether an entry is this path or a directory above it.
    fn whole(&self, path: &[u8]) -> bool {
        let slashes = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at);
        slashes.chain([path.len()]).any(|end| self.paths.contains(&path[..end]))
    }
}
