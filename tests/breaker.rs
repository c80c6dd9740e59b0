//! `breaker` as a prefix: when a command is run, what counts, and that the clock cannot be talked round.
#![allow(clippy::disallowed_methods, reason = "tests start programs and lay out files themselves")]

mod breaker_calls;
mod private_home;

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use breaker_calls::{Calls, START, until};
use private_home::{alive, run, run_with, wait};

#[test]
fn d15_fifty_calls_while_open_run_nothing_and_move_nothing() {
    let mut calls = Calls::new();
    calls.open("scout");
    let before = fs::read(calls.state("scout.state")).unwrap();
    for call in 0..50 {
        calls.at(call * 36);
        let refused = calls.attempt("scout", "1");
        assert_eq!((refused.code, refused.out().as_str()), (5, ""), "{}", refused.err());
        assert_eq!(refused.err().lines().count(), 1, "{}", refused.err());
        assert!(refused.err().starts_with("breaker: 'scout' is open for "), "{}", refused.err());
        if call % 10 == 0 {
            // Failures that others report meanwhile do not count either.
            assert_eq!(calls.filter("failed\tmodel\tscout\tx\n").field(1), "open");
        }
    }
    assert_eq!(calls.runs(), 3);
    assert_eq!(fs::read(calls.state("scout.state")).unwrap(), before);
    calls.at(1799);
    assert_eq!(calls.attempt("scout", "0").code, 5);
    calls.at(1801);
    assert_eq!(calls.attempt("scout", "0").code, 0);
    assert_eq!(calls.runs(), 4);
}

