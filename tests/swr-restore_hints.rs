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

fn hints(out: &Output) -> Vec<String> {
    out.err().lines().filter_map(|l| l.strip_prefix("hint: ")).map(str::to_owned).collect()
}

#[test]
fn a_recipe_that_does_not_bring_enough_is_one_hint_that_leads_on() {
    let mut b = Box::new();
    b.home.file("src/a", "aa");
    b.home.file("src/b", "bb");
    b.add("src", b"src", 2, Some("mkdir src && echo >src/a"), &[]).sign();
    fs::remove_file(b.home.path("src/b")).unwrap();
    let out = restore(&b, &[]);
    assert_eq!(out.code, 3, "{}", out.out());
    let hints = hints(&out);
    assert_eq!(hints.len(), 1, "{hints:?}");
    for words in [
        "-src-1/src'; see ",
        ".swr/log/src.log'",
        ": swr add 'src', then swr sign; ",
        ": move that away, swr add 'src' --restore '...', then swr sign",
    ] {
        assert!(hints[0].contains(words), "{words}: {hints:?}");
    }
}

#[test]
fn a_recipe_that_fails_or_is_too_slow_is_told_with_its_log_and_what_needs_it_with_a_way() {
    let mut b = Box::new();
    for name in ["fails", "slow", "later"] {
        b.home.file(name, name);
    }
    b.add("fails", b"fails", 1, Some("echo why; exit 7"), &[]);
    b.add("slow", b"slow", 1, Some("sleep 61"), &[]);
    b.add("later", b"later", 2, Some("true"), &["slow"]);
    let mut slow = b.manifest.entry("slow").unwrap().clone();
    slow.timeout_s = Some(1);
    b.manifest.put(slow);
    b.sign();
    for name in ["fails", "slow", "later"] {
        fs::remove_file(b.home.path(name)).unwrap();
    }
    let out = restore(&b, &[]);
    assert_eq!(out.code, 2, "{}", out.out());
    let hints = hints(&out).join("\n");
    for words in [".swr/log/fails.log'", ".swr/log/slow.log'", "swr explain slow"] {
        assert!(hints.contains(words), "{words}: {hints}");
    }
    assert_eq!(fs::read_to_string(b.home.path(".swr/log/fails.log")).unwrap(), "why\n");
}

#[test]
fn what_could_not_be_looked_at_is_told_what_to_look_for() {
    let mut b = Box::new();
    b.home.file("d/f", "x");
    b.add("f", b"d/f", 1, Some("touch ran"), &[]).sign();
    fs::rename(b.home.path("d"), b.home.path("e")).unwrap();
    std::os::unix::fs::symlink("e", b.home.path("d")).unwrap();
    let out = restore(&b, &[]);
    assert_eq!((out.code, out.field(1).as_str()), (1, "unknown"), "{}", out.out());
    assert!(hints(&out).len() == 1 && hints(&out)[0].contains("/d/f' and all above it"), "{}", out.err());
}

#[test]
fn hints_that_are_too_many_are_counted() {
    let mut b = Box::new();
    for n in 0..11 {
        let name = format!("f{n}");
        b.home.file(&name, "x");
        b.add(&name, name.as_bytes(), 1, None, &[]);
    }
    b.sign();
    for n in 0..11 {
        fs::remove_file(b.home.path(&format!("f{n}"))).unwrap();
    }
    let out = restore(&b, &[]);
    assert_eq!((out.code, hints(&out).len()), (2, 9), "{}", out.err());
    assert!(hints(&out)[8].starts_with("3 more are not shown"), "{}", out.err());
}

#[test]
fn records_that_cannot_be_read_are_told_with_a_way_out() {
    for name in ["accepted.jsonl", "journal.jsonl"] {
        let mut b = Box::new();
        b.home.file("f", "x");
        b.add("f", b"f", 1, Some("printf x >f"), &[]).sign();
        fs::create_dir(b.home.path(&format!(".swr/{name}"))).unwrap();
        let out = restore(&b, &[]);
        assert_eq!((out.code, hints(&out).len()), (74, 1), "{name}: {}", out.err());
        assert!(out.err().contains(name), "{}", out.err());
    }
}

#[test]
fn an_empty_directory_that_is_an_entry_comes_back() {
    let mut b = Box::new();
    fs::create_dir_all(b.home.path("ed")).unwrap();
    fs::create_dir_all(b.home.path("nest/inner")).unwrap();
    b.home.file("kept/x", "x");
    b.add("ed", b"ed", 2, None, &[])
        .add("nest", b"nest", 2, None, &[])
        .add("kept", b"kept", 2, None, &[])
        .sign();
    for name in ["ed", "nest", "kept"] {
        fs::remove_dir_all(b.home.path(name)).unwrap();
    }
    let out = restore(&b, &[]);
    assert_eq!(out.code, 2, "what had a file cannot come back without a recipe: {}", out.out());
    assert!(
        b.home.path("ed").is_dir() && b.home.path("nest/inner").is_dir() && !b.home.path("kept").exists()
    );
    assert_eq!(out.out().matches("healed\ttree\t").count(), 2, "{}", out.out());
}

#[test]
fn a_file_where_a_directory_belongs_moves_aside_and_back_when_the_recipe_fails() {
    for (recipe, heals) in [("mkdir -p a/b && printf x >a/b/f", true), ("touch a/b/half; exit 1", false)] {
        let mut b = Box::new();
        b.home.file("a/b/f", "x");
        b.add("f", b"a/b/f", 1, Some(recipe), &[]).sign();
        fs::remove_dir_all(b.home.path("a")).unwrap();
        b.home.file("a", "mine");
        let out = restore(&b, &[]);
        assert_eq!(out.code, if heals { 0 } else { 2 }, "{}{}", out.out(), out.err());
        let kept: Vec<_> = fs::read_dir(b.home.path(".swr/quarantine")).unwrap().flatten().collect();
        let mine = if heals { kept[0].path().join("a") } else { b.home.path("a") };
        assert_eq!(fs::read_to_string(mine).unwrap(), "mine", "{recipe}");
        assert_eq!(b.home.path("a/b/f").exists(), heals);
    }
    let mut b = Box::new();
    b.home.file("a/b/f", "x");
    b.add("f", b"a/b/f", 1, None, &[]);
    let mut entry = b.manifest.entry("f").unwrap().clone();
    if let workspace::Shape::File { escrow, .. } = &mut entry.shape {
        *escrow = workspace::escrow::pack(b"x");
    }
    b.manifest.put(entry);
    b.sign();
    fs::remove_dir_all(b.home.path("a/b")).unwrap();
    b.home.file("a/b", "mine");
    let out = restore(&b, &[]);
    assert!(out.code == 0 && out.out().contains("kept aside: "), "embedded: {}{}", out.out(), out.err());
    assert_eq!(fs::read_to_string(b.home.path("a/b/f")).unwrap(), "x");
}

#[test]
fn what_was_put_back_leaves_no_empty_directory_in_the_quarantine() {
    let mut b = Box::new();
    b.home.file("f", "good");
    b.add("f", b"f", 1, Some("exit 7"), &[]).sign();
    fs::write(b.home.path("f"), "bad").unwrap();
    assert_eq!(restore(&b, &[]).code, 2);
    assert_eq!(fs::read_to_string(b.home.path("f")).unwrap(), "bad");
    assert_eq!(fs::read_dir(b.home.path(".swr/quarantine")).unwrap().count(), 0);
}
