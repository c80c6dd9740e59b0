//! `swr-verify` on trees with bookkeeping in them: what grows by itself makes up for nothing that is gone.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;
mod swr_box;

use std::fs;
use std::path::Path;

use private_home::{Output, run};
use swr_box::Box;
use workspace::{Manifest, Shape};

const VERIFY: &str = env!("CARGO_BIN_EXE_swr-verify");

fn verify(b: &Box) -> Output {
    run(b.home.command(VERIFY).arg("--no-cache"))
}

fn git(b: &Box, args: &[&str]) {
    let mut command = b.home.command("git");
    let out =
        run(command.arg("-C").arg("repo").args(["-c", "user.name=n", "-c", "user.email=e@x"]).args(args));
    assert_eq!(out.code, 0, "{args:?}: {}", out.err());
}

/// A repository `repo` with 20 sources and one commit, recorded.
fn repository() -> Box {
    let mut b = Box::new();
    for n in 0..20 {
        b.home.file(&format!("repo/src/{n}.c"), format!("int f{n}(void);\n"));
    }
    git(&b, &["init", "-q", "-b", "main"]);
    commit(&b);
    b.add("repo", b"repo", 2, None, &[]).sign();
    b
}

fn commit(b: &Box) {
    git(b, &["add", "-A"]);
    git(b, &["commit", "-q", "-m", "m"]);
}

#[test]
fn deleted_sources_are_seen_after_a_commit_made_new_objects() {
    let b = repository();
    for n in 0..9 {
        fs::write(b.home.path("repo/src/1.c"), format!("changed {n}\n")).unwrap();
        commit(&b);
    }
    assert_eq!(verify(&b).code, 0, "{}", verify(&b).out());
    for n in [3, 4] {
        fs::remove_file(b.home.path(&format!("repo/src/{n}.c"))).unwrap();
    }
    let out = verify(&b);
    assert_eq!((out.code, out.field(1).as_str()), (1, "short"), "{}", out.out());
    assert!(out.out().contains("18 files (want at least 20)"), "{}", out.out());
}

#[test]
fn deleted_sources_are_seen_though_what_tools_keep_beside_them_grew() {
    for (grown, is_git) in [
        ("target/debug", false),
        ("node_modules/left-pad", false),
        ("a/__pycache__", false),
        (".pytest_cache/v", false),
        (".mypy_cache/3.11", false),
        (".git/objects/aa", true),
        ("vendor/new/.git/objects/aa", true),
        (".hg/store", false),
        (".svn/pristine", false),
    ] {
        let mut b = Box::new();
        for n in 0..20 {
            b.home.file(&format!("t/src/{n}.c"), "int x;\n");
        }
        b.add("t", b"t", 2, None, &[]).sign();
        for n in 0..99 {
            b.home.file(&format!("t/{grown}/{n}"), "large enough to make up for the bytes, too");
        }
        assert_eq!(verify(&b).code, 0, "{grown}");
        fs::remove_dir_all(b.home.path("t/src")).unwrap();
        let out = verify(&b);
        assert_eq!((out.code, out.field(1).as_str()), (1, "short"), "{grown} {is_git}: {}", out.out());
        assert!(out.out().contains("0 files (want at least 20)"), "{grown}: {}", out.out());
    }
}

#[test]
fn housekeeping_of_git_is_no_damage() {
    let b = repository();
    for args in [
        &["gc", "-q", "--prune=now"][..],
        &["pack-refs", "--all"],
        &["checkout", "-q", "--detach"],
        &["branch", "-q", "-m", "main", "a/b/c"],
        &["tag", "v1"],
        &["repack", "-q", "-a", "-d"],
    ] {
        git(&b, args);
        let out = verify(&b);
        assert_eq!(out.code, 0, "{args:?}: {}", out.out());
    }
}

/// Damages a repository at a path.
type Gut = fn(&Path);

