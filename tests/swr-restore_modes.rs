//! `swr-restore` after a platform reset permissions: what was closed is closed again, what is shut is opened.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;
mod swr_box;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use private_home::run;
use swr_box::{Box, chmod};

const RESTORE: &str = env!("CARGO_BIN_EXE_swr-restore");

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn reset(b: &Box, bits: &str, names: &[&str]) {
    let status = Command::new("chmod").arg("-R").arg(bits).args(names).current_dir(&b.home.dir).status();
    assert!(status.unwrap().success());
}

/// Two trees, one of them closed, with secrets in both.
fn with_secrets() -> Box {
    let mut b = Box::new();
    b.tree(".ssh", &[("id", "secret", 0o600), ("config", "Host x", 0o644)]);
    chmod(&b.home.path(".ssh"), 0o700);
    b.tree("proj", &[("a/b/plain", "p", 0o644), ("a/token", "t", 0o600), ("run", "r", 0o755)]);
    b.add("ssh", b".ssh", 1, None, &[]).add("proj", b"proj", 1, None, &[]).sign();
    b
}

#[test]
fn what_was_closed_and_is_open_to_all_is_closed_again() {
    for bits in ["777", "755", "a+rX"] {
        let b = with_secrets();
        reset(&b, bits, &[".ssh", "proj"]);
        let out = run(&mut b.home.command(RESTORE));
        assert_eq!(out.code, 0, "{bits}: {}{}", out.out(), out.err());
        assert_eq!(out.out().lines().filter(|l| l.starts_with("healed\ttree\t")).count(), 2, "{}", out.out());
        let closed = [(".ssh", 0o700), (".ssh/id", 0o600), ("proj/a/token", 0o600)];
        for (name, want) in closed {
            assert_eq!(mode(&b.home.path(name)), want, "{bits}: {name}");
        }
        let again = run(&mut b.home.command(RESTORE));
        assert_eq!((again.code, again.out()), (0, String::new()), "{bits}");
    }
}

#[test]
fn a_tree_that_its_owner_is_shut_out_of_is_opened_level_by_level() {
    let b = with_secrets();
    reset(&b, "000", &[".ssh", "proj"]);
    let out = run(&mut b.home.command(RESTORE));
    assert_eq!(out.code, 0, "{}{}", out.out(), out.err());
    for name in [".ssh", "proj", "proj/a", "proj/a/b"] {
        // Root lists what is shut; what it listed was healthy.
        assert!(mode(&b.home.path(name)) & 0o700 == 0o700 || name.contains('/'), "{name}");
    }
    for name in [".ssh/id", "proj/a/token", "proj/a/b/plain", "proj/run"] {
        assert_eq!(mode(&b.home.path(name)) & 0o400, 0o400, "{name}");
    }
    assert_eq!((mode(&b.home.path("proj/a/token")), mode(&b.home.path("proj/run"))), (0o600, 0o755));
}

#[test]
fn a_umask_that_closes_everything_is_no_secret() {
    let mut b = Box::new();
    let names: Vec<String> = (0..300).map(|n| format!("f{n}")).collect();
    let files: Vec<_> = names.iter().map(|n| (n.as_str(), "x", 0o600)).collect();
    b.tree("t", &files);
    b.add("t", b"t", 1, None, &[]).sign();
    assert!(b.manifest.to_bytes().len() < 2000);
    reset(&b, "644", &names.iter().map(|_| "t/f0").take(1).collect::<Vec<_>>());
    assert_eq!(run(&mut b.home.command(RESTORE)).out(), "");
}
