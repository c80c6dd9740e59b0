//! `sh-timeout` as a process: statuses, usage, terminal questions, what the command is given.
#![allow(clippy::disallowed_methods, reason = "tests lay out and clear files themselves")]

mod private_home;

use std::io::Write as _;
use std::time::Duration;

use private_home::*;

const TOOL: &str = env!("CARGO_BIN_EXE_sh-timeout");

#[test]
fn exit_status_is_the_commands_own_or_names_what_stopped_it() {
    let home = Home::new();
    home.file("plain", "");
    home.script("ok", "exit 0");
    home.file("bare", "exit 9");
    std::fs::set_permissions(home.path("bare"), std::fs::metadata(home.path("ok")).unwrap().permissions())
        .unwrap();
    let table: &[(&[&str], i32)] = &[
        (&["5", "true"], 0),
        (&["5", "false"], 1),
        (&["1e1s", "./ok"], 0),
        (&["5", "sh", "-c", "exit 200"], 200),
        (&["5", "--", "sh", "-c", "exit 64"], 64),
        (&["5", "sh", "-c", "exit 127"], 127),
        (&["5", "./bare"], 9),
        (&["5", "sh", "-c", "kill -KILL $$"], 137),
        (&["5", "sh", "-c", "kill -SEGV $$"], 139),
        (&[".1", "sleep", "60"], 2),
        (&["0.002m", "sleep", "60"], 2),
        (&["1e-400", "sleep", "60"], 2),
        (&["-p", ".1", "sleep", "60"], 143),
        (&["-p", "-s", "INT", ".1", "sleep", "60"], 130),
        (&["--preserve-status", "--signal=KILL", ".1", "sleep", "60"], 137),
        (&["-s", "SIGKILL", ".1", "sleep", "60"], 2),
        (&["-k", "0", ".1", "sh", "-c", "trap '' TERM; while :; do sleep 1; done"], 2),
        (&["--idle", ".1", "50", "sleep", "60"], 2),
        (&["--idle", "5", "50", "echo", "hi"], 0),
        (&["--max-output", "3", "50", "echo", "hello"], 2),
        (&["--max-output", "6", "50", "echo", "hello"], 0),
        (&["--foreground", "5", "true"], 0),
        (&["5", "/no/such/command"], 4),
        (&["5", "no-such-command"], 4),
        (&["5", "/"], 4),
        (&["5", "./plain"], 4),
        (&["5", ""], 4),
        (&[], 64),
        (&["5"], 64),
        (&["5", "--"], 64),
        (&["0", "true"], 64),
        (&["0.0s", "true"], 64),
        (&["--idle", "0", "5", "true"], 64),
        (&["5x", "true"], 64),
        (&["--", "-5", "true"], 64),
        (&["-s", "NOSUCH", "5", "true"], 64),
        (&["--max-output", "1.5", "5", "true"], 64),
        (&["--no-such-option", "5", "true"], 64),
        (&["--report"], 64),
        (&["--help"], 0),
        (&["--version"], 0),
    ];
    for (args, code) in table {
        let out = run(home.command(TOOL).args(*args));
        assert_eq!(out.code, *code, "{args:?}: {}{}", out.out(), out.err());
        assert!(out.wall < Duration::from_secs(30), "{args:?}: {:?}", out.wall);
        if [4, 64].contains(code) && !args.contains(&"--") {
            let err = out.err();
            assert!(err.starts_with("sh-timeout: ") && err.contains("\nhint: "), "{args:?}: {err}");
        }
    }
}

#[test]
fn a_stopped_command_is_named_with_its_cause_on_one_line() {
    let home = Home::new();
    home.script("a\nb", "sleep 60");
    let expired = run(home.command(TOOL).args([".1", "./a\nb"]));
    assert_eq!(expired.err(), "sh-timeout: './a\\nb' did not end within 100ms and died of TERM\n");
    let idle = run(home.command(TOOL).args(["--idle", ".1", "60", "sleep", "60"]));
    assert!(idle.err().contains("'sleep' wrote nothing for too long"), "{}", idle.err());
    let cap = run(home.command(TOOL).args(["--max-output", "1k", "60", "yes"]));
    assert!(cap.err().contains("'yes' wrote more than 1024 bytes"), "{}", cap.err());
}