fn remove(path: &Path) {
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn a_gutted_repository_is_not_healthy() {
    let cases: [(&str, Gut, &str); 10] = [
        ("gone", remove, "repository '.git' absent"),
        ("HEAD gone", |g| fs::remove_file(g.join("HEAD")).unwrap(), "HEAD missing or empty"),
        ("HEAD empty", |g| fs::write(g.join("HEAD"), "").unwrap(), "HEAD missing or empty"),
        ("objects gone", |g| remove(&g.join("objects")), "its objects are gone"),
        (
            "objects emptied",
            |g| {
                remove(&g.join("objects"));
                fs::create_dir_all(g.join("objects/pack")).unwrap();
            },
            "its objects are gone",
        ),
        ("pack evicted", |g| fs::remove_file(pack(g)).unwrap(), ".pack' is gone or empty"),
        (
            "pack emptied",
            |g| {
                let path = pack(g);
                fs::remove_file(&path).unwrap();
                fs::write(path, "").unwrap();
            },
            ".pack' is gone or empty",
        ),
        ("refs gone", |g| remove(&g.join("refs")), "its refs are gone"),
        (
            "a file in its place",
            |g| {
                remove(g);
                fs::write(g, "").unwrap();
            },
            "no repository any more",
        ),
        (
            "an object emptied",
            |g| {
                let dirs = fs::read_dir(g.join("objects")).unwrap().flatten();
                let dir = dirs.map(|d| d.path()).find(|d| d.file_name().unwrap().len() == 2).unwrap();
                let object = fs::read_dir(dir).unwrap().flatten().next().unwrap().path();
                fs::remove_file(&object).unwrap();
                fs::write(object, "").unwrap();
            },
            "is gone or empty",
        ),
    ];
    for (what, gut, words) in cases {
        let b = repository();
        if what.starts_with("pack") {
            git(&b, &["gc", "-q"]);
        }
        gut(&b.home.path("repo/.git"));
        let out = verify(&b);
        assert_eq!(out.code, 1, "{what}: {}", out.out());
        assert!(out.out().contains(words), "{what}: {}", out.out());
    }
}

fn pack(git: &Path) -> std::path::PathBuf {
    let packs = fs::read_dir(git.join("objects/pack")).unwrap().flatten();
    packs.map(|p| p.path()).find(|p| p.extension().is_some_and(|e| e == "pack")).unwrap()
}

#[test]
fn packed_refs_whose_empty_directory_was_lost_are_found() {
    let b = repository();
    git(&b, &["pack-refs", "--all"]);
    remove(&b.home.path("repo/.git/refs"));
    let out = verify(&b);
    assert_eq!((out.code, out.field(1).as_str()), (1, "missing"), "{}", out.out());
    assert!(out.out().contains("directory '.git/refs' absent"), "{}", out.out());
}

#[test]
fn a_hook_that_lost_its_execute_bit_is_found_and_a_sample_is_nobodys_work() {
    let mut b = repository();
    b.home.script("repo/.git/hooks/pre-commit", "true");
    b.home.script("repo/.git/hooks/pre-push.sample", "true");
    b.add("repo", b"repo", 2, None, &[]).sign();
    fs::remove_file(b.home.path("repo/.git/hooks/pre-push.sample")).unwrap();
    assert_eq!(verify(&b).code, 0, "{}", verify(&b).out());
    swr_box::chmod(&b.home.path("repo/.git/hooks/pre-commit"), 0o644);
    let out = verify(&b);
    assert_eq!((out.code, out.field(1).as_str()), (1, "stripped"), "{}", out.out());
}

#[test]
fn a_tree_recorded_before_work_was_told_apart_is_healthy_as_it_was() {
    let mut b = repository();
    let mut entry = b.manifest.entry("repo").unwrap().clone();
    let Shape::Tree { files, bytes, git, .. } = &mut entry.shape else { panic!("{entry:?}") };
    // As it was counted then: the repository's files among the sources.
    let all = run(b.home.command("find").args(["repo", "-type", "f", "-printf", "%s\n"]));
    let sizes: Vec<u64> = all.out().lines().map(|l| l.parse().unwrap()).collect();
    (*files, *bytes, *git) = (sizes.len() as u64, sizes.iter().sum(), None);
    assert!(*files > 40, "{files}");
    b.manifest.put(entry);
    b.sign();
    let text = b.manifest.to_bytes();
    assert!(!String::from_utf8_lossy(&text).contains("\"git\""));
    assert_eq!(Manifest::parse(&text).unwrap().to_bytes(), text);
    let out = verify(&b);
    assert_eq!(out.code, 0, "{}", out.out());
}
