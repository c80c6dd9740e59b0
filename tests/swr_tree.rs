//! Generated trees: the same seed gives the same tree, with every name and member that a workspace can have.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unreachable_pub, reason = "a module of several test programs, exported by none")]
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::swr_box::chmod;

/// Names that broke one tool or another.
pub const NAMES: [&[u8]; 12] = [
    b"plain",
    b"two words",
    b"new\nline",
    b"quo'te\"",
    b"$(touch pwned)",
    b"-rf",
    b"\xff\xfe",
    b"%41",
    b"tab\there",
    b"`touch pwned`",
    b"*",
    "n\u{e9}".as_bytes(),
];

/// xorshift64 (Marsaglia, 2003).
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).unwrap()
    }
}

/// What a generated tree holds, each path relative to the home it was grown in.
#[derive(Default)]
pub struct Grown {
    pub files: Vec<Vec<u8>>,
    pub links: Vec<Vec<u8>>,
    pub empties: Vec<Vec<u8>>,
}

/// Grows a tree at `name` below `home`: files of 1 to 24 bytes, links, empty directories, three levels.
pub fn grow(home: &Path, name: &[u8], rng: &mut Rng) -> Grown {
    let mut grown = Grown::default();
    level(home, name, rng, 0, &mut grown);
    grown
}

fn level(home: &Path, dir: &[u8], rng: &mut Rng, depth: usize, grown: &mut Grown) {
    fs::create_dir(at(home, dir)).unwrap();
    for name in NAMES {
        let path = [dir, b"/", name].concat();
        match rng.below(8) {
            0 => {
                let target: &[u8] = if rng.below(2) == 0 { b"plain" } else { b"dangling\xff" };
                symlink(OsStr::from_bytes(target), at(home, &path)).unwrap();
                grown.links.push(path);
            }
            1 => {
                fs::create_dir(at(home, &path)).unwrap();
                grown.empties.push(path);
            }
            2 if depth < 2 => level(home, &path, rng, depth + 1, grown),
            _ => {
                let length = 1 + rng.below(24);
                let content: Vec<u8> = (0..length).map(|_| rng.next().to_le_bytes()[0]).collect();
                fs::write(at(home, &path), content).unwrap();
                chmod(&at(home, &path), [0o644, 0o755, 0o600, 0o700][rng.below(4)]);
                grown.files.push(path);
            }
        }
    }
}

/// A path of bytes below a directory.
pub fn at(home: &Path, path: &[u8]) -> std::path::PathBuf {
    home.join(OsStr::from_bytes(path))
}
