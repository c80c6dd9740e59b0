//! `breaker` where nothing may or can be written: check mode, a read-only home, another's file, a full disk.
#![allow(clippy::disallowed_methods, reason = "tests start programs and lay out files themselves")]

mod breaker_calls;
mod private_home;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use breaker_calls::{Calls, START};
use private_home::{Home, copy_program, run, run_with};

const LINES: &str =
    "failed\tmodel\tscout\tx\nok\tmodel\tpart\tx\nmissing\tmodel\tnew\tx\nfailed\tmodel\tnew\tx\n";

/// A home with an open subject, one that failed once, and one a shell recorded.
fn lived_in() -> Calls {
    let calls = Calls::new();
    calls.open("scout");
    assert_eq!(calls.attempt("part", "1").code, 1);
    fs::write(calls.state("shell.pending"), format!("{START}\n{START}\n{START}\n")).unwrap();
    fs::write(calls.state("part.lease"), "").unwrap();
    fs::write(calls.state("corrupt.state"), "x").unwrap();
    calls
}

/// Every way to be called that would write in fix mode.
const CALLS: [&[&str]; 12] = [
    &[],
    &["--json"],
    &["status"],
    &["status", "--json", "shell"],
    &["reset", "scout"],
    &["reset", "nobody"],
    &["scout", "--", "true"],
    &["part", "--", "false"],
    &["part", "--", "true"],
    &["new", "--", "false"],
    &["corrupt", "--", "false"],
    &["--verdicts", "part", "--", "printf", "failed\tmodel\tpart\tx\n"],
];

#[test]
fn check_mode_leaves_a_lived_in_and_an_empty_home_as_they_are() {
    for mut calls in [lived_in(), Calls::new()] {
        calls.mode = "check";
        for second in [0, 1000, 2000, 100_000] {
            calls.at(second);
            let before = calls.home.census();
            for args in CALLS {
                run_with(&mut calls.breaker(args), LINES.as_bytes(), Duration::from_secs(60));
                assert_eq!(calls.home.census(), before, "{args:?}");
            }
        }
    }
}

#[test]
fn check_mode_opens_nothing_for_writing() {
    if run(Command::new("strace").arg("-V")).code != 0 {
        eprintln!("strace is missing: not traced");
        return;
    }
    let outside = Home::new();
    let trace = outside.path("trace");
    let calls_that_write = "creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,chmod,fchmod,\
                            fchmodat,link,linkat,symlink,symlinkat,truncate,ftruncate,mknod,mknodat,utimensat,flock";
    let filter = format!("trace=open,openat,{calls_that_write}");
    let traced = |calls: &Calls, args: &[&str]| {
        let mut command = calls.command("strace");
        command.args(["-f", "-qq", "-o"]).arg(&trace).args(["-e", &filter, "-e", "signal=none"]);
        command.arg(env!("CARGO_BIN_EXE_breaker")).args(args);
        run_with(&mut command, LINES.as_bytes(), Duration::from_secs(60));
        let text = fs::read_to_string(&trace).unwrap();
        assert!(text.contains("open"), "traced: {text}");
        // Its own standard output, opened anew so that writing to it never waits, and the terminal that the command
        // is to lose are no files.
        let own = ["/proc/self/fd/", "\"/dev/null\"", "\"/dev/tty\""];
        let allowed = |line: &&str| !own.iter().any(|name| line.contains(name));
        let writes = |line: &&str| {
            ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| line.contains(flag))
                || calls_that_write.split(',').any(|call| line.contains(&format!(" {call}(")))
        };
        text.lines().filter(allowed).filter(writes).map(str::to_owned).collect::<Vec<_>>()
    };
    for second in [0, 2000] {
        let mut calls = lived_in();
        calls.at(second);
        calls.mode = "check";
        for args in CALLS {
            let found = traced(&calls, args);
            assert!(found.is_empty(), "{args:?}: {found:#?}");
        }
        // The same eyes see what fix mode does.
        calls.mode = "fix";
        assert!(!traced(&calls, &["new", "--", "false"]).is_empty());
    }
}

#[test]
fn check_mode_refuses_what_is_open_and_runs_the_rest_uncounted() {
    let mut calls = lived_in();
    calls.mode = "check";
    let runs = calls.runs();
    assert_eq!((calls.attempt("scout", "0").code, calls.attempt("shell", "0").code), (5, 5));
    assert_eq!(calls.runs(), runs);
    for _ in 0..5 {
        assert_eq!(calls.attempt("part", "1").code, 1);
    }
    assert_eq!(calls.runs(), runs + 5);
    assert_eq!(calls.status("part"), "ok");
    // Half-open: the attempt is the command's own affair, and no probe.
    calls.at(1801);
    assert_eq!(calls.attempt("scout", "0").code, 0);
    assert_eq!(calls.status("scout"), "degraded");
}

/// A command that is bound by file permissions even when the tests run as root; `HOME` belongs to it.
fn as_nobody(calls: &Calls, args: &[&str]) -> Command {
    let copy = calls.home.path("breaker");
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        let mut command = calls.command(copy);
        command.args(args);
        return command;
    }
    let mut command = calls.command("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(copy).args(args);
    command
}