/// The command must see end of input although the caller's own input never ends.
#[test]
fn d03_a_question_gets_no_answer_and_no_time() {
    let home = Home::new();
    home.script(
        "bin/npx",
        "printf 'Ok to proceed? (y) '\nread -r answer || exit 1\necho \"$answer\" > answered",
    );
    let script = format!(
        "mkfifo never; exec 3<>never; PATH={}:$PATH exec {TOOL} 60 npx <&3",
        home.path("bin").display()
    );
    let out = run(home.command("sh").args(["-c", &script]));
    assert_eq!((out.code, out.out().as_str()), (1, "Ok to proceed? (y) "), "{}", out.err());
    assert!(out.wall < Duration::from_secs(3), "{:?}", out.wall);
    assert!(!home.path("answered").exists());
}

#[test]
fn standard_input_is_passed_on_only_when_asked_for() {
    let home = Home::new();
    let secret = b"from the caller\n";
    let bound = Duration::from_secs(30);
    let without = run_with(home.command(TOOL).args(["9", "cat"]), secret, bound);
    assert_eq!((without.code, without.out().as_str()), (0, ""));
    let with = run_with(home.command(TOOL).args(["--stdin", "9", "cat"]), secret, bound);
    assert_eq!((with.code, with.stdout.as_slice()), (0, &secret[..]));
}

/// On a terminal of its own, made by script(1).
#[test]
fn a_question_to_the_terminal_finds_none() {
    let home = Home::new();
    home.script("asks", "if true 2>/dev/null </dev/tty; then echo asked; else echo nobody; fi");
    home.script(
        "session",
        &format!("./asks; {TOOL} 9 ./asks; {TOOL} --foreground 9 ./asks; {TOOL} --stdin 9 ./asks"),
    );
    let out = run(home.command("script").args(["-qec", "./session", "/dev/null"]));
    if out.out().is_empty() {
        let _ = writeln!(std::io::stderr(), "script(1) is not installed: a terminal was not tried");
        return;
    }
    let said: Vec<String> = out.out().lines().map(|l| l.trim().to_owned()).collect();
    assert_eq!(said, ["asked", "nobody", "asked", "asked"], "{}", out.err());
}

#[test]
fn the_command_gets_the_signal_dispositions_and_mask_the_tool_was_given() {
    let home = Home::new();
    let report = "grep -E '^Sig(Blk|Ign|Cgt):' /proc/self/status";
    for setup in [":", "trap '' PIPE", "trap '' INT CHLD", "trap '' TTOU TTIN PIPE USR1"] {
        let direct = run(home.command("sh").args(["-c", &format!("{setup}; exec {report}")]));
        assert_eq!(direct.out().lines().count(), 3);
        for options in ["", "--foreground", "--stdin", "--max-output 1M"] {
            let line = format!("{setup}; exec {TOOL} {options} 9 {report}");
            assert_eq!(run(home.command("sh").args(["-c", &line])).out(), direct.out(), "{line}");
        }
    }
}

#[test]
fn descriptors_that_are_closed_stay_closed_and_others_are_handed_on() {
    let home = Home::new();
    for (closed, options) in [("<&-", "--stdin"), (">&-", ""), ("2>&-", ""), (">&- 2>&-", "--max-output 9")] {
        home.script("probe", "for fd in 0 1 2; do [ -e /proc/$$/fd/$fd ] && echo $fd >> open; done; :");
        for line in ["./probe".to_owned(), format!("{TOOL} {options} 9 ./probe")] {
            run(home.command("sh").args(["-c", &format!("exec {line} {closed}")]));
        }
        let seen = std::fs::read_to_string(home.path("open")).unwrap();
        let half = seen.len() / 2;
        assert_eq!(seen[..half], seen[half..], "{closed} {options}");
        std::fs::remove_file(home.path("open")).unwrap();
    }
    let kept =
        run(home.command("sh").args(["-c", &format!("exec 7>kept; {TOOL} 9 sh -c 'echo hi >&7'; cat kept")]));
    assert_eq!(kept.out(), "hi\n");
}

#[test]
fn nothing_is_written_without_being_named() {
    let home = Home::new();
    let before = home.census();
    for args in [&["9", "true"][..], &[".1", "sleep", "9"], &["9", "no-such-command"], &["--help"]] {
        run(home.command(TOOL).args(args));
    }
    assert_eq!(home.census(), before);
}
