//! `swr-why` as a process: every state, shape and signature has words, and hostile text stays on its line.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;
mod swr_box;

use std::time::Duration;

use private_home::{Output, run, run_with};
use swr_box::Box;

fn why(b: &Box, input: &str, args: &[&str]) -> Output {
    let mut command = b.home.command(env!("CARGO_BIN_EXE_swr-why"));
    run_with(command.args(args), input.as_bytes(), Duration::from_secs(30))
}

fn example() -> Box {
    let mut b = Box::new();
    b.tree(
        ".",
        &[
            ("f", "f", 0o644),
            ("run.sh", "#!/bin/sh\n", 0o755),
            ("m", &"m".repeat(1 << 20), 0o644),
            ("t/x", "x", 0o644),
            ("app/build/y", "y", 0o644),
        ],
    );
    std::os::unix::fs::symlink("a\nb", b.home.path("l")).unwrap();
    b.add("f", b"f", 1, None, &[]).add("run", b"run.sh", 1, Some("true\nevil \x1b[31m"), &[]);
    b.add("m", b"m", 3, Some("hf-fetch m"), &["f"]).add("t", b"t", 2, Some("git clone"), &["f", "m"]);
    b.add("y", b"app/build/y", 4, None, &["t"]).add("l", b"l", 1, None, &[]).sign();
    b
}

#[test]
fn each_damage_has_its_cause_risk_dependents_and_fix() {
    let b = example();
    for (line, code, words) in [
        (
            "missing\tfile\tf\tfile absent",
            1,
            &["missing: file absent", "dependents: m, t", "swr escrow f"][..],
        ),
        ("stripped\tfile\trun\tmode 0644", 1, &["execute bits", "sets the mode, runs no recipe"]),
        (
            "short\tblob\tm\t9 bytes",
            1,
            &["size cap", "needs:      f", "swr restore --only f --only m (runs: hf-fetch m)"],
        ),
        (
            "corrupt\ttree\tt\tsentinel missing: x",
            1,
            &["while it is emptied", "dependents: y", "runs: git clone"],
        ),
        ("missing\tfile\ty\tfile absent", 1, &["platforms sweep"]),
        ("stripped\ttree\tt\tmode", 1, &["swr restore --only m --only f --only t (sets"]),
        ("missing\tfile\tl\tlink absent", 1, &["makes the link anew", "link to a\\nb"]),
        (
            "unknown\tfile\tf\tcould not be checked: x",
            1,
            &["nothing is repaired", "ls -ld /", "/f shows", "then swr check --only f\n"],
        ),
        ("failed\tfile\tf\trecipe ended 7", 2, &["failed: recipe ended 7"]),
        ("missing\tfile\tgone\tx", 1, &["the manifest has no such entry"]),
        ("bad\tmanifest\tsignature\taltered", 4, &["none is run until the manifest is signed"]),
        ("degraded\tmanifest\tcold-start\tx", 1, &["in tier order"]),
        ("degraded\tmanifest\tsize-cap-eviction\tx", 1, &["refetch"]),
        ("degraded\tmanifest\texclusion-sweep\tx", 1, &["rebuilt, never stored"]),
        ("degraded\tmanifest\tpermission-reset\tx", 1, &["content is whole"]),
        ("degraded\tmanifest\tcredential-loss\tx", 1, &["first"]),
        ("degraded\tmanifest\tlocal-corruption\tx", 1, &["content changed"]),
        ("degraded\tmanifest\tmoved-host\tx", 1, &["built again"]),
    ] {
        let out = why(&b, &format!("ok\tfile\tf\tfine\n{line}\n"), &[]);
        assert_eq!(out.code, code, "{line}: {}", out.err());
        for word in words {
            assert!(out.out().contains(word), "{line}: no '{word}' in {}", out.out());
        }
    }
}

#[test]
fn several_findings_of_one_entry_are_told_together_and_noise_is_not_told() {
    let b = example();
    let out = why(&b, "stripped\tfile\trun\tmode\ncorrupt\tfile\trun\tcontent\n\nok\tfile\tf\tx\n", &[]);
    assert_eq!((out.code, out.out().matches("cause:").count(), out.out().matches("fix:").count()), (1, 2, 1));
    assert_eq!(why(&b, "ok\tfile\tf\tx\n", &[]).out(), "");
    let json = r#"{"state":"missing","kind":"file","subject":"f","detail":"file absent"}"#;
    let out = why(&b, &format!("{json}\n"), &[]);
    assert!(out.code == 1 && out.out().contains("missing: file absent"), "{}{}", out.out(), out.err());
}

#[test]
fn what_was_seen_of_an_entry_here_counts_as_its_risk() {
    let b = example();
    assert!(!why(&b, "", &["f"]).out().contains("turns here"), "nothing was seen yet");
    let turn = |state: &str| format!("{{\"wall\":1,\"states\":{{\"f\":\"{state}\"}}}}\n");
    let history = ["ok", "missing", "healed", "missing", "healed", "ok"].map(turn).concat();
    b.home.file(".swr/history.jsonl", history);
    for (input, ids) in [("", &["f"][..]), ("missing\tfile\tf\tx\n", &[])] {
        let out = why(&b, input, ids).out();
        assert!(out.contains("; lost in 2 of 3 turns here\n"), "{out}");
    }
    assert!(!why(&b, "", &["t"]).out().contains("turns here"));
}

#[test]
fn text_of_a_manifest_cannot_reach_the_terminal_raw() {
    let b = example();
    let out = why(&b, "", &["run", "l"]);
    assert_eq!(out.code, 0, "{}", out.err());
    assert!(!out.out().contains('\x1b'), "{:?}", out.out());
    assert_eq!(out.out().lines().filter(|l| l.starts_with("evil") || l.starts_with('b')).count(), 0);
}

#[test]
fn what_it_cannot_explain_it_says() {
    let b = example();
    assert_eq!(why(&b, "", &["none"]).code, 64);
    assert_eq!(why(&b, "", &["--what"]).code, 64);
    assert_eq!(why(&b, "", &["--manifest", "absent"]).code, 4);
    b.write(b"garbage\n");
    assert_eq!(why(&b, "", &["f"]).code, 4);
}

#[test]
fn a_check_that_failed_does_not_pass_for_healthy_in_a_pipe() {
    let b = example();
    for (lines, code) in [
        ("", 1),
        ("\n", 1),
        ("garbage\n", 1),
        ("ok\tfile\tf\tfine\nmissing\tfi", 1),
        ("noise\nbad\tmanifest\tsignature\taltered\n", 4),
    ] {
        let out = why(&b, lines, &[]);
        assert_eq!((out.code, out.err().lines().count()), (code, 2), "{lines:?}: {}", out.err());
        assert!(out.err().contains("\nhint: "), "{lines:?}: {}", out.err());
    }
}

#[test]
fn a_terminal_is_not_read_as_verdicts() {
    let b = example();
    let terminal = std::fs::File::open("/dev/ptmx").unwrap();
    let out = run(b.home.command(env!("CARGO_BIN_EXE_swr-why")).stdin(terminal));
    assert_eq!((out.code, out.err().lines().count()), (64, 2), "{}", out.err());
}