/// Puts the program into the home, and gives it all to whom [`as_nobody`] runs as.
fn give_away(calls: &Calls) {
    copy_program(env!("CARGO_BIN_EXE_breaker"), &calls.home.path("breaker"));
    give(&calls.home.dir, 0o755);
}

/// Sets the owner of everything, and the modes of directories.
fn give(dir: &Path, mode: u32) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            give(&entry.path(), mode);
        }
        let _ = std::os::unix::fs::lchown(entry.path(), Some(65534), Some(65534));
    }
    let _ = std::os::unix::fs::lchown(dir, Some(65534), Some(65534));
    fs::set_permissions(dir, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_read_only_home_refuses_what_it_could_not_count() {
    for mut calls in [lived_in(), Calls::new()] {
        let knows = calls.state("scout.state").exists();
        give_away(&calls);
        give(&calls.home.dir, 0o555);
        let before = calls.home.census();
        for args in [&["new", "--", "false"][..], &["part", "--", "false"]] {
            let output = run(&mut as_nobody(&calls, args));
            assert_eq!(output.code, 74, "{args:?}: {}", output.err());
            assert!(
                output.err().contains("cannot write") && output.err().contains("hint: "),
                "{}",
                output.err()
            );
        }
        let filter = run_with(&mut as_nobody(&calls, &[]), LINES.as_bytes(), Duration::from_secs(60));
        assert_eq!(filter.code, 74, "{}", filter.err());
        assert_eq!(filter.out().lines().count(), 4);
        assert_eq!(filter.field(1), if knows { "open" } else { "failed" });
        assert_eq!(filter.err().lines().count(), 2, "said once: {}", filter.err());
        if knows {
            assert_eq!(run(&mut as_nobody(&calls, &["scout", "--", "true"])).code, 5);
            assert_eq!(run(&mut as_nobody(&calls, &["reset", "scout"])).code, 74);
        }
        calls.mode = "check";
        assert_eq!(run(&mut as_nobody(&calls, &["new", "--", "false"])).code, 1);
        assert_eq!(run(&mut as_nobody(&calls, &["status"])).out().is_empty(), !knows);
        assert_eq!(calls.home.census(), before);
        give(&calls.home.dir, 0o755);
    }
}

#[test]
fn a_state_that_may_not_be_read_refuses_until_it_is_reset() {
    let mut calls = lived_in();
    give_away(&calls);
    for name in ["scout.state", "shell.pending"] {
        fs::set_permissions(calls.state(name), Permissions::from_mode(0o0)).unwrap();
    }
    for subject in ["scout", "shell"] {
        for mode in ["check", "fix"] {
            calls.mode = mode;
            let output = run(&mut as_nobody(&calls, &[subject, "--", "true"]));
            assert_eq!(output.code, 74, "{}", output.err());
            assert!(output.err().contains("cannot read"), "{}", output.err());
            let status = run(&mut as_nobody(&calls, &["status", subject]));
            assert_eq!((status.field(1).as_str(), status.code), ("unknown", 5));
            let line = format!("missing\tmodel\t{subject}\tx\n");
            let filter = run_with(&mut as_nobody(&calls, &[]), line.as_bytes(), Duration::from_secs(60));
            assert_eq!((filter.out(), filter.code), (line, 74));
        }
        assert_eq!(run(&mut as_nobody(&calls, &["reset", subject])).code, 0);
        assert_eq!(run(&mut as_nobody(&calls, &[subject, "--", "true"])).code, 0);
    }
}

#[test]
fn a_full_disk_refuses_what_it_could_not_count_and_recovers_by_itself() {
    let calls = Calls::new();
    if run(calls.command("unshare").args(["-rm", "true"])).code != 0 {
        eprintln!("no namespaces here: no disk to fill");
        return;
    }
    let breaker = env!("CARGO_BIN_EXE_breaker");
    let script = format!(
        "mkdir .selfheal && mount -t tmpfs -o size=64k none .selfheal || exit 99
        fill() {{ head -c 1M /dev/zero >.selfheal/fill 2>/dev/null; }}
        fill; '{breaker}' x -- ./attempt 1; echo $?
        printf 'failed\\tmodel\\tx\\ty\\n' | '{breaker}'; echo $?
        rm .selfheal/fill; '{breaker}' x -- ./attempt 1; echo $?
        fill; '{breaker}' x -- ./attempt 1; echo $?
        rm .selfheal/fill; '{breaker}' x -- sh -c 'head -c 1M /dev/zero >.selfheal/fill; exit 3'; echo $?
        rm .selfheal/fill; '{breaker}' x -- ./attempt 1; echo $?; '{breaker}' x -- ./attempt 1; echo $?
        '{breaker}' x -- ./attempt 1; echo $?; find .selfheal -name '.*.tmp'"
    );
    let output = run(calls.command("unshare").args(["-rm", "sh", "-c", &script]));
    let expected = ["74", "failed\tmodel\tx\ty", "74", "1", "74", "3", "1", "1", "5"];
    assert_eq!(output.out().lines().collect::<Vec<_>>(), expected, "{}", output.err());
    assert_eq!(calls.runs(), 3);
    assert!(output.err().contains("no space left"), "{}", output.err());
}
