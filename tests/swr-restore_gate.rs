//! The gate, the lock and the journal of `swr-restore`: what is never run, and what survives being killed.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;
mod swr_box;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use private_home::{Output, alive, appears, run, run_with, wait};
use swr_box::{Box, missing, unfit_keys};

const RESTORE: &str = env!("CARGO_BIN_EXE_swr-restore");

fn restore(b: &Box, args: &[&str]) -> Output {
    run(b.home.command(RESTORE).args(args))
}

#[test]
fn d26_no_recipe_of_an_unsigned_or_altered_manifest_runs() {
    let b = missing();
    let good = b.manifest.to_bytes();
    let text = String::from_utf8(good.clone()).unwrap();
    let body = String::from_utf8(b.manifest.body.clone()).unwrap();
    let changes = [
        body.clone(),
        text.replace("touch ran", "touch run"),
        text.replace(r#""restore":"#, r#""restore":"touch ran","restore":"#),
        text.replace(r#","timeout_s":30"#, r#","timeout_s":30,"\u0072estore":"touch ran""#),
        format!("{text}{{\"swr\":1}}\n"),
        format!("\u{feff}{text}"),
        text.replace(r#""timeout_s":30"#, r#""timeout_s":1e400"#),
        text.replace(r#""seq":1"#, r#""seq":9"#),
        text.replace("\"sig\":\"hmac-sha256\"", "\"sig\":\"none\""),
        text.trim_end().to_owned(),
        String::new(),
    ];
    for changed in &changes {
        b.write(changed.as_bytes());
        let out = restore(&b, &[]);
        assert_eq!(out.code, 4, "{changed}\n{}", out.err());
        assert!(!b.home.path("ran").exists() && !b.home.path("f").exists(), "{changed}");
        assert_eq!((out.field(1).as_str(), out.out().lines().count()), ("bad", 1), "{}", out.out());
    }
    b.write(&good);
    assert_eq!(restore(&b, &[]).code, 0);
    assert!(b.home.path("ran").exists());
}

#[test]
fn an_older_manifest_served_again_is_refused() {
    let mut b = missing();
    let old = b.manifest.to_bytes();
    b.sign();
    assert_eq!(restore(&b, &[]).code, 0);
    fs::remove_file(b.home.path("ran")).unwrap();
    b.write(&old);
    let out = restore(&b, &[]);
    assert_eq!((out.code, out.field(1).as_str()), (4, "bad"));
    assert!(out.out().contains("old"));
}

#[test]
fn another_boxs_manifest_runs_only_when_its_whole_digest_is_approved() {
    let b = missing();
    let other = missing();
    let digest = other.manifest.digest().hex();
    b.write(&other.manifest.to_bytes());
    assert_eq!(restore(&b, &[]).code, 4);
    assert_eq!(restore(&b, &["--trust", &digest[..63]]).code, 64, "a prefix approves nothing");
    assert_eq!(restore(&b, &["--trust", &"0".repeat(64)]).code, 4);
    assert!(!b.home.path("ran").exists());
    assert_eq!(restore(&b, &["--trust", &digest]).code, 0);
    fs::remove_file(b.home.path("f")).unwrap();
    assert_eq!(restore(&b, &[]).code, 0, "the approval is remembered");
    b.write(
        String::from_utf8(other.manifest.to_bytes()).unwrap().replace("touch ran", "touch evil").as_bytes(),
    );
    fs::remove_file(b.home.path("f")).unwrap();
    assert_eq!(restore(&b, &[]).code, 4, "and is of this content alone");
    assert!(!b.home.path("evil").exists());
}

#[test]
fn a_key_that_another_could_have_read_or_put_there_proves_nothing() {
    for unfit in unfit_keys() {
        let b = missing();
        if !(unfit.make)(&b.home.path(".swr/signing.key")) {
            eprintln!("skipped: {} cannot be made here", unfit.what);
            continue;
        }
        let out = restore(&b, &[]);
        assert_eq!((out.code, out.field(1).as_str()), (4, "bad"), "{}: {}", unfit.what, out.err());
        assert_eq!((out.out().lines().count(), out.err().lines().count()), (1, 1), "{}", unfit.what);
        assert!(out.out().contains(unfit.words), "{}: {}", unfit.what, out.out());
        assert!(out.err().starts_with("hint: "), "{}: {}", unfit.what, out.err());
        assert!(!b.home.path("ran").exists(), "{}", unfit.what);
    }
}

#[test]
fn a_dry_run_approves_nothing_for_later() {
    let b = missing();
    let digest = b.manifest.digest().hex();
    for args in [&["--dry-run"][..], &["--dry-run", "--trust", &digest]] {
        let before = b.home.census();
        assert_eq!(restore(&b, args).code, 1);
        assert_eq!(b.home.census(), before, "{args:?}");
    }
}

#[test]
fn d17_a_lock_file_of_a_dead_or_foreign_holder_stops_nobody() {
    for content in [format!("{}", std::process::id()), String::new(), "garbage".into()] {
        let b = missing();
        fs::write(b.home.path(".swr/lock"), content).unwrap();
        assert_eq!(restore(&b, &["--wait", "5"]).code, 0);
    }
}

#[test]
fn d17_a_held_lock_is_waited_for_within_the_bound_and_then_busy() {
    let mut b = Box::new();
    b.home.file("slow", "x");
    b.add("slow", b"slow", 1, Some("touch started; sleep 30"), &[]).sign();
    fs::remove_file(b.home.path("slow")).unwrap();
    let mut holder = b.home.command(RESTORE).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    appears(&b.home.path("started"));
    let busy = restore(&b, &["--wait", "0.2"]);
    assert_eq!(busy.code, 75, "{}", busy.err());
    let pid = rustix::process::Pid::from_child(&holder);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(wait(&mut holder, Instant::now() + Duration::from_secs(20)).is_some());
    assert!(!alive("touch started; sleep 30"), "the recipe outlived its restore");
}

#[test]
fn seven_restores_at_once_serialise() {
    let mut b = Box::new();
    b.home.file("once", "content");
    b.add("once", b"once", 1, Some("echo ran >>runs; sleep 0.2; printf content >once"), &[]).sign();
    fs::remove_file(b.home.path("once")).unwrap();
    let codes: Vec<i32> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..7).map(|_| scope.spawn(|| restore(&b, &[]).code)).collect();
        all.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(codes, [0; 7]);
    assert_eq!(fs::read_to_string(b.home.path("runs")).unwrap(), "ran\n");
}

#[test]
fn a_restore_killed_half_way_is_resumed_and_what_stood_there_is_not_forgotten() {
    let mut b = Box::new();
    b.tree("t", &[("s", "sentinel", 0o644), ("mine", "user work", 0o644)]);
    let recipe = "mkdir -p t && touch t/half && if [ -e again ]; then printf sentinel >t/s; else touch started; sleep 30; fi";
    let options =
        workspace::capture::TreeOptions { sentinels: vec![b"s".to_vec()], jobs: 1, ..Default::default() };
    b.add_tree("t", b"t", 2, Some(recipe), &[], &options);
    let mut entry = b.manifest.entry("t").unwrap().clone();
    if let workspace::Shape::Tree { files, bytes, .. } = &mut entry.shape {
        (*files, *bytes) = (1, 1);
    }
    b.manifest.put(entry);
    b.sign();
    fs::remove_file(b.home.path("t/s")).unwrap();
    let mut first = b.home.command(RESTORE).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    appears(&b.home.path("started"));
    first.kill().unwrap();
    first.wait().unwrap();
    b.home.file("again", "");
    let out = restore(&b, &["--resume"]);
    assert_eq!(out.code, 0, "{}", out.err());
    assert!(out.err().contains("interrupted"), "{}", out.err());
    assert_eq!(fs::read_to_string(b.home.path("t/s")).unwrap(), "sentinel");
    let kept: Vec<_> = fs::read_dir(b.home.path(".swr/quarantine")).unwrap().flatten().collect();
    assert!(kept.iter().any(|k| fs::read_to_string(k.path().join("t/mine")).is_ok_and(|t| t == "user work")));
}

#[test]
fn a_recipe_has_no_terminal_no_identity_consent_and_a_bound() {
    let mut b = Box::new();
    b.home.file("env", "x");
    let recipe = "printf '%s|%s|' \"${SELFHEAL_MODE-}\" \"${SWR_IDENTITY-none}\" >seen; read answer; echo \"$?\" >>seen; (exec </dev/tty) 2>/dev/null && echo tty >>seen; printf x >env";
    b.add("env", b"env", 1, Some(recipe), &[]).sign();
    fs::remove_file(b.home.path("env")).unwrap();
    let mut command = b.home.command(RESTORE);
    let out = run_with(command.env("SWR_IDENTITY", "secret"), b"y\n", Duration::from_secs(30));
    assert_eq!(out.code, 0, "{}", out.err());
    assert_eq!(fs::read_to_string(b.home.path("seen")).unwrap(), "fix|none|1\n");
    let mut entry = b.manifest.entry("env").unwrap().clone();
    entry.restore = Some("setsid sleep 47 & sleep 47".into());
    entry.timeout_s = Some(1);
    b.manifest.put(entry);
    b.sign();
    fs::remove_file(b.home.path("env")).unwrap();
    let out = restore(&b, &[]);
    assert_eq!((out.code, out.field(1).as_str()), (2, "failed"), "{}", out.err());
    assert!(!alive("sleep 47"));
}

#[test]
fn what_the_caller_had_saved_does_not_make_a_recipe_ask() {
    let mut b = Box::new();
    b.home.file("f", "x");
    b.add("f", b"f", 1, Some("env >seen; printf x >f"), &[]).sign();
    fs::remove_file(b.home.path("f")).unwrap();
    let mut command = b.home.command(RESTORE);
    command.envs(child::QUIET.map(|(name, _)| (name, "ask")));
    command.env("NPM_CONFIG_YES", "true").env("npm_Config_yes", "true");
    assert_eq!(run(&mut command).code, 0);
    let seen = fs::read_to_string(b.home.path("seen")).unwrap();
    for (name, value) in child::QUIET {
        let all: Vec<_> = seen
            .lines()
            .filter_map(|l| l.split_once('='))
            .filter(|(n, _)| n.eq_ignore_ascii_case(name))
            .collect();
        assert_eq!(all, [(name, value)], "{seen}");
    }
}

#[test]
fn state_files_are_closed_to_others() {
    let b = missing();
    fs::write(b.home.path("f"), "wrong").unwrap();
    assert_eq!(restore(&b, &[]).code, 0);
    for name in ["journal.jsonl", "accepted.jsonl", "log/f.log", "quarantine", "log"] {
        let mode = fs::metadata(b.home.path(".swr").join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name} {mode:o}");
    }
}
