//! A git repository in a tree: what git itself needs of it, however its objects are packed by now.
//!
//! A directory is a repository when it has `HEAD`, `objects` and `refs` (gitrepository-layout(5)); a pack's index is written
//! after the pack and removed before it, so that an index alone means that its pack was lost.

use contract::State;

use crate::name;
use crate::tree::find;
use crate::verify::{Finding, Repair};
use crate::walk::{Node, Walk, What};
use crate::work::{Counted, is_record};

/// Most repositories recorded of one tree.
const MOST: usize = 4096;

/// The repositories in a tree that are whole and not empty, as paths of their `.git`; not those that come and go with a
/// build.
pub(crate) fn all(walk: &Walk, counted: Counted) -> Vec<Vec<u8>> {
    let is_one = |node: &&Node| {
        let (above, last) = match node.path.iter().rposition(|b| *b == b'/') {
            Some(at) => (&node.path[..at], &node.path[at + 1..]),
            None => (&b""[..], &node.path[..]),
        };
        let beside = Node { path: above.to_vec(), ..(*node).clone() };
        matches!(node.what, What::Dir { .. })
            && last == b".git"
            && !is_record(above)
            && counted.has(&beside)
            && check(walk, b"", &node.path).is_empty()
    };
    walk.nodes.iter().filter(is_one).map(|n| n.path.clone()).take(MOST).collect()
}

/// What is wrong with the repository at `git`, a path below the tree, which is at `tree` below the workspace.
pub(crate) fn check(walk: &Walk, tree: &[u8], git: &[u8]) -> Vec<Finding> {
    let text = name::encode(git);
    let one = |state, detail| vec![Finding { state, detail, repair: Repair::Recipe }];
    match find(walk, git) {
        None => return one(State::Missing, format!("repository '{text}' absent")),
        Some(Node { what: What::Dir { .. }, .. }) => {}
        // What `git submodule absorbgitdirs` leaves: the path of the repository.
        Some(Node { what: What::File, print, .. }) if print.size > 0 => return Vec::new(),
        Some(_) => return one(State::Corrupt, format!("'{text}' is no repository any more")),
    }
    let lost = |state, what: &str| one(state, format!("repository '{text}': {what}"));
    let below = |name: &str| [git, b"/", name.as_bytes()].concat();
    let is_dir = |name| matches!(find(walk, &below(name)), Some(Node { what: What::Dir { .. }, .. }));
    let filled = |name| match find(walk, &below(name)) {
        Some(Node { what: What::File, print, .. }) => print.size > 0,
        Some(Node { what: What::Link(_), .. }) => true,
        _ => false,
    };
    if !filled("HEAD") {
        return lost(State::Corrupt, "HEAD missing or empty");
    }
    match objects(walk, &below("objects/")) {
        Objects::None => return lost(State::Missing, "its objects are gone"),
        Objects::Lost(path) => {
            return lost(
                State::Missing,
                &format!("'{}' is gone or empty", name::encode(&path[git.len() + 1..])),
            );
        }
        Objects::Some => {}
    }
    if is_dir("refs") {
        return Vec::new();
    }
    if !filled("packed-refs") {
        return lost(State::Missing, "its refs are gone");
    }
    // Packed, the directory was empty; a snapshot without empty directories leaves no repository at all.
    let repair = Repair::EmptyDir([tree, b"/", below("refs").as_slice()].concat(), 0o755);
    vec![Finding { state: State::Missing, detail: format!("directory '{text}/refs' absent"), repair }]
}

enum Objects {
    None,
    Some,
    /// One of them cannot be read any more.
    Lost(Vec<u8>),
}

fn objects(walk: &Walk, prefix: &[u8]) -> Objects {
    let from = walk.nodes.partition_point(|n| n.path.as_slice() < prefix);
    let mut found = Objects::None;
    for node in walk.nodes[from..].iter().take_while(|n| n.path.starts_with(prefix)) {
        if node.what != What::File {
            continue;
        }
        found = Objects::Some;
        let (path, empty) = (&node.path, node.print.size == 0);
        if let Some(stem) = path.strip_suffix(b".idx") {
            let pack = [stem, b".pack"].concat();
            if find(walk, &pack).is_none_or(|p| p.print.size == 0) {
                return Objects::Lost(pack);
            }
        }
        // A loose object is `XX/` and the rest of its name, and is put there whole.
        let rest = &path[prefix.len()..];
        if empty
            && rest.len() > 38
            && rest[2] == b'/'
            && rest.iter().all(|b| b.is_ascii_hexdigit() || *b == b'/')
        {
            return Objects::Lost(path.clone());
        }
    }
    found
}
