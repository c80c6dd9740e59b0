//! `prompt-cache` as a process: hits, misses, statuses, streams, consent.
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

mod cache_calls;
mod private_home;

use std::fs;
use std::time::Duration;

use cache_calls::{Calls, key};
use private_home::{run, run_with};

#[test]
fn a_repeated_call_is_answered_without_its_command() {
    let calls = Calls::new();
    let body = "cat; printf 'one\\n\\000two\\377'; echo said >&2";
    let counted = format!("echo run >>\"$HOME/runs\"\n{body}");
    let line = ["-k", &key(1), "--", "sh", "-c", &counted];
    let first = run_with(&mut calls.command("fix", &line), b"input ", Duration::from_secs(60));
    assert_eq!(
        (first.code, &first.stdout[..], first.err().as_str()),
        (0, &b"input one\n\0two\xff"[..], "said\n")
    );
    for _ in 0..3 {
        let again = calls.fix(&line);
        assert_eq!((again.code, &again.stdout, again.err().as_str()), (0, &first.stdout, ""));
    }
    let got = calls.fix(&["--get", &key(1).to_uppercase()]);
    assert_eq!((got.code, &got.stdout), (0, &first.stdout));
    assert_eq!(calls.runs(), 1);
    let missed = calls.fix(&["--get", &key(2)]);
    assert_eq!((missed.code, missed.out().as_str(), missed.err().as_str()), (5, "", ""));
    assert_eq!((calls.stat("hits"), calls.stat("misses")), (4, 1));
}

#[test]
fn check_mode_gives_hits_and_writes_nothing() {
    let calls = Calls::new();
    let empty = calls.home.census();
    let line = ["-k", &key(1), "--", "echo", "answer"];
    assert_eq!(calls.check(&line).out(), "answer\n");
    assert_eq!(calls.check(&["stats"]).code, 0);
    assert_eq!(calls.check(&["list"]).out(), "");
    assert_eq!(calls.home.census(), empty);
    assert_eq!(calls.fix(&line).out(), "answer\n");
    calls.home.file(&format!(".selfheal/cache/{}", key(7)), "not an entry");
    let mut later = Calls { now: calls.now + 100, home: calls.home };
    let before = later.home.census();
    assert_eq!(later.check(&["-k", &key(1), "--", "false"]).out(), "answer\n");
    assert_eq!(later.check(&["--get", &key(1)]).out(), "answer\n");
    assert_eq!(later.check(&["-k", &key(2), "--", "echo", "other"]).out(), "other\n");
    assert_eq!(later.check(&["--get", &key(2)]).code, 5);
    let put = run_with(&mut later.command("check", &["--put", &key(3)]), b"x", Duration::from_secs(60));
    assert_eq!((put.code, put.field(1).as_str(), put.field(3)), (5, "would", key(3)));
    assert!(put.err().starts_with("DRY: would keep 1 bytes under "), "{}", put.err());
    for purge in [&["purge"][..], &["purge", "--all"], &["purge", &key(1)], &["purge", "--older", "1"]] {
        let output = later.check(purge);
        assert_eq!((output.code, output.field(1).as_str()), (5, "would"), "{purge:?}");
        assert!(output.err().starts_with("DRY: would remove "), "{}", output.err());
    }
    later.now += 99 * 86_400;
    assert_eq!(later.check(&["--get", &key(1)]).code, 5, "expired");
    assert_eq!(later.home.census(), before);
}

