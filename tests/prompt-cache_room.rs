//! `prompt-cache` within its caps: what has to go, what must not, and what is purged.
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

mod cache_calls;
mod private_home;

use std::fs;
use std::time::{Duration, SystemTime};

use cache_calls::{Calls, START, key};
use private_home::run_with;

/// Keeps a body of so many bytes under these caps, a second after the last.
fn put(calls: &mut Calls, n: usize, bytes: usize, caps: &[&str]) {
    calls.now += 1;
    let (name, body) = (key(n), vec![b'x'; bytes]);
    let line = [&["--put", &name], caps].concat();
    let output = run_with(&mut calls.command("fix", &line), &body, Duration::from_secs(60));
    assert!(output.code == 0 || output.code == 5, "{}", output.err());
}

fn keys(numbers: &[usize]) -> Vec<String> {
    numbers.iter().map(|n| key(*n)).collect()
}

#[test]
fn what_was_used_least_recently_makes_room() {
    let mut calls = Calls::new();
    for n in 1..=3 {
        put(&mut calls, n, 10, &["--max-entries", "3"]);
    }
    calls.now += 1;
    assert_eq!(calls.fix(&["--get", &key(1)]).code, 0);
    // Looking in check mode is no use that counts.
    calls.now += 1;
    assert_eq!(calls.check(&["--get", &key(2)]).code, 0);
    put(&mut calls, 4, 10, &["--max-entries", "3"]);
    assert_eq!(calls.kept(), keys(&[1, 3, 4]));
    // What is replaced takes no room beside itself.
    put(&mut calls, 1, 10, &["--max-entries", "3"]);
    assert_eq!(calls.kept(), keys(&[1, 3, 4]));
    put(&mut calls, 5, 10, &["--max-entries", "1"]);
    assert_eq!(calls.kept(), keys(&[5]));
    assert_eq!(calls.stat("evicted"), 4);
    let log = fs::read_to_string(calls.home.path(".selfheal/selfheal.log")).unwrap();
    assert!(log.contains(&format!("prompt-cache evict {}\n", key(2))), "{log}");
}

#[test]
fn bytes_make_room_and_what_does_not_fit_evicts_nothing() {
    let mut calls = Calls::new();
    let caps = ["--max-bytes", "4K"];
    for n in 1..=3 {
        put(&mut calls, n, 1000, &caps);
    }
    assert_eq!(calls.kept(), keys(&[1, 2, 3]));
    for too_large in [4096, 4000, 1 << 20, (1 << 20) + 1] {
        put(&mut calls, 9, too_large, &caps);
        assert_eq!(calls.kept(), keys(&[1, 2, 3]), "{too_large}");
    }
    put(&mut calls, 4, 1000, &caps);
    assert_eq!(calls.kept(), keys(&[2, 3, 4]));
    put(&mut calls, 5, 3000, &caps);
    assert_eq!(calls.kept(), keys(&[5]));
    assert!(calls.stat("bytes") <= 4096);
    put(&mut calls, 6, (1 << 20) + 1, &[]);
    assert_eq!(calls.kept(), keys(&[5]));
}

#[test]
fn a_time_of_use_in_the_future_does_not_last_for_ever() {
    let mut calls = Calls::new();
    for n in 1..=2 {
        put(&mut calls, n, 10, &[]);
    }
    let ahead = SystemTime::UNIX_EPOCH + Duration::from_secs(START + 1_000_000);
    fs::File::open(calls.file(&key(1))).unwrap().set_modified(ahead).unwrap();
    put(&mut calls, 3, 10, &["--max-entries", "2"]);
    assert_eq!(calls.kept(), keys(&[1, 3]), "as good as used now");
    calls.now += 1;
    assert_eq!(calls.fix(&["--get", &key(3)]).code, 0);
    put(&mut calls, 4, 10, &["--max-entries", "2"]);
    assert_eq!(calls.kept(), keys(&[3, 4]), "and then older than what came later");
}

#[test]
fn what_killed_writers_left_goes_and_what_is_not_ours_stays() {
    let mut calls = Calls::new();
    put(&mut calls, 1, 10, &[]);
    let litter = format!(".{}.999999.0.tmp", key(2));
    for name in [litter.as_str(), "notes.txt", ".hidden", "ABCDEF"] {
        calls.home.file(&format!(".selfheal/cache/{name}"), "x");
    }
    put(&mut calls, 3, 10, &["--max-entries", "1"]);
    assert_eq!(calls.kept(), keys(&[3]));
    assert!(!calls.file(&litter).exists());
    assert_eq!(calls.fix(&["purge", "--all"]).code, 0);
    for name in ["notes.txt", ".hidden", "ABCDEF"] {
        assert!(calls.file(name).exists(), "{name}");
    }
    assert_eq!(calls.kept(), [""; 0]);
}

#[test]
fn purge_removes_what_it_is_told_and_says_so() {
    let mut calls = Calls::new();
    for n in 1..=6 {
        put(&mut calls, n, 10, &[]);
        calls.now += 86_399;
    }
    fs::write(calls.file(&key(6)), "damaged").unwrap();
    let purged = |calls: &Calls, line: &[&str]| {
        let output = calls.fix(&[&["purge"], line].concat());
        assert_eq!(output.code, 0, "{}", output.err());
        let rows: Vec<_> =
            output.out().lines().map(|l| l.split('\t').map(str::to_owned).collect::<Vec<_>>()).collect();
        assert!(rows.iter().all(|row| row[..2] == ["ok", "cache"]), "{rows:?}");
        rows.into_iter().map(|row| row[2].clone()).collect::<Vec<_>>()
    };
    assert_eq!(purged(&calls, &[&key(1), &key(99)]), keys(&[1, 99]));
    assert_eq!(calls.kept(), keys(&[2, 3, 4, 5, 6]));
    assert_eq!(purged(&calls, &["--older", "3d"]), keys(&[2, 3]), "damaged ones have no age");
    assert_eq!(purged(&calls, &[]), keys(&[6]));
    assert_eq!(purged(&calls, &["--ttl", "60h"]), keys(&[4]));
    assert_eq!(purged(&calls, &["--ttl", "60h"]), [""; 0]);
    assert_eq!(purged(&calls, &["--all"]), keys(&[5]));
    assert_eq!(calls.stat("entries"), 0);
    assert_eq!(calls.stat("misses"), 6, "counts outlive the entries");
    let json = calls.fix(&["purge", "--json", &key(1)]).out();
    assert!(json.starts_with("{\"state\":\"ok\",\"kind\":\"cache\",\"subject\":\""), "{json}");
}

#[test]
fn a_thousand_hits_leave_a_small_file_and_all_are_counted() {
    let mut calls = Calls::new();
    put(&mut calls, 1, 10, &[]);
    let events = calls.file("events");
    fs::write(&events, "sum 5 6 7 8000\n".to_owned() + &"hit 1000\n".repeat(4000)).unwrap();
    assert_eq!(calls.stat("hits"), 4005);
    assert_eq!(calls.fix(&["--get", &key(1)]).code, 0);
    assert!(events.metadata().unwrap().len() < 100, "summed up");
    assert_eq!((calls.stat("hits"), calls.stat("seconds_saved")), (4006, 4_008_000));
    // What is no line of ours counts for nothing, and a torn end eats nothing.
    fs::write(&events, "sum 1 1 1 1000\nrubbish\nhi").unwrap();
    assert_eq!(calls.fix(&["--get", &key(1)]).code, 0);
    assert_eq!(calls.stat("hits"), 2);
}
