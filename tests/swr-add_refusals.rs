//! What `swr-add` refuses as wrong usage: a kind that the path is not, needs that nothing can satisfy.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use private_home::{Home, Output, run, run_with};
use workspace::Manifest;

const ADD: &str = env!("CARGO_BIN_EXE_swr-add");

fn add(home: &Home, manifest: &[u8], args: &[&str]) -> Output {
    run_with(home.command(ADD).args(args), manifest, Duration::from_secs(60))
}

fn added(home: &Home, manifest: &[u8], args: &[&str]) -> Vec<u8> {
    let out = add(home, manifest, args);
    assert_eq!(out.code, 0, "{args:?}: {}", out.err());
    out.stdout
}

/// Wrong usage, in two lines, and nothing on standard output.
fn refused(home: &Home, manifest: &[u8], args: &[&str], words: &str) {
    let out = add(home, manifest, args);
    assert_eq!((out.code, out.out().as_str()), (64, ""), "{args:?}: {}", out.err());
    assert_eq!(out.err().lines().count(), 2, "{}", out.err());
    assert!(out.err().contains(words) && out.err().contains("\nhint: "), "{words}: {}", out.err());
}

#[test]
fn a_file_is_no_tree_and_a_directory_no_file_whatever_kind_is_asked_for() {
    let home = Home::new();
    home.file("f", "content");
    home.file("d/x", "x");
    symlink("f", home.path("l")).unwrap();
    for (path, kind, what) in [
        ("f", "tree", "a file"),
        ("d", "file", "a directory"),
        ("d", "blob", "a directory"),
        ("l", "tree", "a link"),
        ("l", "blob", "a link"),
    ] {
        refused(
            &home,
            b"",
            &[path, "--kind", kind],
            &format!("'{path}' is {what}: --kind {kind} does not fit"),
        );
    }
    for (path, kind) in [("f", "file"), ("f", "blob"), ("d", "tree"), ("l", "file")] {
        let manifest = Manifest::parse(&added(&home, b"", &[path, "--kind", kind])).unwrap();
        assert_eq!(manifest.lines[0].entry.kind().word(), kind);
    }
}

#[test]
fn needs_in_a_circle_are_refused_when_they_are_made() {
    let home = Home::new();
    for name in ["a", "b", "c"] {
        home.file(name, name);
    }
    refused(&home, b"", &["a", "--needs", "a"], "cycle of needs: a -> a");
    let one = added(&home, b"", &["c"]);
    let two = added(&home, &one, &["b", "--needs", "c"]);
    let three = added(&home, &two, &["a", "--needs", "b"]);
    refused(&home, &three, &["c", "--needs", "a"], "cycle of needs: c -> a -> b -> c");
    // Turned round: the old need goes first.
    let turned = added(&home, &three, &["b", "--needs", ""]);
    assert!(Manifest::parse(&turned).unwrap().entry("b").unwrap().needs.is_empty());
    added(&home, &turned, &["c", "--needs", "a"]);
}

#[test]
fn a_need_that_no_entry_is_is_refused_and_so_is_taking_away_what_is_needed() {
    let home = Home::new();
    for name in ["a", "b", "c"] {
        home.file(name, name);
    }
    refused(&home, b"", &["a", "--needs", "b"], "a needs 'b', which no entry is");
    refused(&home, b"", &["a", "--needs", "no id"], "'no id' is not an id");
    let both = added(&home, &added(&home, b"", &["b"]), &["a", "--needs", "b"]);
    refused(&home, &both, &["--remove", "b"], "a needs 'b', which no entry is");
    refused(&home, &both, &["b", "--id", "renamed"], "a needs 'b', which no entry is");
    added(&home, &both, &["--remove", "a", "b"]);
    // What was wrong before does not stop a change of something else.
    let text = String::from_utf8(both).unwrap().replace("\"needs\":[\"b\"]", "\"needs\":[\"b\",\"gone\"]");
    added(&home, text.as_bytes(), &["c"]);
    added(&home, text.as_bytes(), &["--retighten"]);
}

#[test]
fn a_terminal_is_not_read_as_a_manifest() {
    let home = Home::new();
    home.file("f", "content");
    for args in [&["f"][..], &["--empty"], &["--retighten"]] {
        let terminal = fs::File::open("/dev/ptmx").unwrap();
        let out = run(home.command(ADD).args(args).stdin(terminal));
        assert_eq!((out.code, out.out().as_str()), (64, ""), "{args:?}: {}", out.err());
        assert!(out.err().contains("is a terminal") && out.err().contains("\nhint: "), "{}", out.err());
    }
}

