//! `breaker` and its files: whatever stands in their place, however a process ended, nothing has to be cleaned by
//! hand and a failing command is not repeated for ever.
#![allow(clippy::disallowed_methods, reason = "tests start programs and lay out files themselves")]

mod breaker_calls;
mod private_home;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use breaker_calls::{Calls, START, until};
use private_home::{Home, run, wait};

fn mode_of(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn d17_what_a_lease_file_holds_means_nothing() {
    let own = std::process::id().to_string();
    for content in ["", "x", "1", &own, "not a pid\n\0", "999999999999999999999"] {
        for mode in [0o600, 0o644, 0o444] {
            let mut calls = Calls::new();
            calls.open("scout");
            calls.at(1801);
            let lease = calls.home.file(".selfheal/state/breaker/scout.lease", content);
            fs::set_permissions(&lease, Permissions::from_mode(mode)).unwrap();
            assert_eq!(calls.attempt("scout", "0").code, 0, "{content:?} {mode:o}");
            assert!(!lease.exists());
        }
    }
}

#[test]
fn d17_a_lease_that_is_really_held_is_respected_and_freed() {
    let mut calls = Calls::new();
    calls.open("scout");
    calls.at(1801);
    calls.home.script("wait", "echo >begun; while [ ! -e go ]; do sleep 0.02; done; exit 5");
    let mut probe = calls.breaker(&["scout", "--", "./wait"]).spawn().unwrap();
    until("the probe", || calls.home.path("begun").exists());
    let lease = calls.state("scout.lease");
    // Whatever is written into it, and whoever reads it.
    fs::write(&lease, "1").unwrap();
    assert_eq!(calls.attempt("scout", "0").code, 5);
    // A reset forgets the failures and leaves the lease alone.
    assert_eq!(calls.call(&["reset", "scout"]).code, 0);
    assert!(lease.exists());
    calls.open("scout");
    calls.at(3700);
    assert_eq!((calls.attempt("scout", "0").code, calls.runs()), (5, 6));
    calls.home.file("go", "");
    let end = std::time::Instant::now() + Duration::from_secs(60);
    assert_eq!(wait(&mut probe, end).and_then(|s| s.code()), Some(5));
    assert_eq!((calls.attempt("scout", "0").code, lease.exists()), (0, false));
}

#[test]
fn d17_a_directory_locked_by_another_ends_75_and_is_not_waited_for_long() {
    let calls = Calls::new();
    calls.open("scout");
    let dir = File::open(calls.state("")).unwrap();
    dir.lock().unwrap();
    let mut waiting: Vec<_> = [&["scout", "--", "true"][..], &["reset", "scout"]]
        .iter()
        .map(|args| calls.breaker(args).stderr(Stdio::piped()).spawn().unwrap())
        .collect();
    // Readers take no lock.
    assert_eq!(calls.status("scout"), "open");
    let filter = calls.filter(&"failed\tmodel\tscout\tx\nfailed\tmodel\tnew\tx\n".repeat(2));
    let states: Vec<_> = filter.out().lines().map(|l| l.split('\t').next().unwrap().to_owned()).collect();
    assert_eq!(states, ["open", "failed", "open", "failed"]);
    assert_eq!((filter.code, calls.status("new").as_str()), (75, "ok"));
    assert_eq!(filter.err().lines().count(), 2, "{}", filter.err());
    for child in &mut waiting {
        let end = std::time::Instant::now() + Duration::from_secs(60);
        assert_eq!(wait(child, end).and_then(|s| s.code()), Some(75));
    }
    drop(dir);
    assert_eq!(calls.call(&["reset", "scout"]).code, 0);
}

#[test]
fn d17_state_of_another_user_is_read_and_replaced() {
    let calls = Calls::new();
    calls.open("scout");
    let state = calls.state("scout.state");
    if std::os::unix::fs::chown(&state, Some(12_345), Some(12_345)).is_err() {
        eprintln!("not root: nothing to give away");
        return;
    }
    fs::set_permissions(&state, Permissions::from_mode(0o644)).unwrap();
    assert_eq!(calls.attempt("scout", "0").code, 5);
    assert_eq!(calls.filter("ok\tmodel\tscout\tx\n").code, 0);
    assert_eq!(calls.attempt("scout", "1").code, 1);
    assert_eq!(
        (mode_of(&state), state.metadata().unwrap().uid()),
        (0o600, calls.home.dir.metadata().unwrap().uid())
    );
}

#[test]
fn a_state_that_cannot_be_used_counts_anew_and_is_replaced() {
    let good = format!(
        "breaker 1\nsubject scout\nstate open\nfailures 3\nsince {START} 500000 boot-a\ncooldown 1800\nend\n"
    );
    let cases = [
        String::new(),
        "\0".repeat(4096),
        "x".repeat(1 << 20),
        good[..good.len() - 4].to_owned(),
        good.replace("scout", "other"),
        good.replace("open", "OPEN"),
        good.replace("1800", "4294967295"),
        format!("{good}{good}"),
    ];
    for content in cases {
        for mode in ["check", "fix"] {
            let mut calls = Calls::new();
            let path = calls.home.file(".selfheal/state/breaker/scout.state", &content);
            calls.mode = mode;
            let before = calls.home.census();
            assert_eq!(calls.status("scout"), "corrupt");
            assert_eq!(calls.filter("missing\tmodel\tscout\tx\n").field(1), "missing");
            assert_eq!(calls.home.census(), before);
            let attempt = calls.attempt("scout", "1");
            assert_eq!(attempt.code, 1);
            assert!(attempt.err().starts_with("breaker: the state of 'scout' is "), "{}", attempt.err());
            if mode == "fix" {
                assert_eq!((calls.attempt("scout", "1").code, calls.attempt("scout", "1").code), (1, 1));
                assert_eq!((calls.attempt("scout", "1").code, calls.runs()), (5, 3));
                assert_eq!(mode_of(&path), 0o600);
            }
        }
    }
    let calls = Calls::new();
    calls.home.file(".selfheal/state/breaker/scout.state", &good);
    assert_eq!(calls.status("scout"), "open", "the good one is good");
}

#[test]
fn links_fifos_sockets_and_directories_are_not_followed_read_or_deleted() {
    for what in ["link", "fifo", "socket", "directory"] {
        for name in ["scout.state", "scout.pending", "scout.folding"] {
            let calls = Calls::new();
            let victim = calls.home.file("victim", "precious");
            let path = calls.home.file(".selfheal/state/breaker/none", "").with_file_name(name);
            match what {
                "link" => symlink(&victim, &path).unwrap(),
                "fifo" => assert_eq!(run(calls.command("mkfifo").arg(&path)).code, 0),
                "socket" => drop(UnixListener::bind(&path).unwrap()),
                _ => {
                    fs::create_dir(&path).unwrap();
                    fs::write(path.join("inside"), "precious").unwrap();
                }
            }
            assert_eq!(calls.filter("missing\tmodel\tscout\tx\n").field(1), "missing", "{what} {name}");
            calls.open("scout");
            assert_eq!(calls.attempt("scout", "0").code, 5, "{what} {name}");
            assert_eq!(fs::read(&victim).unwrap(), b"precious");
            assert!(calls.state("scout.state").is_file() && !calls.state("scout.state").is_symlink());
            if what == "directory" {
                let aside = calls.state(&format!("{}.aside-1/inside", name.replace("pending", "folding")));
                assert_eq!(fs::read(aside).unwrap(), b"precious", "{name}");
            }
            assert_eq!(calls.call(&["reset", "scout"]).code, 0);
            assert!(!calls.state("scout.state").exists());
        }
    }
}

#[test]
fn a_link_in_place_of_the_directory_is_refused() {
    let calls = Calls::new();
    fs::create_dir_all(calls.home.path(".selfheal/state")).unwrap();
    fs::create_dir(calls.home.path("elsewhere")).unwrap();
    symlink("../../elsewhere", calls.home.path(".selfheal/state/breaker")).unwrap();
    assert_eq!((calls.attempt("x", "1").code, calls.runs()), (74, 0));
    assert_eq!(fs::read_dir(calls.home.path("elsewhere")).unwrap().count(), 0);
}

#[test]
fn what_a_shell_recorded_is_counted_once_and_as_of_its_time() {
    let at = |seconds: u64| (START + seconds).to_string();
    // Lines, the second at which they are looked at, the status word then.
    for (lines, second, word) in [
        (vec![at(0), at(0)], 0, "ok"),
        (vec![at(0), at(1), at(2)], 60, "open"),
        (vec![at(0), at(1), at(2)], 1801, "open"),
        (vec![at(0), at(1), at(2)], 1802, "degraded"),
        (vec![at(0), at(1), at(2), at(2000)], 3000, "open"),
        (vec![at(0), at(1), format!("{} ok", at(2)), at(3)], 60, "ok"),
        (vec![at(0), at(1), format!("{} ok", at(2)), at(3), at(4), at(5)], 60, "open"),
        // A clock that was ahead: now at the latest.
        (vec![at(90_000), at(90_000), at(90_000)], 60, "open"),
        // What cannot be read is a failure.
        (vec!["x".into(), "-5".into(), "\u{fffd}".into()], 60, "open"),
        (vec![String::new(), " ".into(), String::new()], 60, "ok"),
        (vec![format!("{} extra words", at(0)), at(1), at(2)], 60, "open"),
    ] {
        let mut calls = Calls::new();
        calls.at(second);
        let pending = calls.home.file(".selfheal/state/breaker/scout.pending", lines.join("\n") + "\n");
        let changed = std::time::UNIX_EPOCH + Duration::from_secs(START + 50);
        File::open(&pending).unwrap().set_modified(changed).unwrap();
        let before = calls.home.census();
        assert_eq!(calls.status("scout"), word, "{lines:?}");
        calls.mode = "check";
        assert_eq!(calls.attempt("scout", "5").code, 5);
        calls.filter("missing\tmodel\tscout\tx\nok\tmodel\tscout\tx\nfailed\tmodel\tscout\tx\n");
        assert_eq!(
            calls.home.census().len(),
            before.len() + usize::from(word != "open"),
            "check writes nothing"
        );
        assert!(pending.exists());
        calls.mode = "fix";
        calls.call(&["scout", "--", "sh", "-c", "exit 5"]);
        assert!(!pending.exists() && !calls.state("scout.folding").exists(), "{lines:?}");
        assert_eq!(calls.status("scout"), word, "{lines:?}");
        calls.call(&["scout", "--", "sh", "-c", "exit 5"]);
        assert_eq!(calls.status("scout"), word, "{lines:?}");
    }
}

#[test]
fn a_fold_that_was_killed_half_way_is_finished_and_not_counted_twice() {
    let calls = Calls::new();
    let two = format!("{START}\n{START}\n");
    // Killed after the rename: nothing is counted yet.
    let folding = calls.home.file(".selfheal/state/breaker/a.folding", &two);
    calls.home.file(".selfheal/state/breaker/a.pending", &two);
    calls.call(&["a", "--", "sh", "-c", "exit 5"]);
    assert!(!folding.exists() && !calls.state("a.pending").exists());
    assert_eq!(calls.status("a"), "open");
    // Killed before the removal: it is counted already, and known by its identity.
    let folding = calls.home.file(".selfheal/state/breaker/b.folding", &two);
    let meta = folding.metadata().unwrap();
    let print = format!("{}-{}-{}.{}", meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec());
    let state = format!(
        "breaker 1\nsubject b\nstate closed\nfailures 2\nsince {START} 500000 boot-a\ncooldown 0\nfolded {print}\nend\n"
    );
    calls.home.file(".selfheal/state/breaker/b.state", state);
    assert_eq!(calls.status("b"), "ok");
    calls.call(&["b", "--", "sh", "-c", "exit 5"]);
    assert!(!folding.exists());
    assert!(calls.call(&["status", "b"]).out().contains("closed after 2 failures"));
}

#[test]
fn what_killed_writers_left_goes_and_others_files_stay() {
    let calls = Calls::new();
    let mine = calls.home.file(".selfheal/state/breaker/.scout.state.123.0.tmp", "half");
    let other = calls.home.file(".selfheal/state/breaker/README", "kept");
    assert_eq!(calls.attempt("x", "1").code, 1);
    assert!(!mine.exists() && other.exists());
    let calls = Calls::new();
    assert_eq!(calls.attempt("x", "1").code, 1);
    for made in ["", "..", "../.."] {
        assert_eq!(mode_of(&calls.state(made)), 0o700);
    }
    assert_eq!(mode_of(&calls.state("x.state")), 0o600);
}

#[test]
fn the_oldest_of_too_many_subjects_is_forgotten() {
    let calls = Calls::new();
    calls.open("newest");
    let state = fs::read_to_string(calls.state("newest.state")).unwrap();
    for n in 0..1002 {
        let path = calls.state(&format!("s{n}.state"));
        fs::write(&path, state.replace("newest", &format!("s{n}"))).unwrap();
        let when = std::time::UNIX_EPOCH + Duration::from_secs(START - 5000 + n);
        File::open(&path).unwrap().set_modified(when).unwrap();
    }
    let count = || fs::read_dir(calls.state("")).unwrap().count();
    assert_eq!(count(), 1003);
    assert_eq!(calls.attempt("one-more", "1").code, 1);
    assert_eq!(count(), 1000);
    assert!(!calls.state("s3.state").exists() && calls.state("s4.state").exists());
    assert!(calls.state("newest.state").exists() && calls.state("one-more.state").exists());
}

#[test]
fn a_reset_forgets_and_says_what_was() {
    let mut calls = Calls::new();
    calls.open("scout");
    calls.mode = "check";
    let before = calls.home.census();
    let would = calls.call(&["reset", "scout"]);
    assert_eq!((would.field(1).as_str(), would.code), ("would", 5));
    assert_eq!(would.err(), "DRY: would reset the breaker of 'scout'\n");
    assert_eq!(calls.home.census(), before);
    assert_eq!(calls.call(&["reset", "nobody"]).out(), "ok\thost\tnobody\tclosed, nothing failed\n");
    calls.mode = "fix";
    let healed = calls.call(&["reset", "--json", "scout"]);
    let expected = r#"{"state":"healed","kind":"host","subject":"scout","detail":"reset; was open for 30 min more after 3 failures"}"#;
    assert_eq!((healed.out().trim(), healed.code), (expected, 0));
    assert_eq!(calls.log(), ["breaker open scout", "breaker reset scout"]);
    assert_eq!(calls.attempt("scout", "0").code, 0);
}

#[test]
fn a_child_of_the_command_does_not_keep_the_lease() {
    let mut calls = Calls::new();
    calls.open("scout");
    calls.at(1801);
    let script = "tail -f /dev/null >/dev/null 2>&1 & echo $! >left; exit 5";
    assert_eq!(calls.call(&["scout", "--", "sh", "-c", script]).code, 5);
    let left = fs::read_to_string(calls.home.path("left")).unwrap();
    let running = || Path::new("/proc").join(left.trim()).join("fd").exists();
    assert!(running(), "what the command left is left alone");
    assert_eq!(calls.attempt("scout", "0").code, 0);
    assert_eq!(run(Command::new("kill").arg(left.trim()).stdin(Stdio::null())).code, 0);
    until("the child to end", || {
        fs::read_to_string(Path::new("/proc").join(left.trim()).join("stat"))
            .map_or(true, |s| s.contains(") Z "))
    });
}

#[test]
fn a_home_that_is_a_file_ends_74() {
    let calls = Calls::new();
    let home: &Home = &calls.home;
    home.file(".selfheal", "not a directory");
    let attempt = calls.attempt("x", "1");
    assert_eq!((attempt.code, calls.runs()), (74, 0), "{}", attempt.err());
    let line = "failed\tmodel\tx\ty\n";
    let filter = calls.filter(line);
    assert_eq!((filter.out().as_str(), filter.code), (line, 74), "{}", filter.err());
    let unset = run(calls.breaker(&["x", "--", "./attempt", "1"]).env_remove("HOME"));
    assert_eq!((unset.code, calls.runs()), (74, 0));
}
