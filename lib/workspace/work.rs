//! What of a tree is work, so that bounds count it: what tools keep beside it grows by itself, and would make up for
//! sources that are gone.

use crate::walk::{Node, What};
use crate::wipe;

/// Where version control keeps its own things.
const RECORDS: [&[u8]; 3] = [b".git", b".hg", b".svn"];

/// Which members of a tree its bounds count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Every one.
    All,
    /// Those outside directories that platforms sweep: what entries without the key `git` mean.
    Lasting,
    /// Those outside such directories, caches and the records of version control.
    Work,
    /// The same of a tree that is a build itself: of it the records of version control alone are left out.
    Built,
}

impl Counted {
    /// What an entry at `path` counts. `git`: whether it has that key. With a Merkle root every change is damage anyway.
    pub fn of(path: &[u8], git: bool, merkle: bool) -> Self {
        match (merkle, git, is_swept(path)) {
            (true, ..) => Self::All,
            (false, true, true) => Self::Built,
            (false, true, false) => Self::Work,
            (false, false, _) if wipe::is_volatile(path) => Self::All,
            (false, false, _) => Self::Lasting,
        }
    }

    /// Whether a member counts.
    pub fn has(self, node: &Node) -> bool {
        match self {
            Self::All => true,
            Self::Lasting => !wipe::is_volatile(dirs(node)),
            Self::Work => !is_record(dirs(node)) && !is_swept(dirs(node)),
            Self::Built => !is_record(dirs(node)),
        }
    }

    /// Whether a member is recorded one by one when it is special. A hook is work, though it lies among records; that it
    /// lost its execute bit nobody notices.
    pub fn may_be_member(self, node: &Node) -> bool {
        self.has(node) || (self.has_hook(node) && node.what == What::File)
    }

    fn has_hook(self, node: &Node) -> bool {
        let mut parts = node.path.rsplitn(4, |b| *b == b'/');
        let (name, hooks, git) = (parts.next(), parts.next(), parts.next());
        let above = parts.next().unwrap_or(b"");
        (hooks, git) == (Some(b"hooks"), Some(b".git"))
            && name.is_some_and(|n| !n.ends_with(b".sample"))
            && !is_record(above)
            && (self == Self::Built || !is_swept(above))
    }
}

/// The directories that a member is in; a directory is in itself.
fn dirs(node: &Node) -> &[u8] {
    match node.what {
        What::Dir { .. } => &node.path,
        _ => node.path.iter().rposition(|b| *b == b'/').map_or(b"", |at| &node.path[..at]),
    }
}

/// Whether a component is a directory of version control.
pub(crate) fn is_record(path: &[u8]) -> bool {
    path.split(|b| *b == b'/').any(|c| RECORDS.contains(&c))
}

/// Whether a component is one that platforms sweep, or a tool's cache: `.pytest_cache`, `.mypy_cache`.
fn is_swept(path: &[u8]) -> bool {
    wipe::is_volatile(path)
        || path.split(|b| *b == b'/').any(|c| c.starts_with(b".") && c.ends_with(b"cache"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use files::open::Print;

    fn node(path: &str, what: What) -> Node {
        let print = Print { size: 1, mtime_ns: 0, ctime_ns: 0, inode: 0, device: 0 };
        Node { path: path.into(), what, mode: 0o755, print }
    }

    #[test]
    fn what_grows_by_itself_is_no_work() {
        let work = Counted::of(b"repo", true, false);
        for (path, counts) in [
            ("src/a.c", true),
            ("a/.gitignore", true),
            (".git", true),
            (".cargo/config", true),
            (".git/objects/ab/c", false),
            ("vendor/x/.git/HEAD", false),
            (".hg/store", false),
            ("target/debug/x", false),
            ("a/node_modules/b/c", false),
            (".pytest_cache/v", false),
        ] {
            assert_eq!(work.has(&node(path, What::File)), counts, "{path}");
        }
        assert!(!work.has(&node(".git", What::Dir { empty: true })));
        let built = Counted::of(b"a/build", true, false);
        assert!(built.has(&node("out/x", What::File)) && !built.has(&node(".git/x", What::File)));
        assert_eq!(Counted::of(b"repo", false, false), Counted::Lasting);
        assert_eq!(Counted::of(b"a/build", false, false), Counted::All);
        assert_eq!(Counted::of(b"repo", true, true), Counted::All);
    }

    #[test]
    fn a_hook_is_work_and_a_sample_is_not() {
        let work = Counted::Work;
        for (path, member) in [
            (".git/hooks/pre-commit", true),
            ("sub/.git/hooks/pre-push", true),
            (".git/hooks/pre-commit.sample", false),
            ("node_modules/x/.git/hooks/pre-commit", false),
            (".git/modules/hooks/x", false),
            (".git/objects/x", false),
        ] {
            assert_eq!(work.may_be_member(&node(path, What::File)), member, "{path}");
        }
    }
}
