//! One hash over a whole tree: path, type, mode, content and link target of every member.
//!
//! The tree hash of RFC 6962 section 2.1 over the leaves in the order of their paths' bytes; a leaf is
//! type (1 byte: `f` `d` `l` `o`), mode (4 bytes, big-endian), length of the path (8 bytes), path, then for a file
//! the SHA-256 of its content, for a link its target. Directories count, empty or not.

use files::digest::{Hasher, Sha};

use crate::walk::{Node, What};

/// The leaf of a member. `content` is the hash of a regular file's content and is not used for others.
pub fn leaf(node: &Node, content: Option<Sha>) -> Sha {
    let mut hasher = Hasher::default();
    let (kind, rest): (u8, &[u8]) = match &node.what {
        What::File => (b'f', content.as_ref().map_or(&[], |s| &s.0)),
        What::Dir { .. } => (b'd', &[]),
        What::Link(target) => (b'l', target),
        What::Other => (b'o', &[]),
    };
    hasher.update(&[0, kind]);
    hasher.update(&node.mode.to_be_bytes());
    hasher.update(&(node.path.len() as u64).to_be_bytes());
    hasher.update(&node.path);
    hasher.update(rest);
    hasher.finish()
}

/// The root over leaves in order; without leaves the hash of nothing, as in the RFC.
pub fn root(leaves: &[Sha]) -> Sha {
    match leaves {
        [] => Hasher::default().finish(),
        [one] => *one,
        _ => {
            let split = leaves.len().next_power_of_two() / 2;
            let mut hasher = Hasher::default();
            hasher.update(&[1]);
            hasher.update(&root(&leaves[..split]).0);
            hasher.update(&root(&leaves[split..]).0);
            hasher.finish()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use files::open::Print;

    fn node(path: &str, what: What, mode: u32) -> Node {
        let print = Print { size: 0, mtime_ns: 0, ctime_ns: 0, inode: 0, device: 0 };
        Node { path: path.into(), what, mode, print }
    }

    #[test]
    fn every_part_of_a_member_changes_the_root() {
        let content = Some(Sha([7; 32]));
        let base = [
            (node("a", What::File, 0o644), content),
            (node("b", What::Link(b"a".to_vec()), 0o777), None),
            (node("c", What::Dir { empty: true }, 0o755), None),
        ];
        let root_of =
            |list: &[(Node, Option<Sha>)]| root(&list.iter().map(|(n, c)| leaf(n, *c)).collect::<Vec<_>>());
        let first = root_of(&base);
        let mut changed = Vec::new();
        for change in 0..6 {
            let mut list = base.to_vec();
            match change {
                0 => list[0].0.mode = 0o755,
                1 => list[0].1 = Some(Sha([8; 32])),
                2 => list[1].0.what = What::Link(b"b".to_vec()),
                3 => list[2].0.path = b"d".to_vec(),
                4 => list[2].0.what = What::File,
                _ => drop(list.remove(2)),
            }
            changed.push(root_of(&list));
        }
        assert!(changed.iter().all(|r| *r != first));
        assert_eq!(root(&[]).hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
