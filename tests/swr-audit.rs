//! `swr-audit` as a process: what nothing protects is said, what is protected or swept is not.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;
mod swr_box;

use private_home::{Output, run};
use swr_box::{Box, chmod};

fn audit(b: &Box, args: &[&str]) -> Output {
    run(b.home.command(env!("CARGO_BIN_EXE_swr-audit")).args(args))
}

fn subjects(out: &Output) -> Vec<String> {
    out.out().lines().map(|l| l.split('\t').step_by(2).take(2).collect::<Vec<_>>().join(" ")).collect()
}

fn example() -> Box {
    let b = Box::new();
    let big = "x".repeat(2 << 20);
    b.tree(
        ".",
        &[
            ("big.gguf", &big, 0o644),
            ("run.sh", "#!/bin/sh\n", 0o755),
            ("plain.txt", "text", 0o644),
            ("program", "\x7fELF", 0o755),
            ("node_modules/x.sh", "#!/bin/sh\n", 0o755),
            ("repo/.git/objects/pack", &big, 0o644),
            ("repo/build/big", &big, 0o644),
            (".netrc", "secret", 0o600),
            ("new\nline.sh", "#!/bin/sh\n", 0o755),
            ("tree/deep/s.sh", "#!/bin/sh\n", 0o755),
        ],
    );
    std::os::unix::fs::symlink("/", b.home.path("out of here")).unwrap();
    b
}

#[test]
fn what_is_worth_it_and_has_no_entry_is_untracked() {
    let mut b = example();
    let out = audit(&b, &[]);
    let all = [".netrc", "big.gguf", "new\\nline.sh", "run.sh", "tree/deep/s.sh"];
    assert_eq!(
        (out.code, subjects(&out)),
        (1, all.map(|s| format!("untracked {s}")).to_vec()),
        "{}",
        out.out()
    );
    b.add("n", b".netrc", 0, None, &[]).add("big", b"big.gguf", 3, None, &[]).add("t", b"tree", 2, None, &[]);
    b.sign();
    let out = audit(&b, &[]);
    assert_eq!(subjects(&out), ["untracked new\\nline.sh", "untracked run.sh"], "{}", out.out());
    b.add("run", b"run.sh", 1, None, &[]).add("nl", b"new\nline.sh", 1, None, &[]);
    // The same file, as seen from the home.
    let shape = b.manifest.entry("run").unwrap().shape.clone();
    b.put("run", b"~/run.sh", 1, shape, None, &[]).sign();
    let before = b.home.census();
    let out = audit(&b, &[]);
    assert_eq!((out.code, out.out().as_str()), (0, ""));
    assert_eq!(b.home.census(), before);
    let out = audit(&b, &["--min-size", "4"]);
    assert_eq!(subjects(&out), ["untracked plain.txt", "untracked program"], "{}", out.out());
}

#[test]
fn what_cannot_be_read_is_said_and_bad_arguments_are_refused() {
    let b = example();
    for (args, code) in [
        (&["--min-size", "lots"][..], 64),
        (&["operand"], 64),
        (&["--manifest", "absent"], 4),
        (&["--manifest", "plain.txt"], 4),
        (&["--manifest", "tree"], 74),
        (&["--min-size", "10M"], 1),
    ] {
        let out = audit(&b, args);
        assert_eq!(out.code, code, "{args:?}: {}", out.err());
    }
    assert!(audit(&b, &["--json"]).out().lines().all(|l| l.starts_with('{')));
    let manifest = workspace::Manifest::empty(b"/nowhere/at/all").to_bytes();
    b.write(&manifest);
    assert_eq!(audit(&b, &[]).code, 74);
    chmod(&b.home.path(".swr/manifest.jsonl"), 0o600);
}

#[test]
fn of_more_than_200_each_is_listed_with_all_and_the_rest_counted_without() {
    let b = Box::new();
    for n in 0..230 {
        b.tree(".", &[(&format!("s{n:03}.sh"), "#!/bin/sh\n", 0o755)]);
    }
    b.tree(".", &[("z.bin", &"x".repeat(1 << 20), 0o644)]);
    let out = audit(&b, &[]);
    let lines = out.out();
    let last = lines.lines().last().unwrap();
    assert_eq!((out.code, lines.lines().count()), (1, 201), "{last}");
    assert!(last.starts_with("untracked\tmanifest\tmore\t30 more files and 1 more blobs"), "{last}");
    let out = audit(&b, &["--all"]);
    assert_eq!((out.code, out.out().lines().count()), (1, 231));
    assert!(
        out.out().lines().all(|l| l.starts_with("untracked\tfile\ts") || l.starts_with("untracked\tblob\tz"))
    );
}

#[test]
fn a_credential_is_called_one_wherever_programs_keep_it() {
    let b = Box::new();
    let secrets = [
        ".aws/credentials",
        ".config/gh/hosts.yml",
        ".docker/config.json",
        ".env",
        ".git-credentials",
        ".kube/config",
        ".ssh/id_ed25519",
        "app/.env",
    ];
    for path in secrets {
        b.home.file(path, "secret");
    }
    for path in [".ssh/id_ed25519.pub", "config.json", "x.env", ".config/gh/config.yml", "my.kube/config"] {
        b.home.file(path, "no secret");
    }
    b.write(&workspace::Manifest::empty(b"~").to_bytes());
    let out = audit(&b, &[]);
    assert_eq!(subjects(&out), secrets.map(|s| format!("untracked {s}")), "{}", out.out());
    assert_eq!(out.out().matches("\ta credential: ").count(), secrets.len());
}

#[test]
fn what_swr_keeps_in_another_place_is_not_called_untracked() {
    let b = Box::new();
    b.home.file("state/swr/quarantine/big", "x".repeat(2 << 20));
    b.home.file("state/swr/manifest.jsonl", workspace::Manifest::empty(b"~").to_bytes());
    b.home.file("state/big", "x".repeat(2 << 20));
    let mut command = b.home.command(env!("CARGO_BIN_EXE_swr-audit"));
    let out = run(command.env("SWR_HOME", b.home.path("state/swr")));
    assert_eq!(subjects(&out), ["untracked state/big"], "{}", out.err());
}
