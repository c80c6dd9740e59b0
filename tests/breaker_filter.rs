//! `breaker` as a filter: what of a line counts, what leaves as `open`, and that the stream stays a stream.
#![allow(clippy::disallowed_methods, reason = "tests start programs and lay out files themselves")]

mod breaker_calls;
mod private_home;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use breaker_calls::Calls;
use private_home::{run, run_with};

/// Every state, the exit status of one such line about a model, and what the line does.
const STATES: [(&str, i32, Does); 14] = [
    ("ok", 0, Does::Close),
    ("healed", 0, Does::Close),
    ("would", 5, Does::Nothing),
    ("missing", 3, Does::Damage),
    ("short", 3, Does::Damage),
    ("corrupt", 3, Does::Damage),
    ("stripped", 3, Does::Damage),
    ("failed", 3, Does::Count),
    ("open", 5, Does::Nothing),
    ("skipped", 5, Does::Nothing),
    ("degraded", 5, Does::Nothing),
    ("unknown", 5, Does::Nothing),
    ("bad", 3, Does::Damage),
    ("untracked", 5, Does::Nothing),
];

#[derive(Clone, Copy, PartialEq)]
enum Does {
    Close,
    /// Leaves as `open` while it is open.
    Damage,
    /// The same, and counts.
    Count,
    Nothing,
}

#[test]
fn every_state_while_closed() {
    for mode in ["fix", "check"] {
        for (word, code, does) in STATES {
            let mut calls = Calls::new();
            calls.mode = mode;
            let line = format!("{word}\tmodel\tscout\tdetail \\\\ x\n");
            for _ in 0..3 {
                let output = calls.filter(&line);
                assert_eq!((output.out(), output.err().as_str()), (line.clone(), ""), "{word}");
                assert_eq!(output.code, code, "{word}");
            }
            let opened = does == Does::Count && mode == "fix";
            assert_eq!(calls.status("scout"), if opened { "open" } else { "ok" }, "{word} {mode}");
            assert_eq!(calls.home.path(".selfheal").exists(), opened, "{word} {mode}");
        }
    }
}

#[test]
fn every_state_while_open() {
    for mode in ["fix", "check"] {
        for (word, code, does) in STATES {
            let mut calls = Calls::new();
            calls.open("scout");
            calls.at(60);
            calls.mode = mode;
            let before = calls.home.census();
            let line = format!("{word}\tmodel\tscout\tdetail\n");
            let output = calls.filter(&line);
            if matches!(does, Does::Damage | Does::Count) {
                let expected = format!(
                    "open\tmodel\tscout\topen for 29 min more after 3 failures; was {word}: detail\n"
                );
                assert_eq!((output.out(), output.code), (expected, 5), "{word} {mode}");
            } else {
                assert_eq!((output.out(), output.code), (line, code), "{word} {mode}");
            }
            assert_eq!(output.err(), "");
            if does == Does::Close && mode == "fix" {
                assert_eq!(calls.status("scout"), "ok", "{word}");
            } else {
                assert_eq!(calls.home.census(), before, "{word} {mode}");
            }
        }
    }
}

#[test]
fn every_state_while_half_open() {
    for (word, code, does) in STATES {
        let mut calls = Calls::new();
        calls.open("scout");
        calls.at(1800);
        let line = format!("{word}\tmodel\tscout\tdetail\n");
        let output = calls.filter(&line);
        assert_eq!((output.out(), output.code), (line, code), "{word}");
        let after = match does {
            Does::Close => "ok",
            Does::Count => "open",
            Does::Damage | Does::Nothing => "degraded",
        };
        assert_eq!(calls.status("scout"), after, "{word}");
    }
}

#[test]
fn the_worst_word_of_all_lines_as_they_leave_decides() {
    let calls = Calls::new();
    calls.open("down");
    for (lines, code) in [
        ("ok\tmodel\ta\t-\nhealed\tbinary\tb\t-\n", 0),
        ("ok\tmodel\ta\t-\nwould\tmodel\tb\t-\n", 5),
        ("missing\tmodel\ta\t-\nmissing\tbinary\tb\t-\nfailed\trun\tc\t-\n", 4),
        ("failed\trun\tc\t-\nwould\tmodel\tb\t-\n", 2),
        ("missing\tcache\tc\t-\nshort\tmodel\tb\t-\nok\tmodel\tb\t-\n", 3),
        ("missing\tmodel\tdown\t-\n", 5),
        ("missing\tmodel\tdown\t-\nmissing\tmodel\tup\t-\n", 3),
        ("corrupt\tfile\tentry\t-\n", 5),
    ] {
        assert_eq!(calls.filter(lines).code, code, "{lines}");
    }
}

#[test]
fn a_producer_that_said_nothing_is_not_healthy() {
    for mode in ["fix", "check"] {
        let mut calls = Calls::new();
        calls.mode = mode;
        for args in [&[][..], &["--json"]] {
            let output = run_with(&mut calls.breaker(args), b"", Duration::from_secs(60));
            assert_eq!(
                (output.code, output.out().as_str(), output.err().as_str()),
                (5, "", "breaker: no verdict came: nothing was looked at\n")
            );
        }
    }
}