#[test]
fn what_swr_keeps_itself_is_no_entry_that_is_damaged_for_ever() {
    let home = Home::new();
    home.file(".swr/manifest.jsonl", "");
    home.file("state/swr/manifest.jsonl", "");
    home.file("state/mine", "mine");
    let absolute = home.path(".swr").display().to_string();
    for path in [".swr", "./.swr/", "~/.swr", ".swr/manifest.jsonl", &absolute] {
        refused(&home, b"", &[path], "of what swr keeps");
    }
    let elsewhere = |path: &str| {
        let mut command = home.command(ADD);
        run_with(command.env("SWR_HOME", home.path("state/swr")).arg(path), b"", Duration::from_secs(60))
    };
    assert!(elsewhere("state").err().contains("holds what swr keeps"), "{}", elsewhere("state").err());
    assert_eq!(
        [elsewhere("state").code, elsewhere("state/swr").code, elsewhere("state/mine").code],
        [64, 64, 0]
    );
}

#[test]
fn a_sentinel_that_is_none_is_named_with_its_cause() {
    let home = Home::new();
    home.file("d/x", "x");
    home.file("d/empty", "");
    let fifo = home.path("d/fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for (sentinel, what) in [("gone", "is missing"), ("empty", "is empty"), ("fifo", "is a FIFO")] {
        let out = add(&home, b"", &["d", "--sentinel", sentinel]);
        assert_eq!((out.code, out.out().as_str()), (74, ""), "{}", out.err());
        assert!(out.err().contains(&format!("the sentinel '{sentinel}' {what}")), "{}", out.err());
        assert!(out.err().contains("hint: ") && !out.err().contains("absolute path"), "{}", out.err());
    }
    let gone = add(&home, b"", &["nope", "--sentinel", "x"]);
    assert!(gone.code == 74 && gone.err().contains("hint: name what is there"), "{}", gone.err());
}

#[test]
fn a_relative_path_that_is_here_and_in_the_workspace_is_said_to_be_the_latter() {
    let home = Home::new();
    home.file("src/a", "workspace");
    home.file("proj/src/a", "here");
    home.file("proj/only/a", "here");
    let in_proj = |path: &str| {
        let mut command = home.command(ADD);
        run_with(command.current_dir(home.path("proj")).arg(path), b"", Duration::from_secs(60))
    };
    let out = in_proj("src");
    assert_eq!(Manifest::parse(&out.stdout).unwrap().lines[0].entry.path[..], b"src"[..]);
    assert!(out.err().contains("not the one in this directory\nhint: "), "{}", out.err());
    for path in ["~/src", home.path("proj/src").to_str().unwrap()] {
        assert_eq!((in_proj(path).code, in_proj(path).err().as_str()), (0, ""), "{path}");
    }
    assert_eq!(add(&home, b"", &["src"]).err(), "", "in the workspace itself");
    assert!(in_proj("only").err().contains("by its absolute path"), "{}", in_proj("only").err());
}

#[test]
fn the_recipe_of_an_entry_that_is_gone_can_be_corrected() {
    let home = Home::new();
    let file = home.file("x", "content");
    let empty = added(&home, b"", &["--empty", "--root", home.dir.to_str().unwrap()]);
    let manifest = added(&home, &empty, &["x", "--restore", "wrong", "--notes", "mine"]);
    fs::remove_file(file).unwrap();
    let out = add(&home, &manifest, &["x", "--restore", "right", "--timeout", "7"]);
    assert_eq!((out.code, out.err().lines().count()), (0, 1), "{}", out.err());
    assert!(out.err().contains("what was captured of it stays"), "{}", out.err());
    let (old, new) = (Manifest::parse(&manifest).unwrap(), Manifest::parse(&out.stdout).unwrap());
    let (old, new) = (old.entry("x").unwrap(), new.entry("x").unwrap());
    assert_eq!((&new.shape, &new.notes, new.tier), (&old.shape, &old.notes, old.tier));
    assert_eq!((new.restore.as_deref(), new.timeout_s), (Some("right"), Some(7)));
    // What would have to look at it, or has no entry yet, is still an error.
    for args in [&["x"][..], &["x", "--restore", "right", "--hash"], &["y", "--restore", "right"]] {
        assert_eq!(add(&home, &manifest, args).code, 74, "{args:?}");
    }
}
