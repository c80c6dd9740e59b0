//! `prompt-cache` called many times at once, and killed: one inference, no half answer, nobody waits for the dead.
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

mod cache_calls;
mod private_home;

use std::fs;
use std::io::Read as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use cache_calls::{Calls, key, until};
use private_home::{alive, wait};

/// Counts its run, waits for the file `go`, then answers or fails.
const SLOW: &str = "echo run >>\"$HOME/runs\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.02; done; ";

fn start(calls: &Calls, key: &str, more: &[&str], body: &str) -> Child {
    let line = [&["-k", key], more, &["--", "sh", "-c", body]].concat();
    let mut command = calls.command("fix", &line);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Status and output of each, which ends within a minute.
fn ends(callers: Vec<Child>) -> Vec<(i32, String)> {
    let end = Instant::now() + Duration::from_secs(60);
    let ended = callers.into_iter().map(|mut caller| {
        let status = wait(&mut caller, end).expect("it ends");
        let mut text = String::new();
        caller.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        (status.code().unwrap_or(-1), text)
    });
    ended.collect()
}

#[test]
fn sixteen_equal_calls_are_one_inference() {
    let calls = Calls::new();
    let callers: Vec<_> =
        (0..16).map(|_| start(&calls, &key(1), &[], &format!("{SLOW} echo answer"))).collect();
    until("one to run", || calls.runs() == 1);
    // A call with another key is not held up.
    assert_eq!(calls.ask(&key(2), "echo other").out(), "other\n");
    calls.home.file("go", "");
    assert_eq!(ends(callers), vec![(0, "answer\n".to_owned()); 16]);
    assert_eq!(calls.runs(), 2);
    assert_eq!((calls.stat("hits"), calls.stat("misses")), (15, 2));
    let mut names: Vec<_> = fs::read_dir(calls.file(""))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [key(1), key(2), "claims".to_owned(), "events".to_owned()], "no litter");
}

#[test]
fn a_killed_caller_frees_its_key_and_its_command_dies_with_it() {
    let calls = Calls::new();
    let mut first = start(&calls, &key(1), &[], &format!("{SLOW} exec sleep 98766"));
    until("the first to run", || calls.runs() == 1);
    let others: Vec<_> =
        (0..4).map(|_| start(&calls, &key(1), &[], "echo run >>\"$HOME/runs\"; echo answer")).collect();
    calls.home.file("go", "");
    until("its command", || alive("sleep 98766"));
    assert_eq!(calls.runs(), 1);
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(ends(others), vec![(0, "answer\n".to_owned()); 4]);
    assert_eq!(calls.runs(), 2);
    until("the command to be gone", || !alive("sleep 98766"));
}

#[test]
fn after_a_failure_the_next_one_runs() {
    let calls = Calls::new();
    let callers: Vec<_> =
        (0..3).map(|_| start(&calls, &key(1), &[], &format!("{SLOW} echo half; exit 2"))).collect();
    until("one to run", || calls.runs() == 1);
    calls.home.file("go", "");
    assert_eq!(ends(callers), vec![(2, "half\n".to_owned()); 3]);
    assert_eq!((calls.runs(), calls.kept()), (3, Vec::new()));
}

#[test]
fn who_has_waited_long_enough_runs_on_its_own() {
    let calls = Calls::new();
    let first = start(&calls, &key(1), &[], &format!("{SLOW} echo first"));
    until("the first to run", || calls.runs() == 1);
    for wait in ["0.1", "0"] {
        let own = start(&calls, &key(1), &["--wait", wait], "echo run >>\"$HOME/runs\"; echo own; exit 9");
        assert_eq!(ends(vec![own]), [(9, "own\n".to_owned())]);
    }
    assert_eq!(calls.runs(), 3);
    calls.home.file("go", "");
    assert_eq!(ends(vec![first]), [(0, "first\n".to_owned())]);
}

#[test]
fn check_mode_waits_for_nobody() {
    let calls = Calls::new();
    let first = start(&calls, &key(1), &[], &format!("{SLOW} echo first"));
    until("the first to run", || calls.runs() == 1);
    assert_eq!(calls.check(&["-k", &key(1), "--", "echo", "own"]).out(), "own\n");
    calls.home.file("go", "");
    assert_eq!(ends(vec![first]), [(0, "first\n".to_owned())]);
}

#[test]
fn a_writer_killed_at_any_moment_leaves_a_whole_answer_or_none() {
    let calls = Calls::new();
    let body = "head -c 1000000 /dev/zero | tr '\\0' x";
    let (mut whole, mut none) = (0, 0);
    // Later and later, until some came to their end.
    for n in 0..2000_u32 {
        if n >= 60 && whole >= 5 {
            break;
        }
        let mut writer = start(&calls, &key(1), &[], body);
        drop(
            writer.stdout.take().map(|mut out| std::thread::spawn(move || out.read_to_end(&mut Vec::new()))),
        );
        // From the first system call to well behind the last.
        let end = Instant::now() + Duration::from_micros(u64::from(n) * 700);
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        let _ = writer.kill();
        writer.wait().unwrap();
        let found = calls.check(&["--get", &key(1)]);
        match found.code {
            0 => {
                assert!(found.stdout.len() == 1_000_000 && found.stdout.iter().all(|b| *b == b'x'));
                whole += 1;
                fs::remove_file(calls.file(&key(1))).unwrap();
            }
            5 => {
                assert_eq!((found.out().as_str(), found.err().as_str()), ("", ""));
                none += 1;
            }
            other => panic!("{other}: {}", found.err()),
        }
    }
    assert!(whole > 0 && none > 0, "{whole} whole, {none} none");
    assert_eq!(calls.ask(&key(1), "echo answer").out(), "answer\n");
    assert_eq!(calls.fix(&["--get", &key(1)]).out(), "answer\n");
    let litter = fs::read_dir(calls.file(""))
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().ends_with(".tmp"));
    assert_eq!(litter.count(), 0);
}
