//! `swr-add` as a process: what it captures, what it keeps, and what it refuses.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;
mod swr_box;

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use private_home::{Home, Output, run_with};
use swr_box::{Box, chmod};
use workspace::{Entry, Manifest, Shape};

const ADD: &str = env!("CARGO_BIN_EXE_swr-add");

fn add(home: &Home, manifest: &[u8], args: &[&str]) -> Output {
    run_with(home.command(ADD).args(args), manifest, Duration::from_secs(60))
}

/// The manifest that comes out, which must be one.
fn added(home: &Home, manifest: &[u8], args: &[&str]) -> Manifest {
    let out = add(home, manifest, args);
    assert_eq!(out.code, 0, "{args:?}: {}", out.err());
    Manifest::parse(&out.stdout).unwrap()
}

fn entry<'a>(manifest: &'a Manifest, id: &str) -> &'a Entry<'a> {
    manifest.entry(id).unwrap_or_else(|| panic!("no {id} in {}", String::from_utf8_lossy(&manifest.body)))
}

#[test]
fn each_path_gets_the_kind_id_and_tier_that_fit() {
    let home = Home::new();
    home.file(".shim/npx", "#!/bin/sh\n");
    home.file("src/a b/$(x)\n", "x");
    home.file("model.gguf", vec![7; 1 << 20]);
    home.file("app/build/out.o", "o");
    symlink("nowhere", home.path("link")).unwrap();
    home.file("\u{65e5}", "no letter of an id");
    let args =
        [".shim/npx", "src/a b", "src/a b/$(x)\n", "model.gguf", "app/build/out.o", "link", "\u{65e5}"];
    let manifest = added(&home, b"", &args);
    let seen: Vec<_> = manifest
        .lines
        .iter()
        .map(|l| format!("{} {} {}", l.entry.id, l.entry.kind().word(), l.entry.tier))
        .collect();
    assert_eq!(
        seen,
        [
            "shim-npx file 0",
            "src-a-b tree 2",
            "src-a-b---x file 1",
            "model.gguf blob 3",
            "app-build-out.o file 4",
            "link file 1",
            "entry file 1",
        ]
    );
    assert!(matches!(&entry(&manifest, "link").shape, Shape::Link { target } if target == b"nowhere"));
    let forced = added(&home, b"", &["model.gguf", "--kind", "file", "--id", "m", "--tier", "0"]);
    assert!(matches!(entry(&forced, "m").shape, Shape::File { size: 1_048_576, .. }));
}

#[test]
fn two_paths_whose_ids_look_alike_are_both_kept() {
    let home = Home::new();
    for name in ["a b", "a-b", "a/b"] {
        home.file(&format!("d/{name}"), name);
    }
    let manifest = added(&home, b"", &["d/a b", "d/a-b", "d/a/b"]);
    let ids: Vec<_> = manifest.lines.iter().map(|l| &*l.entry.id).collect();
    assert_eq!(ids, ["d-a-b", "d-a-b-2", "d-a-b-3"]);
    let long = format!("{}/x", "n".repeat(100));
    home.file(&format!("{long}y"), "");
    home.file(&format!("{long} "), "");
    assert_eq!(added(&home, b"", &[&format!("{long}y"), &format!("{long} ")]).lines.len(), 2);
}

#[test]
fn a_replaced_entry_keeps_what_is_not_given_and_the_others_keep_their_bytes() {
    let home = Home::new();
    home.file("t/s", "sentinel");
    home.file("f", "1");
    let first = added(&home, b"", &["f"]);
    let made = ["t", "--id", "tree", "--tier", "4", "--sentinel", "s", "--count-name", "s", "--hash"];
    let rest = ["--needs", "f", "--restore", "make t", "--timeout", "9", "--notes", "note"];
    let second = added(&home, &first.to_bytes(), &[&made[..], &rest].concat());
    home.file("t/new", "more");
    // By its path, without the id: it is the same entry.
    let third = added(&home, &second.to_bytes(), &["t", "--notes", "other"]);
    let (before, after) = (entry(&second, "tree"), entry(&third, "tree"));
    assert_eq!(third.lines.len(), 2);
    assert_eq!(
        (after.tier, &after.needs, &after.restore, after.timeout_s, after.notes.as_deref()),
        (4, &before.needs, &before.restore, Some(9), Some("other"))
    );
    let (Shape::Tree { sentinels, files, count, merkle, .. }, Shape::Tree { merkle: old, .. }) =
        (&after.shape, &before.shape)
    else {
        panic!("{after:?}")
    };
    assert_eq!((sentinels.len(), *files, count.len()), (1, 2, 1));
    assert!(merkle.is_some() && merkle != old);
    assert_eq!(third.raw(&third.lines[0]), first.raw(&first.lines[0]));
    // By its id at another path: it moved.
    home.file("moved/s", "sentinel");
    let fourth = added(&home, &third.to_bytes(), &["moved", "--id", "tree"]);
    let moved = entry(&fourth, "tree");
    assert_eq!((&*moved.path, &moved.restore), (&b"moved"[..], &before.restore));
    // By its path under another id: one path, one entry.
    let fifth = added(&home, &fourth.to_bytes(), &["moved", "--id", "renamed"]);
    assert_eq!(fifth.lines.len(), 2);
    assert_eq!(entry(&fifth, "renamed").restore, before.restore);
    let sixth = added(&home, &fifth.to_bytes(), &["--remove", "renamed"]);
    assert_eq!((sixth.lines.len(), sixth.raw(&sixth.lines[0])), (1, fifth.raw(&fifth.lines[0])));
}