#[test]
fn only_a_whole_answer_that_ended_0_is_kept() {
    let calls = Calls::new();
    let huge = "head -c 1048577 /dev/zero | tr '\\0' x";
    let cases = [
        ("echo by another role; exit 5", 5, "by another role\n", ""),
        ("echo half; exit 2", 2, "half\n", ""),
        ("exit 75", 75, "", ""),
        ("echo half; kill -KILL $$", 137, "half\n", ""),
        ("true", 0, "", "not kept: it is empty"),
        (huge, 0, "x", "not kept: it is larger than 1048576 bytes"),
    ];
    for (n, (body, code, out, said)) in cases.into_iter().enumerate() {
        for run in 1..=2 {
            let output = calls.ask(&key(n), body);
            assert_eq!(output.code, code, "{body}: {}", output.err());
            assert!(output.out().starts_with(out) && output.err().contains(said), "{body}: {}", output.err());
            assert_eq!(calls.runs(), 2 * n + run, "{body}: it runs again");
        }
    }
    assert_eq!(calls.ask(&key(90), huge).stdout.len(), 1_048_577, "all of it is passed on");
    assert_eq!(calls.kept(), [""; 0]);
    assert_eq!(calls.stat("misses"), 13);
    let most = "head -c 1048576 /dev/zero";
    assert_eq!(calls.ask(&key(91), most).code, 0);
    assert_eq!(calls.fix(&["--get", &key(91)]).stdout, vec![0; 1 << 20]);
    let nothing = calls.fix(&["-k", &key(92), "--", "no-such-program"]);
    assert_eq!((nothing.code, nothing.out().as_str()), (4, ""));
    assert!(nothing.err().contains("cannot run 'no-such-program': not found\nhint: "), "{}", nothing.err());
    let stopped =
        calls.fix(&["-k", &key(93), "--limit", "0.2", "--", "sh", "-c", "echo half; exec sleep 600"]);
    assert_eq!((stopped.code, stopped.out().as_str()), (143, "half\n"));
    assert_eq!(calls.kept(), [key(91)]);
}

#[test]
fn an_answer_that_its_reader_did_not_take_is_not_kept() {
    let calls = Calls::new();
    // The writer survives a reader that goes away, and ends 0.
    let body = "trap '' PIPE; i=0; while [ $i -lt 3000 ]; do echo 0123456789abcdef0123456789abcdef 2>/dev/null; i=$((i+1)); done; exit 0";
    let piped = calls.home.script("piped", "\"$@\" | { read -r line; echo \"$line\"; }");
    let mut command = calls.home.command(piped);
    command.arg(env!("CARGO_BIN_EXE_prompt-cache")).args(["-k", &key(1), "--", "sh", "-c", body]);
    let output = run(command.env("SELFHEAL_MODE", "fix"));
    assert_eq!(output.out(), "0123456789abcdef0123456789abcdef\n", "{}", output.err());
    assert_eq!(calls.kept(), [""; 0]);
}

#[test]
fn a_closed_or_full_stdout_is_74_and_nothing_runs_for_nobody() {
    let calls = Calls::new();
    calls.put(&key(1), b"answer");
    for (redirection, runs) in [(">&-", 0), (">/dev/full", 1)] {
        let script = calls.home.script("script", &format!("exec \"$@\" {redirection}"));
        for form in [&["--get", &key(1)][..], &["-k", &key(1), "--", "false"], &["stats"], &["list"]] {
            let mut command = calls.home.command(&script);
            command.arg(env!("CARGO_BIN_EXE_prompt-cache")).args(form).env("SELFHEAL_MODE", "fix");
            assert_eq!(run(&mut command).code, 74, "{redirection} {form:?}");
        }
        let mut command = calls.home.command(&script);
        command.arg(env!("CARGO_BIN_EXE_prompt-cache")).args(["-k", &key(2), "--", "sh", "-c"]);
        command.arg("echo run >>\"$HOME/runs\"; echo x").env("SELFHEAL_MODE", "fix");
        assert_eq!(run(&mut command).code, 74, "{redirection}");
        assert_eq!(calls.runs(), runs);
    }
}

#[test]
fn what_is_no_key_is_64_and_never_a_path() {
    let calls = Calls::new();
    let (short, long) = ("a".repeat(63), "a".repeat(65));
    let dots = format!("../{}", "a".repeat(61));
    for wrong in ["", "x", "../../etc/passwd", "/etc/passwd", &short, &long, &dots, &"g".repeat(64), "-1"] {
        for form in
            [&["--get", wrong][..], &["--put", wrong], &["-k", wrong, "--", "true"], &["purge", wrong]]
        {
            let output = calls.fix(form);
            assert_eq!((output.code, output.out().as_str()), (64, ""), "{form:?}");
            assert!(output.err().contains("hint: "), "{}", output.err());
        }
    }
    assert!(!calls.home.path(".selfheal").exists());
}