/// Starts eight callers at once whose command waits for the file `go`.
fn eight(calls: &Calls, status: &str) -> Vec<Child> {
    let body = "echo run >>\"$HOME/runs\"; while [ ! -e go ]; do sleep 0.02; done; exit \"$1\"";
    calls.home.script("slow", body);
    let mut command = calls.breaker(&["scout", "--", "./slow", status]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    (0..8).map(|_| command.spawn().unwrap()).collect()
}

/// The statuses of children, each of which ends within a minute.
fn codes(children: &mut [Child]) -> Vec<i32> {
    let end = Instant::now() + Duration::from_secs(60);
    children.iter_mut().map(|c| wait(c, end).expect("it ends").code().unwrap_or(-1)).collect()
}

#[test]
fn d15_after_the_cooldown_exactly_one_of_eight_callers_probes() {
    for (status, code, after) in [("0", 0, "ok"), ("9", 9, "open")] {
        let mut calls = Calls::new();
        calls.open("scout");
        calls.at(1801);
        let mut callers = eight(&calls, status);
        let refused = |callers: &mut [Child]| {
            let ended = callers.iter_mut().filter_map(|c| c.try_wait().unwrap());
            ended.filter(|status| status.code() == Some(5)).count()
        };
        until("seven to be refused and one to run", || refused(&mut callers) == 7 && calls.runs() == 4);
        // While the probe runs it is open for a filter, too.
        assert_eq!(calls.filter("missing\tmodel\tscout\tx\n").field(1), "open");
        assert_eq!(calls.filter("failed\tmodel\tscout\tx\n").field(1), "open");
        calls.home.file("go", "");
        let mut codes = codes(&mut callers);
        codes.sort_unstable();
        let mut expected = vec![5, 5, 5, 5, 5, 5, 5, code];
        expected.sort_unstable();
        assert_eq!((codes, calls.runs()), (expected, 4));
        assert_eq!(calls.status("scout"), after);
    }
}

#[test]
fn d15_a_failed_probe_opens_once_for_one_cooldown() {
    let mut calls = Calls::new();
    calls.open("scout");
    for round in 1..4 {
        calls.at(round * 2000);
        assert_eq!(calls.status("scout"), "degraded");
        assert_eq!(calls.attempt("scout", "1").code, 1);
        for second in [0, 1, 1799] {
            calls.at(round * 2000 + second);
            assert_eq!(calls.attempt("scout", "1").code, 5);
        }
    }
    calls.at(8000);
    assert_eq!(calls.attempt("scout", "0").code, 0);
    assert_eq!(calls.runs(), 7);
    // A success starts the count anew.
    calls.open("scout");
    assert_eq!(calls.attempt("scout", "0").code, 5);
    let open = "breaker open scout";
    assert_eq!(calls.log(), [open, open, open, open, "breaker close scout", open]);
}

#[test]
fn d15_a_probe_killed_with_9_frees_its_lease() {
    let mut calls = Calls::new();
    calls.open("scout");
    calls.at(1801);
    let mut marks = Vec::new();
    for killed in 1..4 {
        let mark = format!("probe-{}-{killed}", std::process::id());
        calls.home.script("hang", "echo run >>\"$HOME/runs\"; echo \"$1\" >begun; exec tail -f /dev/null");
        let mut probe = calls.breaker(&["scout", "--", "./hang", &mark]).process_group(0).spawn().unwrap();
        until("the probe", || fs::read_to_string(calls.home.path("begun")).is_ok_and(|t| t.trim() == mark));
        assert_eq!(calls.attempt("scout", "0").code, 5);
        assert!(calls.home.path(".selfheal/state/breaker/scout.lease").exists());
        probe.kill().unwrap();
        probe.wait().unwrap();
        assert_eq!(calls.runs(), 3 + killed);
        marks.push(mark);
    }
    assert_eq!(calls.attempt("scout", "1").code, 1);
    assert_eq!(calls.attempt("scout", "1").code, 5);
    assert!(!calls.state("scout.lease").exists());
    until("the commands to die with it", || !marks.iter().any(|mark| alive(mark)));
}

#[test]
fn the_status_decides_without_verdicts() {
    for status in ["1", "2", "3", "4", "7", "63", "65", "100", "126", "127", "130", "137", "255"] {
        let calls = Calls::new();
        calls.open("warm-up");
        for _ in 0..3 {
            assert_eq!(calls.attempt("x", status).code.to_string(), status);
        }
        assert_eq!((calls.attempt("x", "0").code, calls.runs()), (5, 6), "{status}");
    }
    for status in ["0", "5", "64", "69", "70", "74", "75"] {
        let calls = Calls::new();
        for _ in 0..4 {
            assert_eq!(calls.attempt("x", status).code.to_string(), status);
        }
        assert!(!calls.state("x.state").exists(), "{status}");
    }
    // What neither counts nor closes lets the next caller probe.
    let mut calls = Calls::new();
    calls.open("x");
    calls.at(1801);
    assert_eq!((calls.attempt("x", "5").code, calls.attempt("x", "75").code), (5, 75));
    assert_eq!((calls.runs(), calls.status("x").as_str()), (5, "degraded"));
    assert_eq!((calls.attempt("x", "1").code, calls.attempt("x", "1").code), (1, 5));
}

#[test]
fn the_last_verdict_of_the_subject_decides() {
    // Text, status, whether three of it open.
    let long = "x".repeat(100_000);
    for (text, status, opens) in [
        ("failed\\tmodel\\tscout\\tx\\n", "3", true),
        ("failed\\tmodel\\tscout\\tx\\n", "0", true),
        ("failed\\tmodel\\tscout\\tx", "3", true),
        ("failed\\tbinary\\tscout\\tx\\n", "4", true),
        ("missing\\tmodel\\tscout\\tx\\nfailed\\tmodel\\tscout\\tx\\n", "3", true),
        ("failed\\tmodel\\tscout\\tx\\nok\\tmodel\\tother\\tx\\n", "3", true),
        (&format!("failed\\tmodel\\tscout\\t{long}\\n"), "3", true),
        ("failed\\tmodel\\tscout\\tx\\nhealed\\tmodel\\tscout\\tx\\n", "0", false),
        ("failed\\tmodel\\tscout\\tx\\nbad\\tmodel\\tscout\\tx\\n", "3", false),
        ("bad\\tmodel\\tscout\\tx\\n", "3", false),
        ("missing\\tmodel\\tscout\\tx\\n", "3", false),
        ("would\\tmodel\\tscout\\tx\\n", "5", false),
        ("failed\\tmodel\\tother\\tx\\n", "3", false),
        // No verdict at all: the status.
        ("", "3", true),
        ("", "137", true),
        ("failed\\tmodel\\tscout\\n", "1", true),
        ("", "0", false),
        ("", "75", false),
    ] {
        let calls = Calls::new();
        for _ in 0..3 {
            let output = calls.verdicts(status, text);
            assert_eq!(output.code.to_string(), status, "{text}: {}", output.err());
            assert_eq!(output.out(), text.replace("\\t", "\t").replace("\\n", "\n"));
        }
        let expected = if opens { "open" } else { "ok" };
        assert_eq!(calls.status("scout"), expected, "{status} {}", &text[..text.len().min(99)]);
    }
}

#[test]
fn a_verdict_of_health_closes() {
    for word in ["ok", "healed"] {
        let mut calls = Calls::new();
        calls.open("scout");
        calls.at(1800);
        assert_eq!(calls.verdicts("0", &format!("{word}\\tmodel\\tscout\\tx\\n")).code, 0);
        assert!(!calls.state("scout.state").exists());
    }
}

#[test]
fn a_command_killed_before_its_verdict_counts() {
    let calls = Calls::new();
    let script = "printf 'ok\\tmodel\\tother\\tx\\n'; kill -9 $$";
    for _ in 0..3 {
        assert_eq!(calls.call(&["--verdicts", "scout", "--", "sh", "-c", script]).code, 137);
    }
    assert_eq!(calls.status("scout"), "open");
}

#[test]
fn the_command_gets_and_gives_what_it_would_without_us() {
    let calls = Calls::new();
    let script = "cat; echo err >&2; echo \"$SELFHEAL_MODE $1\"; exit 9";
    for verdicts in [&[][..], &["--verdicts"]] {
        let args = [verdicts, &["x y\n", "--", "sh", "-c", script, "sh", "--help"]].concat();
        let output = run_with(&mut calls.breaker(&args), b"in\n", Duration::from_secs(60));
        assert_eq!((output.out().as_str(), output.code), ("in\nfix --help\n", 9));
        assert_eq!(output.err(), "err\n");
    }
}

#[test]
fn a_signal_is_passed_on_and_is_no_failure() {
    let calls = Calls::new();
    calls.home.script("wait", "trap 'exit 7' TERM; echo >begun; while :; do sleep 0.05; done");
    for _ in 0..3 {
        let _ = fs::remove_file(calls.home.path("begun"));
        let mut child = calls.breaker(&["x", "--", "./wait"]).spawn().unwrap();
        until("the command", || calls.home.path("begun").exists());
        run(calls.home.command("kill").arg(child.id().to_string()));
        assert_eq!(codes(std::slice::from_mut(&mut child)), [7]);
    }
    assert_eq!(calls.status("x"), "ok");
    assert!(!calls.state("x.state").exists());
}

#[test]
fn what_cannot_be_run_is_4_and_no_failure() {
    let calls = Calls::new();
    let not_runnable = calls.home.file("plain", "text");
    for program in ["no-such-program", "/no/such/program", "/", not_runnable.to_str().unwrap()] {
        for _ in 0..4 {
            let output = calls.call(&["x", "--", program]);
            assert_eq!(output.code, 4, "{program}: {}", output.err());
            assert!(
                output.err().contains("cannot run") && output.err().contains("hint: "),
                "{}",
                output.err()
            );
        }
    }
    assert!(!calls.state("x.state").exists());
}

#[test]
fn a_command_at_its_limit_is_stopped_and_counts() {
    let calls = Calls::new();
    for _ in 0..3 {
        let output = calls.call(&["--limit", "0.05", "x", "--", "tail", "-f", "/dev/null"]);
        assert_eq!(output.code, 143, "{}", output.err());
        assert!(output.err().contains("limit"), "{}", output.err());
    }
    assert_eq!(calls.status("x"), "open");
}

#[test]
fn own_rules_hold_for_what_they_open() {
    let mut calls = Calls::new();
    let args = ["--failures", "1", "--cooldown", "1.5m", "x", "--", "false"];
    assert_eq!(calls.call(&args).code, 1);
    calls.at(89);
    assert_eq!(calls.attempt("x", "0").code, 5);
    calls.at(90);
    assert_eq!(calls.attempt("x", "0").code, 0);
}

#[test]
fn a_clock_that_is_moved_neither_frees_nor_locks_up() {
    let clock = |wall: u64, mono: u64, boot: &str| format!("{wall}:{mono}:{boot}");
    // Opened at START, monotonic 500, boot-a; clocks of later calls and whether each is run.
    for steps in [
        // The wall jumps a year ahead and a year back: nothing happens before monotonic 2300.
        vec![
            (clock(START + 31_536_000, 600, "boot-a"), false),
            (clock(START - 31_536_000, 2299, "boot-a"), false),
            (clock(START - 31_536_000, 2301, "boot-a"), true),
        ],
        // Rebooted: the wall counts, and from the first look on this boot's monotonic clock.
        vec![
            (clock(START + 600, 3, "boot-b"), false),
            (clock(START + 31_536_000, 1202, "boot-b"), false),
            (clock(START, 1204, "boot-b"), true),
        ],
        // Rebooted without a battery: the stamp lies in the future, one cooldown from the first look.
        vec![
            (clock(100, 3, "boot-b"), false),
            (clock(1000, 1802, "boot-b"), false),
            (clock(1000, 1804, "boot-b"), true),
        ],
        // The same without any boot id.
        vec![(clock(100, 3, ""), false), (clock(1899, 0, ""), false), (clock(1900, 0, ""), true)],
        // Off for a day.
        vec![(clock(START + 86_400, 1, "boot-b"), true)],
    ] {
        let mut calls = Calls::new();
        calls.open("x");
        for (clock, runs) in &steps {
            calls.clock.clone_from(clock);
            assert_eq!(calls.attempt("x", "0").code, if *runs { 0 } else { 5 }, "{clock} of {steps:?}");
        }
    }
}

#[test]
fn a_subject_is_a_name_and_never_a_path() {
    let calls = Calls::new();
    let long = "l".repeat(300);
    let names = ["status", "reset", "..", ".", "/", "../../x", "a\nb", " ", "%41", "A", "-", "é", &long];
    for (done, name) in names.iter().enumerate() {
        calls.open(name);
        assert_eq!(calls.attempt(name, "0").code, 5, "{name:?}");
        assert_eq!(calls.runs(), 3 * (done + 1), "{name:?}");
        assert_eq!(calls.status(name), "open", "{name:?}");
    }
    let files = fs::read_dir(calls.state("")).unwrap().count();
    assert_eq!(files, names.len());
    assert!(!calls.home.path(".selfheal/x.state").exists());
    let all = calls.call(&["status"]);
    assert_eq!(all.out().lines().count(), names.len());
    assert!(
        all.out().contains("open\thost\ta\\nb\topen for 30 min more after 3 failures\n"),
        "{}",
        all.out()
    );
    for name in names {
        assert_eq!(calls.call(&["reset", name]).field(1), "healed", "{name:?}");
    }
    assert_eq!(calls.call(&["status"]).out(), "");
}

#[test]
fn wrong_usage_is_64_with_a_hint() {
    let calls = Calls::new();
    let huge = "x".repeat(5000);
    for args in [
        &["x"][..],
        &["x", "true"],
        &["--", "true"],
        &["x", "--"],
        &["x", "y", "--", "true"],
        &["", "--", "true"],
        &[&huge, "--", "true"],
        &["reset"],
        &["reset", "x", "y"],
        &["status", "x", "y"],
        &["status", ""],
        &["--verdicts"],
        &["--limit", "5"],
        &["--json", "x", "--", "true"],
        &["--failures", "0", "x", "--", "true"],
        &["--failures", "-1", "x", "--", "true"],
        &["--failures", "1001", "x", "--", "true"],
        &["--cooldown", "0", "x", "--", "true"],
        &["--cooldown", "8d", "x", "--", "true"],
        &["--cooldown", "nan", "x", "--", "true"],
        &["--limit", "0", "x", "--", "true"],
        &["--no-such", "x", "--", "true"],
        &["-v", "x", "--", "true"],
    ] {
        let output = calls.call(args);
        assert_eq!((output.code, output.out().as_str()), (64, ""), "{args:?}");
        let err = output.err();
        assert!(err.starts_with("breaker: ") && err.contains("\nhint: "), "{args:?}: {err}");
        assert_eq!(err.lines().count(), 2, "{args:?}: {err}");
    }
    let misspelt = run(calls.breaker(&["x", "--", "true"]).env("SELFHEAL_MODE", "fxi"));
    assert_eq!(misspelt.code, 64);
    assert_eq!(calls.runs(), 0);
}
