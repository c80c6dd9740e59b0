//! `swr-restore` as a process: the seed's wipe, order, what is never destroyed, and the gate.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;
mod swr_box;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::process::Command;

use private_home::{Output, run};
use swr_box::{Box, chmod, copy};
use workspace::capture::TreeOptions;

const RESTORE: &str = env!("CARGO_BIN_EXE_swr-restore");

fn restore(b: &Box, args: &[&str]) -> Output {
    run(command(b).args(args))
}

fn command(b: &Box) -> Command {
    b.home.command(RESTORE)
}

/// `STATE ID` of each verdict line, in the order they came.
fn said(output: &Output) -> Vec<String> {
    output.out().lines().map(|l| l.split('\t').step_by(2).take(2).collect::<Vec<_>>().join(" ")).collect()
}

/// The worked example of a sandbox: a shim, a source tree, a model, a build that needs the source.
fn example() -> Box {
    let mut b = Box::new();
    b.tree(".shim", &[("npx", "#!/bin/sh\n", 0o755)]);
    b.tree("repo", &[("ggml/src/core.c", "int x;\n", 0o644), ("run.sh", "#!/bin/sh\n", 0o755)]);
    b.tree(".", &[("model.gguf", &"x".repeat(3_000_000), 0o644)]);
    b.tree("repo/build", &[("bin/llama", "binary", 0o755)]);
    for (from, to) in [("repo/ggml", "up-ggml"), ("model.gguf", "up-model"), (".shim", "up-shim")] {
        copy(&b.home.path(from), &b.home.path(to));
    }
    let source = TreeOptions { sentinels: vec![b"src/core.c".to_vec()], jobs: 1, ..TreeOptions::default() };
    b.add(
        "shim",
        b".shim/npx",
        0,
        Some("mkdir -p .shim && cp -p up-shim/npx .shim/npx && echo shim >>order"),
        &[],
    );
    b.add_tree(
        "src",
        b"repo/ggml",
        2,
        Some("cp -a up-ggml repo/ggml && echo src >>order"),
        &["shim"],
        &source,
    );
    b.add("model", b"model.gguf", 3, Some("cp up-model model.gguf && echo model >>order"), &[]);
    let make = "test -s repo/ggml/src/core.c && mkdir -p repo/build/bin && echo binary >repo/build/bin/llama && echo bins >>order";
    b.add("bins", b"repo/build/bin", 4, Some(make), &["src"]);
    b.sign();
    b
}

fn wipe(b: &Box) {
    fs::remove_file(b.home.path(".shim/npx")).unwrap();
    fs::write(b.home.path("repo/ggml/src/core.c"), "").unwrap();
    fs::OpenOptions::new().write(true).open(b.home.path("model.gguf")).unwrap().set_len(1_500_000).unwrap();
    fs::remove_dir_all(b.home.path("repo/build")).unwrap();
}

#[test]
fn the_wiped_example_comes_back_in_tier_order_and_a_second_restore_does_nothing() {
    let b = example();
    wipe(&b);
    let first = restore(&b, &[]);
    assert_eq!(first.code, 0, "{}", first.err());
    assert_eq!(said(&first), ["healed shim", "healed src", "healed model", "healed bins"]);
    assert_eq!(fs::read_to_string(b.home.path("order")).unwrap(), "shim\nsrc\nmodel\nbins\n");
    assert_eq!(fs::metadata(b.home.path("model.gguf")).unwrap().len(), 3_000_000);
    let second = restore(&b, &[]);
    assert_eq!((second.code, second.out().as_str()), (0, ""));
}

#[test]
fn a_failing_source_skips_the_build_and_is_put_back_as_it_was() {
    let mut b = example();
    let mut src = b.manifest.entry("src").unwrap().clone();
    src.restore = Some("mkdir repo/ggml && echo half >repo/ggml/half && exit 7".into());
    b.manifest.put(src);
    b.sign();
    wipe(&b);
    let out = restore(&b, &[]);
    assert_eq!(out.code, 2, "{}", out.err());
    assert_eq!(said(&out), ["healed shim", "failed src", "healed model", "skipped bins"]);
    assert!(out.out().contains("recipe ended 7"));
    assert!(!b.home.path("repo/build").exists() && !b.home.path("repo/ggml/half").exists());
    assert_eq!(fs::read_to_string(b.home.path("repo/ggml/src/core.c")).unwrap(), "");
}