#[test]
fn wrong_usage_is_64_and_names_what_is_wrong() {
    let calls = Calls::new();
    let one = key(1);
    let cases: [(&[&str], &str); 17] = [
        (&[], "nothing to do"),
        (&["frobnicate"], "unexpected argument 'frobnicate'"),
        (&["-k", &one], "no command"),
        (&["-k", &one, "--"], "no command"),
        (&["--get", &one, "--", "true"], "a command is for -k"),
        (&["--", "true"], "a command is for -k"),
        (&["--get", &one, "--put", &one], "exclude each other"),
        (&["-k", &one, "stats", "--", "true"], "unexpected 'stats'"),
        (&["stats", "more"], "unexpected 'more'"),
        (&["stats", "--all"], "unexpected --all"),
        (&["--get", &one, "--json"], "--json changes nothing"),
        (&["purge", "--all", &one], "exclude each other"),
        (&["purge", "--all", "--older", "1"], "exclude each other"),
        (&["--get", &one, "--ttl", "soon"], "--ttl is 'soon', not a duration"),
        (&["-k", &one, "--limit", "0", "--", "true"], "--limit of 0"),
        (&["--put", &one, "--max-bytes", "0"], "--max-bytes is '0'"),
        (&["--put", &one, "--max-entries", "-1"], "--max-entries is '-1'"),
    ];
    for (line, words) in cases {
        let output = calls.fix(line);
        assert_eq!((output.code, output.out().as_str()), (64, ""), "{line:?}");
        assert!(
            output.err().contains(words) && output.err().contains("hint: "),
            "{line:?}: {}",
            output.err()
        );
    }
    assert_eq!(run(&mut calls.command("fixx", &["stats"])).code, 64);
}

#[test]
fn a_home_that_cannot_be_written_does_not_cost_the_answer() {
    let calls = Calls::new();
    calls.home.file(".selfheal", "a file where the directory should be");
    let output = calls.ask(&key(1), "echo answer; exit 0");
    assert_eq!((output.code, output.out().as_str()), (0, "answer\n"));
    assert_eq!(output.err().matches("the answer is not kept: ").count(), 1, "{}", output.err());
    assert_eq!(calls.fix(&["--get", &key(1)]).code, 5);
    assert_eq!(calls.put(&key(1), b"x").code, 74);
    // A full disk, as a limit on the size of files has it.
    fs::remove_file(calls.home.path(".selfheal")).unwrap();
    calls.put(&key(2), b"kept before");
    let full = calls.home.script("full", "ulimit -f 0; exec \"$@\"");
    let mut command = calls.home.command(&full);
    command.arg(env!("CARGO_BIN_EXE_prompt-cache")).args(["-k", &key(1), "--", "echo", "answer"]);
    let output = run(command.env("SELFHEAL_MODE", "fix"));
    assert_eq!((output.code, output.out().as_str()), (0, "answer\n"), "{}", output.err());
    assert!(output.err().contains("the answer is not kept: "), "{}", output.err());
    let mut command = calls.home.command(&full);
    command.arg(env!("CARGO_BIN_EXE_prompt-cache")).args(["--get", &key(2)]);
    let output = run(command.env("SELFHEAL_MODE", "fix"));
    assert_eq!((output.code, output.out().as_str()), (0, "kept before"), "{}", output.err());
    assert_eq!(calls.kept(), [key(2)]);
}

#[test]
fn seconds_saved_are_those_that_were_measured() {
    let calls = Calls::new();
    calls.ask(&key(1), "sleep 0.3; echo slow");
    calls.put(&key(2), b"no command, no seconds");
    assert_eq!(calls.stat("seconds_saved"), 0);
    for hits in 1..=3 {
        assert_eq!(calls.ask(&key(1), "false").out(), "slow\n");
        calls.fix(&["--get", &key(2)]);
        let saved = calls.stat("seconds_saved");
        assert!((300 * hits..60_000).contains(&saved), "{saved} ms");
    }
    let output = calls.check(&["stats", "--json"]).out();
    for part in ["{\"hits\":6,", "\"misses\":2,", "\"evicted\":0,", "\"entries\":2,", "\"seconds_saved\":"] {
        assert!(output.contains(part), "{output}");
    }
}
