//! `swr-restore` as a process: a healthy generated tree is not touched, and a full disk costs no record.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;
mod swr_box;
mod swr_tree;

use std::fs;
use std::process::Stdio;

use private_home::{appears, run};
use swr_box::{Box, chmod};
use swr_tree::{Rng, grow};
use workspace::Manifest;
use workspace::capture::TreeOptions;

const RESTORE: &str = env!("CARGO_BIN_EXE_swr-restore");

#[test]
fn a_healthy_tree_is_not_touched_by_a_restore() {
    for seed in 11..=13 {
        let mut b = Box::new();
        let tree = grow(&b.home.dir, b"w", &mut Rng(seed));
        let hash = TreeOptions { hash: true, jobs: 1, ..TreeOptions::default() };
        b.add_tree("hash", b"w", 2, Some("touch pwned"), &[], &hash);
        for (n, path) in tree.files.iter().chain(&tree.links).enumerate() {
            b.add(&format!("f{n}"), path, 1, Some("touch pwned"), &["hash"]);
        }
        b.sign();
        let census = || b.home.census().into_iter().filter(|l| !l.contains("/.swr")).collect::<Vec<_>>();
        let before = census();
        for args in [&[][..], &["--dry-run"]] {
            let out = run(b.home.command(RESTORE).args(args));
            assert_eq!((out.code, out.out().as_str()), (0, ""), "seed {seed}: {}", out.err());
        }
        assert_eq!(census(), before, "seed {seed}");
    }
}

/// A filesystem of 256 KiB in the private home, gone with the test.
struct Small(std::path::PathBuf);

impl Small {
    fn mount(at: std::path::PathBuf) -> Option<Self> {
        fs::create_dir_all(&at).unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256k,mode=0700", "tmpfs"]).arg(&at);
        mount.output().is_ok_and(|o| o.status.success()).then_some(Self(at))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn what_was_moved_aside_on_another_filesystem_is_found_again_after_a_kill() {
    let mut b = Box::new();
    let Some(small) = Small::mount(b.home.path("small")) else {
        eprintln!("skipped: a small filesystem cannot be mounted here, nothing was on another one");
        return;
    };
    b.tree("small/t", &[("s", "sentinel", 0o644), ("mine", "user work", 0o644)]);
    let options = TreeOptions { sentinels: vec![b"s".to_vec()], jobs: 1, ..TreeOptions::default() };
    let recipe = "test -e started || { touch started; sleep 60; }; mkdir small/t; echo >small/t/mine; printf sentinel >small/t/s";
    b.add_tree("t", b"small/t", 2, Some(recipe), &[], &options).sign();
    fs::write(small.0.join("t/s"), "").unwrap();
    let mut first = b.home.command(RESTORE).stderr(Stdio::null()).spawn().unwrap();
    appears(&b.home.path("started"));
    first.kill().unwrap();
    first.wait().unwrap();
    let out = run(b.home.command(RESTORE).arg("--resume"));
    let place = small.0.join("t.aside-1");
    assert!(out.err().contains(&format!("what was at t is kept at '{}'", place.display())), "{}", out.err());
    assert_eq!(out.err().matches("is kept at").count(), 1, "{}", out.err());
    assert_eq!(fs::read_to_string(place.join("mine")).unwrap(), "user work");
}

#[test]
fn a_full_disk_leaves_manifest_and_journal_readable_and_the_verdict_said() {
    let mut b = Box::new();
    let Some(small) = Small::mount(b.home.path("small")) else {
        eprintln!("skipped: a small filesystem cannot be mounted here, no disk was full");
        return;
    };
    let swr = small.0.join("swr");
    let status =
        std::process::Command::new("cp").arg("-a").arg(b.home.path(".swr")).arg(&swr).status().unwrap();
    assert!(status.success());
    b.home.file("small/f", "content");
    b.home.file("small/t/s", "sentinel");
    b.home.script("small/x", "true");
    let options = TreeOptions { sentinels: vec![b"s".to_vec()], jobs: 1, ..TreeOptions::default() };
    b.add("f", b"small/f", 1, Some("printf content >small/f"), &[]);
    b.add_tree("t", b"small/t", 2, Some("mkdir -p small/t; printf sentinel >small/t/s"), &[], &options);
    b.add("x", b"small/x", 3, None, &[]);
    b.sign();
    fs::copy(b.home.path(".swr/manifest.jsonl"), swr.join("manifest.jsonl")).unwrap();
    let restore = || run(b.home.command(RESTORE).env("SWR_HOME", &swr));
    // Fills it to the last byte: the write that fails has written what fitted.
    let to_the_last_byte = || assert!(fs::write(small.0.join("filler"), vec![1; 512 << 10]).is_err());
    let damage = || {
        fs::write(small.0.join("f"), "").unwrap();
        fs::remove_file(small.0.join("t/s")).unwrap();
        chmod(&small.0.join("x"), 0o644);
        to_the_last_byte();
    };
    let manifest = fs::read(swr.join("manifest.jsonl")).unwrap();
    damage();
    // Not even the line that remembers this manifest fits: nothing is run, and that is a verdict.
    let first = restore();
    assert_eq!((first.code, first.field(1).as_str()), (2, "failed"), "{}{}", first.out(), first.err());
    assert!(first.out().contains("no space left"), "{}", first.out());
    assert!(first.err().contains("hint: "), "{}", first.err());
    fs::remove_file(small.0.join("filler")).unwrap();
    assert_eq!(restore().code, 0, "while there is room");
    damage();
    // Not even the journal's first line fits: nothing is moved aside, and what needs no room comes back.
    let full = restore();
    assert_eq!(full.code, 2, "{}{}", full.out(), full.err());
    let said: Vec<String> =
        full.out().lines().map(|l| l.split('\t').take(3).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(said, ["failed file f", "failed tree t", "healed file x"], "{}", full.err());
    assert!(full.out().contains("no space left"), "{}", full.out());
    assert_eq!(fs::read(swr.join("manifest.jsonl")).unwrap(), manifest);
    assert!(Manifest::parse(&manifest).is_ok());
    let journal = fs::read(swr.join("journal.jsonl")).unwrap();
    let whole = journal.iter().rposition(|b| *b == b'\n').map_or(&[][..], |end| &journal[..end]);
    for line in whole.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        assert!(workspace::json::parse(line).is_ok(), "{}", String::from_utf8_lossy(line));
    }
    fs::remove_file(small.0.join("filler")).unwrap();
    let after = restore();
    assert_eq!(after.code, 0, "with room again: {}{}", after.out(), after.err());
    assert_eq!(fs::read_to_string(small.0.join("f")).unwrap(), "content");
    assert_eq!(fs::read_to_string(small.0.join("t/s")).unwrap(), "sentinel");
}