#[test]
fn the_failure_that_opens_leaves_as_failed_and_the_next_as_open() {
    let calls = Calls::new();
    let output = calls.filter(&"failed\tmodel\tscout\tx\n".repeat(4));
    let states: Vec<String> =
        output.out().lines().map(|l| l.split('\t').next().unwrap().to_owned()).collect();
    assert_eq!(states, ["failed", "failed", "failed", "open"]);
    assert_eq!(calls.log(), ["breaker open scout"]);
    // Subjects are told apart, kinds are not.
    let calls = Calls::new();
    calls.filter("failed\tmodel\ta\tx\nfailed\tmodel\tb\tx\nfailed\trun\ta\tx\nfailed\tbinary\ta\tx\n");
    assert_eq!((calls.status("a"), calls.status("b")), ("open".into(), "ok".into()));
}

#[test]
fn a_line_that_is_no_verdict_passes_and_is_not_healthy() {
    for (lines, code) in [
        ("hello\n", 5),
        ("\n", 5),
        ("ok\tmodel\tscout\n", 5),
        ("OK\tmodel\tscout\tx\n", 5),
        ("{\"state\":\"ok\"}\n{\"state\":\"failed\"}\n", 5),
        ("hello\nmissing\tmodel\tscout\tx\nhello", 3),
    ] {
        let calls = Calls::new();
        let output = calls.filter(lines);
        assert_eq!((output.out().as_str(), output.code), (lines, code), "{lines:?}");
        assert_eq!(output.err().lines().count(), 1, "warned once: {}", output.err());
    }
}

#[test]
fn bytes_pass_unchanged() {
    let calls = Calls::new();
    calls.open("scout");
    let mut input = b"ok\tmodel\ta\\\\b\xff\td\0\x1b[31m\tmore\tfields\n".to_vec();
    input.extend_from_slice(b"missing\tmodel\tscout\t\xfe\tmore");
    let output = run_with(&mut calls.breaker(&[]), &input, Duration::from_secs(60));
    let end = b"open\tmodel\tscout\topen for 30 min more after 3 failures; was missing: \xfe\tmore";
    let expected = [&input[..=input.iter().position(|b| *b == b'\n').unwrap()], end].concat();
    assert_eq!(output.stdout, expected, "{}", output.out());
}

#[test]
fn a_line_longer_than_memory_is_allowed_to_hold_is_still_a_verdict() {
    let calls = Calls::new();
    calls.open("scout");
    let long = "x".repeat(1 << 20);
    let input = format!("missing\tmodel\tscout\t{long}\nmissing\tmodel\tother\t{long}\nok\tmodel\ty\tz\n");
    let output = calls.filter(&input);
    let expected = input.replacen("missing", "open", 1).replacen(
        "scout\t",
        "scout\topen for 30 min more after 3 failures; was missing: ",
        1,
    );
    assert!(output.out() == expected && output.code == 3, "{}", output.code);
    let json = run_with(&mut calls.breaker(&["--json"]), input.as_bytes(), Duration::from_secs(60));
    assert_eq!((json.out().lines().count(), json.code), (3, 3));
}

#[test]
fn a_line_that_never_ends_does_not_fill_memory() {
    let calls = Calls::new();
    for start in ["", "failed\\tmodel\\tscout\\t"] {
        let breaker = env!("CARGO_BIN_EXE_breaker");
        let script =
            format!("ulimit -v 32768; (printf '{start}'; head -c 200000000 /dev/zero) | '{breaker}' | wc -c");
        let output = run(calls.command("sh").args(["-c", &script]));
        let expected = 200_000_000 + start.replace("\\t", "\t").len();
        assert_eq!(output.out().trim(), expected.to_string(), "{}", output.err());
    }
    assert!(calls.call(&["status"]).out().contains("1 failure"));
}

#[test]
fn a_line_is_handed_on_before_the_next_comes() {
    let calls = Calls::new();
    let mut child = calls.breaker(&[]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (send, lines) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            send.send(line.unwrap()).unwrap();
        }
    });
    for n in 0..3 {
        // The second half of a line comes later.
        input.write_all(format!("ok\tmodel\tm{n}\tx\nok\tmod").as_bytes()).unwrap();
        let line = lines.recv_timeout(Duration::from_secs(30)).expect("the line comes through");
        assert_eq!(line, format!("ok\tmodel\tm{n}\tx"));
        input.write_all(format!("el\tn{n}\ty\n").as_bytes()).unwrap();
        let line = lines.recv_timeout(Duration::from_secs(30)).expect("the second half comes through");
        assert_eq!(line, format!("ok\tmodel\tn{n}\ty"));
    }
    drop(input);
    reader.join().unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let calls = Calls::new();
    let breaker = env!("CARGO_BIN_EXE_breaker");
    let script = format!("exec yes \"$(printf 'failed\\tmodel\\tscout\\tx')\" | '{breaker}' | head -n 1");
    let output = run(calls.command("sh").args(["-c", &script]));
    assert_eq!((output.out().as_str(), output.err().as_str()), ("failed\tmodel\tscout\tx\n", ""));
}

