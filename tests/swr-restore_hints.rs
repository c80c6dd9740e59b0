//! What `swr-restore` says of that which it cannot bring back: one verdict, and what a person does next.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;
mod swr_box;

use std::fs;

use private_home::{Output, run};
use swr_box::Box;

const RESTORE: &str = env!("CARGO_BIN_EXE_swr-restore");

fn restore(b: &Box, args: &[&str]) -> Output {
    run(b.home.command(RESTORE).args(args))
}

#[test]
fn damage_without_a_recipe_is_one_verdict_and_one_hint() {
    let blob = vec![7_u8; 3 << 20];
    let mut changed = blob.clone();
    changed[..64].fill(8);
    for (what, content, state_words, hint) in [
        ("changed", Some(&changed[..]), "content differs near byte 0", "put a good copy at "),
        ("cut", Some(&blob[..1 << 20]), "1048576 bytes (want 3145728", "put a good copy at "),
        ("gone", None, "file absent", "put a copy at "),
    ] {
        for args in [&[][..], &["--dry-run"]] {
            let mut b = Box::new();
            b.home.file("it's.gguf", &blob);
            b.add("model", b"it's.gguf", 3, None, &[]).sign();
            match content {
                Some(bytes) => fs::write(b.home.path("it's.gguf"), bytes).unwrap(),
                None => fs::remove_file(b.home.path("it's.gguf")).unwrap(),
            }
            let out = restore(&b, args);
            assert_eq!((out.code, out.out().lines().count()), (2, 1), "{what}: {}", out.out());
            assert!(out.out().starts_with("failed\tblob\tmodel\t"), "{what}: {}", out.out());
            assert!(
                out.out().contains(state_words) && out.out().contains("it has no recipe"),
                "{}",
                out.out()
            );
            let hints: Vec<_> =
                out.err().lines().filter(|l| l.starts_with("hint: ")).map(str::to_owned).collect();
            assert_eq!(hints.len(), 1, "{}", out.err());
            assert!(hints[0].contains(hint) && hints[0].ends_with("then swr sign"), "{what}: {hints:?}");
            let next =
                if what == "gone" { "swr add --remove model" } else { "if the change was meant: swr add " };
            assert!(hints[0].contains(next), "{hints:?}");
        }
    }
}

#[test]
fn needs_that_cannot_be_met_are_said_of_a_healthy_disk_too() {
    let mut b = Box::new();
    for id in ["a", "b"] {
        b.home.file(id, id);
    }
    b.add("a", b"a", 0, Some("touch ran"), &["b"]).add("b", b"b", 0, Some("touch ran"), &["a"]).sign();
    let out = restore(&b, &[]);
    assert_eq!((out.code, out.out().lines().count()), (1, 1), "{}", out.out());
    assert!(out.out().contains("cycle of needs: a -> b -> a"), "{}", out.out());
    assert!(out.err().contains("hint: give one of them other needs"), "{}", out.err());
    fs::remove_file(b.home.path("a")).unwrap();
    let out = restore(&b, &[]);
    let said = "failed\tfile\ta\tfile absent; not attempted: cycle of needs: a -> b -> a";
    assert!(out.code == 2 && out.out().lines().any(|l| l == said), "{}", out.out());
    assert!(!b.home.path("ran").exists());
}

#[test]
fn packed_refs_get_their_empty_directory_back_without_a_recipe() {
    let mut b = Box::new();
    b.home.file("repo/.git/HEAD", "ref: refs/heads/main\n");
    b.home.file("repo/.git/objects/pack/pack-1.pack", "PACK");
    b.home.file("repo/.git/packed-refs", "# pack-refs\n");
    fs::create_dir_all(b.home.path("repo/.git/refs")).unwrap();
    b.add("repo", b"repo", 2, None, &[]).sign();
    fs::remove_dir(b.home.path("repo/.git/refs")).unwrap();
    let out = restore(&b, &[]);
    assert_eq!((out.code, out.field(1).as_str()), (0, "healed"), "{}", out.out());
    assert!(b.home.path("repo/.git/refs").is_dir());
}

#[test]
fn an_uncommitted_edit_survives_a_recipe_that_is_to_run_in_place() {
    let mut b = Box::new();
    for (path, text) in
        [("HEAD", "ref: refs/heads/main\n"), ("objects/pack/pack-1.pack", "PACK"), ("refs/heads/main", "1\n")]
    {
        b.home.file(&format!("repo/.git/{path}"), text);
    }
    b.home.file("repo/mine.c", "edited, not committed\n");
    b.home.file("repo/other.c", "x");
    b.home.file("plain/a", "x");
    b.home.file("plain/b", "x");
    // As `git checkout .` does: what is there is overwritten, what is not comes back.
    b.add("repo", b"repo", 2, Some("mkdir -p repo; echo upstream >repo/mine.c; exit 1"), &[]);
    b.add("plain", b"plain", 2, Some("printf x >plain/a"), &[]).sign();
    fs::remove_file(b.home.path("repo/other.c")).unwrap();
    fs::remove_file(b.home.path("plain/a")).unwrap();
    let out = restore(&b, &["--no-quarantine"]);
    assert_eq!(out.code, 2, "{}", out.err());
    assert!(out.out().contains("healed\ttree\tplain\t"), "in place: {}", out.out());
    assert_eq!(fs::read_to_string(b.home.path("repo/mine.c")).unwrap(), "edited, not committed\n");
}