#[test]
fn a_recipe_that_ends_0_and_repairs_nothing_is_still_damaged() {
    let mut b = example();
    let mut model = b.manifest.entry("model").unwrap().clone();
    model.restore = Some("true".into());
    b.manifest.put(model);
    b.sign();
    fs::remove_file(b.home.path("model.gguf")).unwrap();
    let out = restore(&b, &[]);
    assert_eq!((out.code, said(&out)), (3, vec!["missing model".to_owned()]), "{}", out.err());
}

#[test]
fn a_tree_with_user_work_survives_and_its_place_is_printed() {
    let mut b = Box::new();
    b.tree("repo", &[("a.c", "int a;\n", 0o644), ("keep/s", "s", 0o644)]);
    let git = |args: &[&str]| {
        let out = run(b.home.command("git").current_dir(b.home.path("repo")).args(args));
        assert_eq!(out.code, 0, "{}", out.err());
    };
    git(&["init", "-q"]);
    git(&["-c", "user.name=t", "-c", "user.email=t@example.org", "add", "."]);
    git(&["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "x"]);
    copy(&b.home.path("repo"), &b.home.path("up"));
    let options = TreeOptions { sentinels: vec![b"keep/s".to_vec()], jobs: 1, ..TreeOptions::default() };
    b.add_tree("repo", b"repo", 2, Some("cp -a up repo"), &[], &options).sign();
    fs::write(b.home.path("repo/a.c"), "int edited;\n").unwrap();
    fs::write(b.home.path("repo/untracked"), "mine\n").unwrap();
    fs::remove_file(b.home.path("repo/keep/s")).unwrap();
    let out = restore(&b, &[]);
    assert_eq!(out.code, 0, "{}", out.err());
    let kept = b.home.path(".swr/quarantine");
    let place = fs::read_dir(kept).unwrap().next().unwrap().unwrap().path().join("repo");
    assert!(out.out().contains(place.to_str().unwrap()), "{}", out.out());
    assert_eq!(fs::read_to_string(place.join("a.c")).unwrap(), "int edited;\n");
    assert_eq!(fs::read_to_string(place.join("untracked")).unwrap(), "mine\n");
}

#[test]
fn d23_modes_links_and_empty_directories_come_back_without_a_recipe() {
    let mut b = Box::new();
    let odd = "a b\n$(touch pwned)'\u{301}";
    b.tree("t", &[("run.sh", "#!/bin/sh\n", 0o755), (odd, "x", 0o755), ("-x", "x", 0o644)]);
    let raw = b.home.path("t").join(OsStr::from_bytes(b"\xff\xfe"));
    fs::write(&raw, "raw").unwrap();
    chmod(&raw, 0o755);
    fs::create_dir(b.home.path("t/empty")).unwrap();
    symlink("run.sh", b.home.path("t/link")).unwrap();
    symlink("nowhere", b.home.path("t/dangling")).unwrap();
    b.add("t", b"t", 1, None, &[]).sign();
    let healthy = restore(&b, &[]);
    assert_eq!(
        (healthy.code, healthy.out().as_str()),
        (0, ""),
        "a dangling link that was recorded so is healthy"
    );
    chmod(&b.home.path("t/run.sh"), 0o644);
    chmod(&b.home.path("t").join(odd), 0o644);
    chmod(&raw, 0o644);
    fs::remove_dir(b.home.path("t/empty")).unwrap();
    fs::remove_file(b.home.path("t/link")).unwrap();
    fs::copy(b.home.path("t/run.sh"), b.home.path("t/link")).unwrap();
    let out = restore(&b, &[]);
    assert_eq!((out.code, said(&out)), (0, vec!["healed t".to_owned()]), "{}", out.err());
    assert_eq!(fs::read_link(b.home.path("t/link")).unwrap().to_str(), Some("run.sh"));
    assert!(
        b.home.path("t/empty").is_dir() && !b.home.path("pwned").exists() && !b.home.path("t/pwned").exists()
    );
    assert_eq!(restore(&b, &[]).out(), "");
}

#[test]
fn embedded_content_comes_back_without_a_recipe() {
    let mut b = Box::new();
    b.tree("bin", &[("tool.sh", "#!/bin/sh\necho hi\n", 0o755)]);
    b.add("tool", b"bin/tool.sh", 1, None, &[]);
    let mut entry = b.manifest.entry("tool").unwrap().clone();
    if let workspace::Shape::File { escrow, .. } = &mut entry.shape {
        *escrow = workspace::escrow::pack(b"#!/bin/sh\necho hi\n");
    }
    b.manifest.put(entry);
    b.sign();
    fs::remove_dir_all(b.home.path("bin")).unwrap();
    let out = restore(&b, &[]);
    assert_eq!((out.code, said(&out)), (0, vec!["healed tool".to_owned()]), "{}", out.err());
    assert_eq!(run(&mut b.home.command(b.home.path("bin/tool.sh"))).out(), "hi\n");
}

#[test]
fn a_cycle_of_needs_ends_at_once_and_is_named() {
    let mut b = Box::new();
    for id in ["a", "b", "c", "fine"] {
        b.home.file(id, id);
    }
    b.add("a", b"a", 0, Some("echo a >a"), &["b"]).add("b", b"b", 0, Some("echo b >b"), &["a"]);
    b.add("c", b"c", 0, Some("echo -n c >c"), &["a", "no-such-id"])
        .add("fine", b"fine", 0, Some("printf fine >fine"), &["no-such-id"])
        .sign();
    for id in ["a", "b", "c", "fine"] {
        fs::remove_file(b.home.path(id)).unwrap();
    }
    let out = restore(&b, &[]);
    let of_the_manifest = ["degraded needs"; 3];
    assert_eq!(
        said(&out),
        [&of_the_manifest[..], &["failed a", "failed b", "skipped c", "healed fine"]].concat()
    );
    for words in ["cycle of needs: a -> b -> a", "c needs 'no-such-id'", "fine needs 'no-such-id'"] {
        assert!(out.out().contains(words), "{words}: {}", out.out());
    }
    assert!(out.err().contains("hint: give one of them other needs: swr add "), "{}", out.err());
    assert_eq!(out.code, 2);
}

#[test]
fn a_link_in_the_way_is_never_written_through() {
    let mut b = Box::new();
    b.tree("w/sub", &[("f.sh", "#!/bin/sh\n", 0o755)]);
    b.tree("outside", &[("f.sh", "not ours\n", 0o600)]);
    b.add("f", b"w/sub/f.sh", 1, Some("touch ran"), &[]).sign();
    fs::remove_dir_all(b.home.path("w/sub")).unwrap();
    symlink("../outside", b.home.path("w/sub")).unwrap();
    let out = restore(&b, &[]);
    assert_eq!((out.code, said(&out)), (1, vec!["unknown f".to_owned()]), "{}", out.err());
    assert!(!b.home.path("ran").exists());
    assert_eq!(fs::read_to_string(b.home.path("outside/f.sh")).unwrap(), "not ours\n");
}

#[test]
fn a_dry_run_says_all_and_writes_nothing() {
    let b = example();
    restore(&b, &[]);
    wipe(&b);
    let before = b.home.census();
    let out = restore(&b, &["--dry-run"]);
    assert_eq!(said(&out), ["would shim", "would src", "would model", "would bins"]);
    assert_eq!(out.code, 1);
    assert_eq!(b.home.census(), before);
}

#[test]
fn only_the_named_entry_is_repaired() {
    let b = example();
    wipe(&b);
    let out = restore(&b, &["--only", "model"]);
    assert_eq!((out.code, said(&out)), (0, vec!["healed model".to_owned()]), "{}", out.err());
    assert!(!b.home.path(".shim/npx").exists());
    let needs = restore(&b, &["--only", "bins"]);
    assert_eq!((needs.code, said(&needs)), (2, vec!["skipped bins".to_owned()]), "{}", needs.err());
    assert_eq!(restore(&b, &["--only", "nothing"]).code, 64);
}
