//! The modes of a tree's members that matter beside execute bits: what was closed and is open, and what its owner is shut out
//! of.
//!
//! Modes of plain files are otherwise those of a umask, and no recipe brings them back alike.

use contract::State;
use files::beneath;
use rustix::fs::{FileType, Stat};

use crate::entry::{Member, MemberKind};
use crate::name;
use crate::verify::{Finding, Repair};
use crate::walk::{Walk, What};

/// Findings of one kind that one look tells of.
pub(crate) const SAID: usize = 256;
/// With more closed files than this in a tree it is the umask that closes, not somebody.
const CLOSED: usize = 256;

/// Whether nobody but the owner has any bit.
fn is_closed(mode: u32) -> bool {
    mode.trailing_zeros() >= 6
}

/// What of a tree is recorded because it is closed: plain files, and its own directory.
pub(crate) fn closed(walk: &Walk, own: u32, counts: impl Fn(&crate::walk::Node) -> bool) -> Vec<Member> {
    let files =
        walk.nodes.iter().filter(|n| n.what == What::File && is_closed(n.mode) && n.mode & 0o111 == 0);
    let files: Vec<_> = files.filter(|n| counts(n)).collect();
    let of = |path: &[u8], what| Member { path: path.to_vec(), what };
    let mut members = Vec::new();
    if is_closed(own) {
        members.push(of(b".", MemberKind::Empty(own)));
    }
    if files.len() <= CLOSED {
        members.extend(files.iter().map(|n| of(&n.path, MemberKind::File(n.mode))));
    }
    members
}

/// A recorded member that was closed and is open to others; it is at `path` now, with this mode.
pub(crate) fn opened(member: &Member, now: u32, path: &[u8]) -> Option<Finding> {
    let (MemberKind::File(mode) | MemberKind::Empty(mode)) = member.what else { return None };
    let text = name::encode(&member.path);
    (is_closed(mode) && !is_closed(now)).then(|| Finding {
        state: State::Stripped,
        detail: format!("mode {now:04o} of '{text}', open to others (want {mode:04o})"),
        repair: Repair::Mode(path.to_vec(), mode),
    })
}

/// A directory that its owner, who could give the bits back, can no longer list.
pub(crate) fn shut_dir(stat: &Stat, path: &[u8], text: &str) -> Option<Finding> {
    let (mode, me) = (stat.st_mode & 0o7777, rustix::process::geteuid());
    let is_ours = me.is_root() || stat.st_uid == me.as_raw();
    let is_shut = beneath::kind_of(stat) == FileType::Directory && mode & 0o500 != 0o500;
    (is_shut && is_ours).then(|| Finding {
        state: State::Stripped,
        detail: format!("mode {mode:04o} of directory '{text}': its owner cannot list it"),
        repair: Repair::Mode(path.to_vec(), mode | 0o700),
    })
}

/// Files that their owner can no longer read, unless they were recorded so.
pub(crate) fn shut_files<'a>(
    walk: &'a Walk,
    tree: &'a [u8],
    members: &'a [Member],
) -> impl Iterator<Item = Finding> + 'a {
    let was_shut = |path: &[u8]| {
        members
            .iter()
            .any(|m| m.path == path && matches!(m.what, MemberKind::File(mode) if mode & 0o400 == 0))
    };
    let shut = walk.nodes.iter().filter(|n| n.what == What::File && n.mode & 0o400 == 0);
    shut.filter(move |n| !was_shut(&n.path)).take(SAID).map(move |node| {
        let text = name::encode(&node.path);
        Finding {
            state: State::Stripped,
            detail: format!("mode {:04o} of '{text}': its owner cannot read it", node.mode),
            repair: Repair::Mode([tree, b"/", node.path.as_slice()].concat(), node.mode | 0o600),
        }
    })
}
