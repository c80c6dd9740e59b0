//! `swr-stats` as a process: lines pass through unchanged, turns are counted, a broken history is survived.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use private_home::{Home, Output, run, run_with};

const STATS: &str = env!("CARGO_BIN_EXE_swr-stats");

fn record(home: &Home, lines: &str) -> Output {
    run_with(home.command(STATS).arg("--record"), lines.as_bytes(), Duration::from_secs(30))
}

fn stats(home: &Home, args: &[&str]) -> Output {
    run(home.command(STATS).args(args))
}

#[test]
fn lines_pass_unchanged_and_the_worst_is_the_status() {
    let home = Home::new();
    for (lines, code) in [
        ("ok\tfile\ta\tfine\n", 0),
        ("ok\tfile\ta\tfine\nmissing\tblob\tb\tfile absent\n", 1),
        ("unknown\tfile\ta\tcould not be checked\n", 1),
        ("failed\tfile\ta\trecipe ended 7\nmissing\tfile\tb\tx\n", 2),
        ("bad\tmanifest\tsignature\taltered\n", 4),
        ("\nok\tfile\ta\tno newline at the end", 0),
    ] {
        let out = record(&home, lines);
        assert_eq!((out.code, out.out().as_str()), (code, lines), "{}", out.err());
    }
    let mode = |name: &str| fs::metadata(home.path(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(".swr"), mode(".swr/history.jsonl")), (0o700, 0o600));
}

#[test]
fn survival_is_counted_over_turns_that_began_healthy() {
    let home = Home::new();
    let turn = |a: &str, b: &str| {
        record(&home, &format!("{a}\tfile\ta\tx\n{b}\tblob\tb\tx\ndegraded\tmanifest\tcold-start\tx\n"));
    };
    // a: 3 of 3; b: lost once of 2 (the turn that began damaged does not count); unknown counts as not looked at.
    turn("ok", "ok");
    turn("ok", "missing");
    turn("ok", "ok");
    turn("ok", "ok");
    turn("unknown", "unknown");
    let out = stats(&home, &[]);
    assert_eq!((out.code, out.out().as_str()), (0, "a\t0.800\t3\t4\tok\nb\t0.500\t2\t4\tok\n"));
    let json = stats(&home, &["--json"]).out();
    assert!(
        json.starts_with(
            "{\"id\":\"a\",\"survival\":0.800,\"observations\":3,\"looks\":4,\"last\":\"ok\"}\n"
        )
    );
    // The worst of several lines about one entry.
    record(&home, "ok\ttree\tt\tx\nstripped\ttree\tt\tx\nok\ttree\tt\tx\n");
    assert!(stats(&home, &[]).out().contains("t\t0.500\t0\t1\tstripped\n"));
}

#[test]
fn a_broken_history_costs_its_broken_lines_alone() {
    let home = Home::new();
    record(&home, "ok\tfile\ta\tx\n");
    let path = home.path(".swr/history.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend_from_slice(b"\xff\x00\n{\"wall\":1}\n{\"wall\":2,\"states\":{\"../x\":\"ok\",\"b\":\"what\"}}\n{\"wall\":3,\"sta");
    fs::write(&path, bytes).unwrap();
    record(&home, "ok\tfile\ta\tx\n");
    assert_eq!(stats(&home, &[]).out(), "a\t0.666\t1\t2\tok\n");
    assert_eq!(stats(&Home::new(), &[]).out(), "");
    assert_eq!(stats(&home, &["operand"]).code, 64);
}

#[test]
fn a_history_that_cannot_be_written_changes_no_verdict() {
    let home = Home::new();
    let mut command = home.command(STATS);
    command.env("SWR_HOME", "/proc/swr").arg("--record");
    let out = run_with(&mut command, b"missing\tfile\ta\tx\n", Duration::from_secs(30));
    assert_eq!((out.code, out.out().as_str()), (1, "missing\tfile\ta\tx\n"));
    assert!(out.err().contains("not recorded"), "{}", out.err());
    fs::create_dir_all(home.path(".swr/history.jsonl")).unwrap();
    assert_eq!(record(&home, "ok\tfile\ta\tx\n").code, 0);
    assert_eq!(stats(&home, &[]).code, 74);
}

#[test]
fn verdicts_in_json_are_recorded_like_lines() {
    let home = Home::new();
    let object = |state: &str, id: &str| {
        format!("{{\"state\":\"{state}\",\"kind\":\"file\",\"subject\":\"{id}\",\"detail\":\"x \\\"y\"}}\n")
    };
    for (lines, code) in [
        (object("ok", "a") + &object("ok", "b"), 0),
        (object("missing", "a") + &object("ok", "b"), 1),
        ("{\"state\":\"what\"}\n{\"state\":1}\n{broken\n[]\n".to_owned(), 1),
    ] {
        let out = record(&home, &lines);
        assert_eq!((out.code, out.out()), (code, lines), "{}", out.err());
    }
    assert_eq!(stats(&home, &[]).out(), "a\t0.333\t1\t2\tmissing\nb\t0.666\t1\t2\tok\n");
}

#[test]
fn no_history_is_said_with_what_makes_one() {
    let out = stats(&Home::new(), &[]);
    assert_eq!((out.code, out.out().as_str(), out.err().lines().count()), (0, "", 2));
    assert!(out.err().contains("hint: swr doctor"), "{}", out.err());
}

#[test]
fn a_check_that_failed_is_not_recorded_as_healthy() {
    for lines in ["", "\n\n", "garbage\n", "ok\tfile\ta\tfine\nmissing\tfi", "ok\tfile\ta\tfine\nswr: x\n"] {
        let home = Home::new();
        let out = record(&home, lines);
        assert_eq!((out.code, out.out().as_str()), (1, lines), "{}", out.err());
        assert_eq!(out.err().lines().count(), 2, "{}", out.err());
        assert!(out.err().contains("\nhint: "), "{}", out.err());
    }
    let long = format!("ok\tfile\ta\t{}\n", "x".repeat(1 << 17));
    let out = record(&Home::new(), &long);
    assert_eq!((out.code, out.out() == long), (1, true), "a line that is none: {}", out.err());
}

#[test]
fn a_repair_that_does_not_repair_is_no_second_look() {
    let home = Home::new();
    let repair = |lines: &str| {
        let mut command = home.command(STATS);
        run_with(command.args(["--record", "--repair"]), lines.as_bytes(), Duration::from_secs(30))
    };
    for _ in 0..4 {
        record(&home, "missing\tfile\ta\tx\nshort\tblob\tb\tx\nok\tfile\tc\tx\n");
        let lines = "missing\tfile\ta\tstill damaged after its repair: x\nok\tblob\tb\tcame back by itself\n";
        let out = repair(lines);
        assert_eq!((out.code, out.out().as_str()), (1, lines));
    }
    let out = stats(&home, &[]).out();
    assert_eq!(out, "a\t0.500\t0\t4\tmissing\nb\t0.200\t3\t4\thealed\nc\t0.800\t3\t4\tok\n");
    let nothing = repair("");
    assert_eq!((nothing.code, nothing.err().as_str()), (0, ""), "nothing was to be repaired");
    assert_eq!(stats(&home, &["--repair"]).code, 64);
}

#[test]
fn a_terminal_is_not_read_as_verdicts() {
    let home = Home::new();
    let terminal = fs::File::open("/dev/ptmx").unwrap();
    let out = run(home.command(STATS).arg("--record").stdin(terminal));
    assert_eq!((out.code, out.err().lines().count()), (64, 2), "{}", out.err());
}
