//! `swr-escrow` as a process: what is embedded comes back exactly, and nothing else does.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;
mod swr_box;

use std::fs;
use std::time::Duration;

use private_home::{Output, run_with};
use swr_box::Box;
use workspace::capture::{self, As, TreeOptions};
use workspace::{Manifest, Shape, escrow};

fn run(b: &Box, manifest: &[u8], args: &[&str]) -> Output {
    let mut command = b.home.command(env!("CARGO_BIN_EXE_swr-escrow"));
    run_with(command.args(args), manifest, Duration::from_secs(60))
}

fn example() -> Box {
    let mut b = Box::new();
    b.home.file("f", "line\n\0\u{e9}".repeat(99));
    b.home.file("d/x", "x");
    b.home.file("none", "");
    b.add("f", b"f", 1, None, &[]).add("d", b"d", 2, None, &[]).add("none", b"none", 1, None, &[]).sign();
    b
}

#[test]
fn what_was_embedded_comes_back_byte_by_byte_without_the_file() {
    let b = example();
    let out = run(&b, &b.manifest.to_bytes(), &["f", "none"]);
    assert_eq!(out.code, 0, "{}", out.err());
    let manifest = Manifest::parse(&out.stdout).unwrap();
    assert!(manifest.signatures.is_empty());
    let raw = |of: &Manifest| of.raw(&of.lines[1]).to_vec();
    assert_eq!(raw(&manifest), raw(&b.manifest), "other lines keep their bytes");
    let content = fs::read(b.home.path("f")).unwrap();
    fs::remove_file(b.home.path("f")).unwrap();
    let cat = run(&b, &out.stdout, &["--cat", "f"]);
    assert_eq!((cat.code, cat.stdout), (0, content));
    assert_eq!(run(&b, &out.stdout, &["--cat", "none"]).code, 0);
    let list = run(&b, &out.stdout, &["--list"]);
    assert_eq!((list.code, list.out().lines().count()), (0, 2), "{}", list.out());
    let dropped = run(&b, &out.stdout, &["--drop", "f", "none"]);
    assert_eq!(dropped.stdout, b.manifest.body, "as before it was embedded");
    assert_eq!(run(&b, &dropped.stdout, &["--cat", "f"]).code, 64);
}

#[test]
fn a_file_that_is_not_as_its_entry_says_is_not_embedded() {
    let b = example();
    for content in ["", "changed"] {
        b.home.file("f", content);
        let out = run(&b, &b.manifest.to_bytes(), &["f"]);
        assert_eq!((out.code, out.out().as_str()), (74, ""), "{}", out.err());
    }
    fs::remove_file(b.home.path("f")).unwrap();
    assert_eq!(run(&b, &b.manifest.to_bytes(), &["f"]).code, 74);
    std::os::unix::fs::symlink("/etc/passwd", b.home.path("f")).unwrap();
    assert_eq!(run(&b, &b.manifest.to_bytes(), &["f"]).code, 74);
}

#[test]
fn altered_content_is_refused_and_named() {
    let b = example();
    let out = run(&b, &b.manifest.to_bytes(), &["f"]);
    let mut manifest = Manifest::parse(&out.stdout).unwrap();
    for text in [escrow::pack(b"other").unwrap(), "not base64!".into(), String::new(), "A".repeat(900_000)] {
        let mut entry = manifest.entry("f").unwrap().clone();
        let Shape::File { escrow, .. } = &mut entry.shape else { panic!() };
        *escrow = Some(text);
        manifest.put(entry);
        let cat = run(&b, &manifest.to_bytes(), &["--cat", "f"]);
        assert_eq!((cat.code, cat.out().as_str()), (4, ""), "{}", cat.err());
        let list = run(&b, &manifest.to_bytes(), &["--list"]);
        assert_eq!((list.code, list.field(1).as_str()), (4, "bad"), "{}", list.out());
    }
}

#[test]
fn more_than_the_bounds_is_not_embedded() {
    let mut b = Box::new();
    let root = files::beneath::Root::open(&b.home.dir).unwrap();
    let ids: Vec<String> = (0..9).map(|n| format!("f{n}")).collect();
    for id in &ids {
        b.home.file(id, id.repeat(131_072));
        b.add(id, id.as_bytes(), 1, None, &[]);
    }
    b.home.file("big", "x".repeat(262_145));
    let shape = capture::shape(&root, b"big", As::File, &TreeOptions::default()).unwrap();
    b.put("big", b"big", 1, shape, None, &[]).sign();
    let all: Vec<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(run(&b, &b.manifest.to_bytes(), &all[..8]).code, 0);
    for args in [&all[..], &["big"]] {
        let out = run(&b, &b.manifest.to_bytes(), args);
        assert_eq!((out.code, out.out().as_str()), (64, ""), "{args:?}");
        assert!(out.err().contains("more than"), "{}", out.err());
    }
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    let b = example();
    for args in
        [&[][..], &["none-such"], &["d"], &["--cat"], &["--cat", "f", "d"], &["--list", "f"], &["--cat", "f"]]
    {
        let out = run(&b, &b.manifest.to_bytes(), args);
        assert_eq!((out.code, out.out().as_str()), (64, ""), "{args:?}");
    }
    assert_eq!(run(&b, b"{}\n", &["f"]).code, 4);
}