#[test]
fn a_command_whose_reader_left_ends_as_without_us_and_is_no_failure() {
    let calls = Calls::new();
    let breaker = env!("CARGO_BIN_EXE_breaker");
    // The second command gives no verdict before its reader has gone.
    for text in ["failed\\tmodel\\tscout\\tx", "hello"] {
        for option in ["", "--verdicts"] {
            let script = format!("exec yes \"$(printf '{text}')\"");
            let line = format!("{{ '{breaker}' {option} s -- sh -c \"$1\"; echo $? >code; }} | head -n 1");
            let output = run(calls.command("sh").args(["-c", &line, "sh", &script]));
            assert_eq!((output.out().lines().count(), output.err().as_str()), (1, ""));
            assert_eq!(fs::read_to_string(calls.home.path("code")).unwrap(), "141\n");
        }
    }
    assert!(!calls.state("s.state").exists());
}

#[test]
fn streams_that_are_closed_or_full_end_74() {
    let calls = Calls::new();
    let breaker = env!("CARGO_BIN_EXE_breaker");
    for redirect in [">/dev/full", ">&-", "<&-"] {
        for args in ["", "--json", "--verdicts x -- printf 'ok\\tmodel\\tx\\ty\\n'", "status x", "reset x"] {
            if redirect == "<&-" && !matches!(args, "" | "--json") {
                continue;
            }
            let script = format!("printf 'ok\\tmodel\\tx\\ty\\n' | '{breaker}' {args} {redirect}");
            let output = run(calls.command("sh").args(["-c", &script]));
            let lines = output.err().lines().count();
            assert_eq!((output.code, lines), (74, 1), "{args} {redirect}: {}", output.err());
        }
    }
}

#[test]
fn a_terminal_is_not_read() {
    let calls = Calls::new();
    let terminal = fs::File::open("/dev/ptmx").unwrap();
    let output = run(calls.breaker(&[]).stdin(terminal));
    assert_eq!(output.code, 64, "{}", output.err());
}

#[test]
fn json_says_the_same_as_the_lines() {
    let calls = Calls::new();
    calls.open("scout");
    let lines = "missing\tmodel\tscout\tno \"x\"\nok\tmodel\ta\\nb\t-\nhello\n";
    let output = run_with(&mut calls.breaker(&["--json"]), lines.as_bytes(), Duration::from_secs(60));
    let expected = [
        r#"{"state":"open","kind":"model","subject":"scout","detail":"open for 30 min more after 3 failures; was missing: no \"x\""}"#,
        r#"{"state":"ok","kind":"model","subject":"a\nb","detail":"-"}"#,
        r#"{"state":"unknown","kind":"host","subject":"-","detail":"not a verdict: hello"}"#,
    ];
    assert_eq!((output.out().lines().collect::<Vec<_>>(), output.code), (expected.to_vec(), 5));
}

#[test]
fn a_subject_too_long_for_a_breaker_passes() {
    let calls = Calls::new();
    let line = format!("failed\tmodel\t{}\tx\n", "s".repeat(4097));
    for _ in 0..4 {
        let output = calls.filter(&line);
        assert!(output.out() == line && output.code == 3);
    }
    assert_eq!(calls.call(&["status"]).out(), "");
    let line = format!("failed\tmodel\t{}\tx\n", "s".repeat(4096));
    let states = [(); 4].map(|()| calls.filter(&line).field(1));
    assert_eq!(states, ["failed", "failed", "failed", "open"]);
}

#[test]
fn the_idiom_fetches_three_times_and_then_stops() {
    let calls = Calls::new();
    // A verifier that finds damage, a fetcher that fails.
    calls.home.script("verify", "printf 'missing\\tmodel\\tscout\\tno such file\\n'; exit 3");
    calls.home.script("fetch", "echo run >>runs; printf 'failed\\tmodel\\tscout\\tstalled\\n'; exit 3");
    let breaker = env!("CARGO_BIN_EXE_breaker");
    let idiom = format!("./verify | '{breaker}' || '{breaker}' --verdicts scout -- ./fetch");
    let codes = [(); 5].map(|()| run(calls.command("sh").args(["-c", &idiom])).code);
    assert_eq!((codes, calls.runs()), ([3, 3, 3, 5, 5], 3));
    let mut out = String::new();
    fs::File::open(calls.state("scout.state")).unwrap().read_to_string(&mut out).unwrap();
    assert!(
        out.starts_with("breaker 1\nsubject scout\nstate open\nfailures 3\nsince 1796000000 500000 boot-a\n")
    );
}