#[test]
fn a_change_drops_the_signatures() {
    let mut b = Box::new();
    b.home.file("f", "1");
    b.add("f", b"f", 1, None, &[]).sign();
    assert_eq!(b.manifest.signatures.len(), 1);
    let again = added(&b.home, &b.manifest.to_bytes(), &["f"]);
    assert_eq!(again.to_bytes(), b.manifest.to_bytes(), "captured as it stands already");
    b.home.file("f", "2");
    let changed = added(&b.home, &b.manifest.to_bytes(), &["f"]);
    assert!(changed.signatures.is_empty());
    assert_ne!(changed.body, b.manifest.body);
}

#[test]
fn retighten_takes_what_is_there_now_twice_alike_and_never_takes_damage() {
    let home = Home::new();
    for n in 0..100 {
        home.file(&format!("t/{n}"), "x");
    }
    home.file("f", "good");
    home.file("g", "good");
    let first = added(&home, b"", &["t", "f", "g"]).to_bytes();
    for n in 100..200 {
        home.file(&format!("t/{n}"), "x");
    }
    home.file("f", "evil");
    let once = add(&home, &first, &["--retighten"]);
    assert_eq!(once.code, 0, "{}", once.err());
    assert!(once.err().contains("f is damaged"), "{}", once.err());
    let (before, after) = (Manifest::parse(&first).unwrap(), Manifest::parse(&once.stdout).unwrap());
    assert!(matches!(entry(&after, "t").shape, Shape::Tree { files, .. } if files > 190));
    for id in ["f", "g"] {
        assert_eq!(entry(&before, id), entry(&after, id));
    }
    assert_eq!(add(&home, &once.stdout, &["--retighten"]).stdout, once.stdout);
    let named = add(&home, &first, &["--retighten", "f"]);
    assert_eq!((named.code, named.out().as_str()), (1, ""), "{}", named.err());
    assert!(named.err().contains("hint: swr doctor repairs it; if the change was meant, swr add 'f'"));
    fs::remove_file(home.path("t/7")).unwrap();
    chmod(&home.path("g"), 0o600);
    let out = add(&home, &once.stdout, &["--retighten"]);
    assert!(out.err().contains("g is damaged"), "{}", out.err());
}

#[test]
fn models_come_from_the_pins_and_a_half_or_wrong_one_does_not() {
    let home = Home::new();
    let pin = |role: &str, bytes: u64, sha: &str| {
        format!(
            r#"{{"role":"{role}","file":"{role}.gguf","bytes":{bytes},"sha256":{sha},"repository":null,"revision":null,"light":true,"base_s":1,"ms_per_token":1,"cap_s":2,"default_tps":1,"evidence":[]}}"#
        )
    };
    let abc = "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"";
    let all = [pin("scout", 3, abc), pin("forge", 4, abc), pin("sage", 3, abc)].join(",");
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifest.json")).unwrap();
    let engine = &text[text.find("\"engine\":").unwrap()..];
    let pins = home.file("manifest.json", format!("{{\"version\":1,\"models\":[{all}],{engine}"));
    home.file("models/scout.gguf", "abc");
    home.file("models/forge.gguf", "abc");
    let from_models = || {
        let mut command = home.command(ADD);
        command.env("SELFHEAL_MANIFEST", &pins).env("SELFHEAL_MODELS_DIR", home.path("models"));
        run_with(command.arg("--from-models"), b"", Duration::from_secs(30))
    };
    let out = from_models();
    assert_eq!(out.code, 0, "{}", out.err());
    assert!(out.err().contains("is not whole"), "{}", out.err());
    let manifest = Manifest::parse(&out.stdout).unwrap();
    let scout = entry(&manifest, "model-scout");
    assert_eq!((manifest.lines.len(), scout.restore.as_deref()), (1, Some("hf-fetch scout")));
    home.file("models/sage.gguf", "abd");
    let out = from_models();
    assert_eq!((out.code, out.out().as_str()), (74, ""), "{}", out.err());
}

