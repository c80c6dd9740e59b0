//! What `prompt-cache` makes of an entry that is torn, strange, old or from another clock.
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

mod cache_calls;
mod private_home;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use cache_calls::{Calls, START, key};
use private_home::run;

const BODY: &str = "an answer\nof two lines";

/// A home with one entry, and the bytes of its file.
fn one() -> (Calls, Vec<u8>) {
    let calls = Calls::new();
    assert_eq!(calls.put(&key(1), BODY.as_bytes()).code, 0);
    let bytes = fs::read(calls.file(&key(1))).unwrap();
    (calls, bytes)
}

#[test]
fn an_entry_torn_at_any_byte_is_a_miss() {
    let (calls, bytes) = one();
    for end in 0..bytes.len() {
        fs::write(calls.file(&key(1)), &bytes[..end]).unwrap();
        let output = calls.check(&["--get", &key(1)]);
        assert_eq!((output.code, output.out().as_str()), (5, ""), "cut at {end}");
        assert!(output.err().contains("counts as a miss: "), "{}", output.err());
    }
    fs::write(calls.file(&key(1)), &bytes).unwrap();
    assert_eq!(calls.check(&["--get", &key(1)]).out(), BODY);
}

#[test]
fn a_damaged_entry_is_run_again_and_replaced() {
    let (calls, bytes) = one();
    let mut flipped = bytes.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let old = String::from_utf8(bytes.clone()).unwrap().replacen("prompt-cache 1", "prompt-cache 0", 1);
    let longer = [&bytes[..], b"<html>"].concat();
    let html = b"<html>Not Found</html>".to_vec();
    let cases = [flipped, old.into_bytes(), longer, html, vec![0; 4096], vec![b'x'; 3 << 20], Vec::new()];
    for (n, damage) in cases.into_iter().enumerate() {
        fs::write(calls.file(&key(1)), damage).unwrap();
        assert_eq!(calls.check(&["list"]).field(1), "corrupt", "{n}");
        let output = calls.ask(&key(1), "printf 'made anew'");
        assert_eq!((output.code, output.out().as_str(), calls.runs()), (0, "made anew", n + 1), "{n}");
        assert_eq!(calls.check(&["--get", &key(1)]).out(), "made anew", "{n}");
    }
    let log = fs::read_to_string(calls.home.path(".selfheal/selfheal.log")).unwrap();
    assert_eq!(log.matches(&format!("prompt-cache replace {}", key(1))).count(), 7, "{log}");
}

#[test]
fn an_entry_under_another_name_is_not_that_ones_answer() {
    let (calls, bytes) = one();
    fs::write(calls.file(&key(2)), bytes).unwrap();
    assert_eq!(calls.fix(&["--get", &key(2)]).code, 5);
    assert_eq!(calls.fix(&["--get", &key(1)]).out(), BODY);
}

#[test]
fn links_and_things_that_are_no_file_are_neither_read_nor_followed() {
    let (calls, bytes) = one();
    let real = calls.home.file("elsewhere/entry", &bytes);
    let entry = calls.file(&key(1));
    fs::remove_file(&entry).unwrap();
    symlink(&real, &entry).unwrap();
    assert_eq!(calls.fix(&["--get", &key(1)]).code, 5);
    assert_eq!(calls.ask(&key(1), "echo anew").out(), "anew\n");
    assert!(entry.symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read(&real).unwrap(), bytes);
    // A FIFO makes nobody wait.
    fs::remove_file(&entry).unwrap();
    assert!(calls.home.command("mkfifo").arg(&entry).status().unwrap().success());
    assert_eq!(calls.fix(&["--get", &key(1)]).code, 5);
    assert_eq!(calls.ask(&key(1), "echo anew").out(), "anew\n");
    assert_eq!(calls.fix(&["--get", &key(1)]).out(), "anew\n");
    // A directory is somebody's, and stays.
    calls.home.file(&format!(".selfheal/cache/{}/mine", key(2)), "x");
    let output = calls.ask(&key(2), "echo anew");
    assert_eq!((output.code, output.out().as_str()), (0, "anew\n"));
    assert!(output.err().contains("the answer is not kept"), "{}", output.err());
    assert_eq!(calls.fix(&["purge", "--all"]).code, 5);
    assert_eq!(calls.kept(), [key(2)]);
    // A directory that is a link keeps and gives nothing.
    let calls = Calls::new();
    let elsewhere = calls.home.file(&format!("other/{}", key(1)), &bytes);
    fs::create_dir(calls.home.path(".selfheal")).unwrap();
    symlink(elsewhere.parent().unwrap(), calls.home.path(".selfheal/cache")).unwrap();
    assert_eq!(calls.fix(&["--get", &key(1)]).code, 5);
    let output = calls.ask(&key(1), "echo anew");
    assert_eq!((output.code, output.out().as_str()), (0, "anew\n"));
    assert!(output.err().contains("the directory is a link"), "{}", output.err());
    assert_eq!(calls.fix(&["purge", "--all"]).code, 74);
    assert_eq!(fs::read_dir(calls.home.path("other")).unwrap().count(), 1);
    assert_eq!(fs::read(elsewhere).unwrap(), bytes);
}

