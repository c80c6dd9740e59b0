//! `sh-timeout --report`: each cause told apart, by rename, and nothing started that cannot be reported.
#![allow(clippy::disallowed_methods, reason = "tests lay out and clear files themselves")]

mod private_home;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use private_home::*;

const TOOL: &str = env!("CARGO_BIN_EXE_sh-timeout");

fn read(path: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(path).unwrap();
    let pairs = text.lines().map(|l| l.split_once('\t').expect("KEY<TAB>VALUE"));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[test]
fn each_cause_is_told_apart() {
    let home = Home::new();
    let table: &[(&[&str], &str, &str, &str)] = &[
        (&["9", "true"], "exited", "0", "-"),
        (&["9", "sh", "-c", "exit 137"], "exited", "137", "-"),
        (&["9", "sh", "-c", "kill -KILL $$"], "signalled", "137", "-"),
        (&[".1", "sleep", "60"], "expired", "143", "-"),
        (&["9", "sh", "-c", "kill -ALRM $PPID; sleep 60"], "expired", "143", "-"),
        (&["--idle", ".1", "60", "sleep", "60"], "idle", "143", "0"),
        (&["--max-output", "5", "60", "yes"], "output-cap", "*", "5"),
        (&["--max-output", "5", "60", "printf", "hello"], "exited", "0", "5"),
        (&["9", "no-such-command"], "not-started", "-", "-"),
        (&["9", "sh", "-c", "kill -TERM $PPID; sleep 60"], "interrupted", "143", "-"),
    ];
    for (args, cause, status, bytes) in table {
        let path = home.path("report");
        run(home.command(TOOL).args(["--report", "report"]).args(*args));
        let report = read(&path);
        let keys: Vec<&str> = report.keys().map(String::as_str).collect();
        assert_eq!(keys, ["bytes", "cause", "peak_rss", "status", "sys", "user", "wall"]);
        assert_eq!((report["cause"].as_str(), report["bytes"].as_str()), (*cause, *bytes), "{args:?}");
        assert!(*status == "*" || report["status"] == *status, "{args:?}: {report:?}");
        let wall: f64 = report["wall"].parse().unwrap();
        assert!(wall > 0.0 && wall < 20.0, "{report:?}");
        if *cause != "not-started" {
            let peak: u64 = report["peak_rss"].parse().unwrap();
            assert!(peak > 100_000 && peak < 1 << 30, "{report:?}");
        }
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(path).unwrap();
    }
    assert!(home.census().is_empty(), "no temporary file is left: {:?}", home.census());
}

#[test]
fn a_shell_reads_it_line_by_line() {
    let home = Home::new();
    let shell = format!(
        "{TOOL} --report r 9 sh -c 'exit 3'; while IFS='\t' read -r key value; do \
         case $key in cause | status) echo \"$key=$value\" ;; esac; done < r"
    );
    assert_eq!(run(home.command("sh").args(["-c", &shell])).out(), "cause=exited\nstatus=3\n");
}

#[test]
fn times_and_memory_are_the_commands() {
    let home = Home::new();
    let body = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; head -c 50000000 /dev/zero | tail -c 40000000 >/dev/null";
    assert_eq!(run(home.command(TOOL).args(["--report", "r", "60", "sh", "-c", body])).code, 0);
    let report = read(&home.path("r"));
    let number = |key: &str| report[key].parse::<f64>().unwrap();
    assert!(number("user") > 0.0 && number("user") + number("sys") < number("wall") * 8.0, "{report:?}");
    assert!(number("peak_rss") > 40_000_000.0, "tail keeps 40 MB: {report:?}");
}

#[test]
fn nothing_is_started_when_the_report_cannot_be_written() {
    let home = Home::new();
    std::fs::create_dir(home.path("dir")).unwrap();
    std::os::unix::fs::symlink("/dev/null", home.path("link")).unwrap();
    home.file("file", "");
    for place in
        ["no/such/dir/report", "dir", "link", "/dev/null", "/dev/full", "file/report", "/proc/report", ".."]
    {
        let out = run(home.command(TOOL).args(["--report", place, "9", "touch", "started"]));
        assert_eq!(out.code, 74, "{place}: {}", out.err());
        assert!(out.err().starts_with("sh-timeout: cannot write '"), "{place}: {}", out.err());
        assert!(!home.path("started").exists(), "{place}");
    }
    assert!(home.path("link").is_symlink());
}

#[test]
fn a_full_disk_says_that_the_command_was_run() {
    let home = Home::new();
    // A tiny file system of its own, where the machine allows one.
    let inner = format!(
        "mkdir small && mount -t tmpfs -o size=4096 none small || exit 99; \
         {TOOL} --report small/r 9 sh -c 'head -c 4096 /dev/zero > small/fill; echo ran; exit 3'"
    );
    let out = run(home.command("unshare").args(["--mount", "sh", "-c", &inner]));
    if out.code == 99 || out.err().contains("unshare") {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "no mount namespace here: a full disk was not tried");
        return;
    }
    assert_eq!((out.code, out.out().as_str()), (74, "ran\n"), "{}", out.err());
    assert!(out.err().contains("was run and ended with status 3"), "{}", out.err());
}

#[test]
fn an_old_report_stays_until_the_new_one_is_whole() {
    let home = Home::new();
    home.file("r", "old\n");
    let body = "cat r; exit 5";
    let out = run(home.command(TOOL).args(["--report", "r", "9", "sh", "-c", body]));
    assert_eq!((out.code, out.out().as_str()), (5, "old\n"));
    assert_eq!(read(&home.path("r"))["status"], "5");
}
