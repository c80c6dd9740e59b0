//! Under the name `timeout`: every case of tests/gnu/timeout.tsv against ours, GNU's and busybox's.

mod private_home;

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use private_home::*;

/// Longer than the slowest case, which waits 7 s; what is not over by then hangs.
const HUNG: Duration = Duration::from_secs(12);

/// `alive PID`: prints `alive` and ends the process when it runs; one that is dead and not yet reaped does not.
const PRELUDE: &str = r#"alive() {
  [ "$1" ] || return 0
  i=0
  while [ $i -lt 20 ]; do
    read -r _ _ state _ 2>/dev/null < "/proc/$1/stat" || return 0
    case $state in Z) return 0 ;; esac
    i=$((i + 1)); sleep .02
  done
  kill "$1" && echo alive
}
"#;

struct Case {
    name: String,
    script: String,
    /// Of GNU's, ours, busybox's.
    expected: [String; 3],
    reason: String,
}

fn cases() -> Vec<Case> {
    let text = include_str!("gnu/timeout.tsv");
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [name, script, gnu, ours, busybox, reason] = fields[..] else { panic!("six fields: {line}") };
            let or_gnu = |field: &str| if field == "=" { gnu } else { field }.to_owned();
            Case {
                name: name.to_owned(),
                script: format!("{PRELUDE}{script}"),
                expected: [gnu.to_owned(), or_gnu(ours), or_gnu(busybox)],
                reason: reason.to_owned(),
            }
        })
        .collect()
}

/// How a script ends, and its output in one line.
fn result(program: &str, script: &str) -> String {
    let home = Home::new();
    let output = home.file("output", "");
    let mut child = home
        .command("sh")
        .args(["-c", script])
        .env("T", program)
        .stdout(std::fs::File::options().append(true).open(&output).unwrap())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let Some(status) = wait(&mut child, Instant::now() + HUNG) else {
        let group = format!("-{}", child.id());
        run(home.command("kill").args(["-s", "KILL", "--", &group]));
        let _ = child.wait();
        return "hung".to_owned();
    };
    let end = match status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => format!("exit {}", status.code().unwrap()),
    };
    let said = std::fs::read_to_string(&output).unwrap();
    [end.as_str()].into_iter().chain(said.lines()).collect::<Vec<_>>().join(" ")
}

fn version_says(home: &Home, command: &str, word: &str) -> bool {
    run(home.command("sh").args(["-c", command])).out().contains(word)
}

#[test]
fn every_case_behaves_as_the_table_says() {
    let home = Home::new();
    let ours = home.path("timeout");
    symlink(env!("CARGO_BIN_EXE_sh-timeout"), &ours).unwrap();
    let programs = [
        ("GNU", "/usr/bin/timeout", version_says(&home, "/usr/bin/timeout --version", "GNU coreutils")),
        ("ours", ours.to_str().unwrap(), true),
        ("busybox", "busybox timeout", version_says(&home, "busybox", "BusyBox")),
    ];
    for (name, program, there) in &programs {
        if !there {
            // Straight to the stream: the harness would keep it to itself.
            let _ =
                writeln!(std::io::stderr(), "timeout.tsv: {name} ({program}) is not installed: not compared");
        }
    }
    let cases = cases();
    assert!(cases.len() > 60);
    let all =
        cases.iter().flat_map(|case| programs.iter().zip(&case.expected).map(move |(p, e)| (case, p, e)));
    let next = Mutex::new(all.filter(|(_, (_, _, there), expected)| *there && *expected != "-"));
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                loop {
                    let Some((case, (name, program, _), expected)) = next.lock().unwrap().next() else {
                        return;
                    };
                    let got = result(program, &case.script);
                    if !expected.split(" or ").any(|e| e == got) {
                        wrong
                            .lock()
                            .unwrap()
                            .push(format!("{}: {name}: '{got}', not '{expected}'", case.name));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_difference_has_a_reason() {
    for case in cases() {
        let [gnu, ours, busybox] = &case.expected;
        let differs = gnu != ours || gnu != busybox || gnu.contains(" or ");
        assert_eq!(differs, case.reason != "-", "{}", case.name);
    }
}

#[test]
fn messages_carry_the_name_it_was_called_by() {
    let home = Home::new();
    let ours = home.path("timeout");
    symlink(env!("CARGO_BIN_EXE_sh-timeout"), &ours).unwrap();
    let missing = run(home.command(&ours).args(["5", "no\nsuch"]));
    assert_eq!(missing.code, 127);
    assert!(missing.err().starts_with("timeout: cannot run 'no\\nsuch': no such file"), "{}", missing.err());
    let wrong = run(home.command(&ours).args(["5x", "true"]));
    assert_eq!((wrong.code, wrong.err().lines().count()), (125, 2), "{}", wrong.err());
    assert!(Path::new(&ours).is_symlink());
}