#[test]
fn an_answer_is_nobody_elses_business_from_its_first_moment() {
    let calls = Calls::new();
    // The command sees what is there while it runs; the umask would allow everything.
    let look = "stat -c '%a %n' \"$HOME\"/.selfheal \"$HOME\"/.selfheal/* \"$HOME\"/.selfheal/cache/*";
    let loose = calls.home.script("loose", "umask 0; exec \"$@\"");
    let mut command = calls.home.command(&loose);
    command.arg(env!("CARGO_BIN_EXE_prompt-cache")).args(["-k", &key(1), "--", "sh", "-c", look]);
    let output = run(command.env("SELFHEAL_MODE", "fix"));
    assert_eq!(output.code, 0, "{}", output.err());
    let mut command = calls.home.command(&loose);
    command.arg(env!("CARGO_BIN_EXE_prompt-cache")).args(["--get", &key(1)]);
    assert_eq!(run(command.env("SELFHEAL_MODE", "fix")).code, 0);
    let mut seen = 0;
    let mut walk = vec![calls.home.path(".selfheal")];
    while let Some(path) = walk.pop() {
        let meta = path.symlink_metadata().unwrap();
        let mode = meta.permissions().mode() & 0o777;
        assert_eq!(mode, if meta.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
        walk.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|e| e.path()));
        seen += 1;
    }
    assert_eq!(seen, 6, "the home, the log, the cache, the claims, the events, the entry");
    assert!(output.out().lines().all(|l| l.starts_with("700 ") || l.starts_with("600 ")), "{}", output.out());
}

#[test]
fn an_answer_expires_and_is_made_anew() {
    let (mut calls, _) = one();
    calls.now = START + 30 * 86_400;
    assert_eq!(calls.fix(&["--get", &key(1)]).out(), BODY);
    assert_eq!(calls.fix(&["--get", &key(1), "--ttl", "29d"]).code, 5);
    calls.now += 1;
    assert_eq!(calls.fix(&["--get", &key(1)]).code, 5);
    let listed = calls.check(&["list"]);
    assert_eq!((listed.code, listed.field(1).as_str()), (5, "skipped"), "{}", listed.out());
    assert_eq!(calls.check(&["list", "--ttl", "60d"]).field(1), "ok");
    assert_eq!(calls.ask(&key(1), "echo anew").out(), "anew\n");
    assert_eq!(calls.fix(&["--get", &key(1)]).out(), "anew\n");
}

#[test]
fn an_answer_from_the_future_is_as_old_as_now_and_then_ages() {
    let mut calls = Calls::new();
    calls.now = START + 3_650 * 86_400;
    calls.put(&key(1), BODY.as_bytes());
    calls.now = START;
    let before = calls.home.census();
    assert_eq!(calls.check(&["--get", &key(1)]).out(), BODY);
    assert!(
        calls.check(&["list"]).out().contains(" 0 s old, used 0 s ago"),
        "{}",
        calls.check(&["list"]).out()
    );
    assert_eq!(calls.home.census(), before);
    assert_eq!(calls.fix(&["--get", &key(1)]).out(), BODY);
    calls.now = START + 31 * 86_400;
    assert_eq!(calls.fix(&["--get", &key(1)]).code, 5, "it was made at the first call that knew better");
}