#[test]
fn what_cannot_be_an_entry_is_refused_and_nothing_comes_out() {
    let home = Home::new();
    home.file("f", "1");
    home.file("d/x", "1");
    home.file("empty", "");
    let manifest = added(&home, b"", &["f"]).to_bytes();
    assert_eq!(run_with(home.command("mkfifo").arg("fifo"), b"", Duration::from_secs(9)).code, 0);
    for (args, code) in [
        (&[][..], 64),
        (&["/etc/passwd"], 64),
        (&["../f"], 64),
        (&["d/../f"], 64),
        (&["."], 64),
        (&["~/"], 64),
        (&["f", "--tier", "5"], 64),
        (&["f", "--id", "a b"], 64),
        (&["f", "--id", ""], 64),
        (&["f", "d", "--id", "x"], 64),
        (&["f", "--kind", "link"], 64),
        (&["f", "--timeout", "0"], 64),
        (&["f", "--timeout", "86401"], 64),
        (&["f", "--hash"], 64),
        (&["f", "--sentinel", "x"], 64),
        (&["--root", "/", "f"], 64),
        (&["--remove", "none"], 64),
        (&["--remove"], 64),
        (&["--retighten", "none"], 64),
        (&["d", "--sentinel", "y"], 74),
        (&["absent"], 74),
        (&["fifo"], 74),
        (&["f/x"], 74),
    ] {
        let out = add(&home, &manifest, args);
        assert_eq!((out.code, out.out().as_str()), (code, ""), "{args:?}: {}", out.err());
    }
    let notes = "n".repeat(70_000);
    let out = add(&home, &manifest, &["f", "--notes", &notes]);
    assert_eq!((out.code, out.out().as_str()), (4, ""), "{}", out.err());
    assert_eq!(add(&home, b"garbage\n", &["f"]).code, 4);
    for (root, code) in [("/", 0), ("~", 0), ("~/work", 0), ("work", 64), ("~/../x", 64), ("", 64)] {
        assert_eq!(add(&home, b"", &["--empty", "--root", root]).code, code, "{root:?}");
    }
}

#[test]
fn what_the_audit_lists_is_captured_and_what_cannot_be_is_left_out() {
    let home = Home::new();
    for name in ["a.sh", "b/a.sh", "new\nline\t.sh"] {
        home.file(name, "#!/bin/sh\n");
    }
    let list = concat!(
        "untracked\tfile\ta.sh\tx\n",
        "untracked\tfile\tgone.sh\tx\n",
        "untracked\tfile\t../../etc/passwd\tx\n",
        "untracked\tblob\tb/a.sh\tx\n",
        "untracked\tfile\tnew\\nline\\t.sh\tx\n",
        "untracked\tmanifest\tmore\t7 more files\n",
        "unknown\ttree\tlocked\tcould not be checked\n",
        "ok\tmanifest\tescrow\tx\n",
    );
    let list = home.file("list", list);
    let list = list.to_str().unwrap();
    let out = add(&home, &Manifest::empty(b"~").to_bytes(), &["--untracked", list]);
    let manifest = Manifest::parse(&out.stdout).unwrap();
    let paths: Vec<_> = manifest.lines.iter().map(|l| l.entry.path.to_vec()).collect();
    assert_eq!(paths, [&b"a.sh"[..], b"b/a.sh", b"new\nline\t.sh"], "{}", out.err());
    for words in ["'gone.sh' is not tracked", "'locked' is not tracked: could not", "7 more files"] {
        assert!(out.err().contains(words), "{words}: {}", out.err());
    }
    // Once more: all of it has entries.
    assert_eq!(add(&home, &out.stdout, &["--untracked", list]).stdout, out.stdout);
    for (args, code) in [
        (&["--untracked", "absent"][..], 74),
        (&["--untracked", "a.sh"], 64),
        (&["--untracked", list, "x"], 64),
    ] {
        let out = add(&home, &out.stdout, args);
        assert_eq!((out.code, out.out().as_str()), (code, ""), "{args:?}");
        assert!(out.err().contains("hint: "), "{args:?}: {}", out.err());
    }
}
