//! `swr-sign` as a process: the key, the seq, and every reason to refuse.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;
mod swr_box;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use private_home::{Home, Output, run, run_with};
use swr_box::{Box, chmod, in_reach, unfit_keys};
use workspace::Manifest;

const SIGN: &str = env!("CARGO_BIN_EXE_swr-sign");

fn sign(home: &Home, manifest: &[u8], args: &[&str]) -> Output {
    run_with(home.command(SIGN).args(args), manifest, Duration::from_secs(30))
}

#[test]
fn the_first_signing_makes_a_key_that_nobody_else_can_read() {
    let home = Home::new();
    let mut command = home.command("strace");
    let unsigned = Manifest::empty(b"~").to_bytes();
    let written = home.path("trace");
    command.args(["-f", "-e", "trace=openat,open,fchmod,chmod,fchmodat", "-o"]).arg(&written).arg(SIGN);
    // Where ptrace is forbidden the mode at the end is all that can be seen.
    let seen = run_with(&mut command, &unsigned, Duration::from_secs(60)).code == 0;
    if !seen {
        eprintln!("skipped: strace cannot trace here");
        let _ = fs::remove_dir_all(home.path(".swr"));
        assert_eq!(sign(&home, &unsigned, &[]).code, 0);
    }
    let mode = |name: &str| fs::metadata(home.path(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(".swr"), mode(".swr/signing.key")), (0o700, 0o600));
    assert_eq!(fs::metadata(home.path(".swr/signing.key")).unwrap().len(), 32);
    if seen {
        let calls = fs::read_to_string(written).unwrap();
        let creating: Vec<_> =
            calls.lines().filter(|l| l.contains("signing.key") && l.contains("O_CREAT")).collect();
        assert!(!creating.is_empty() && creating.iter().all(|l| l.contains("0600")), "{calls}");
    }
}

#[test]
fn signing_twice_changes_nothing_and_again_takes_the_next_seq() {
    let home = Home::new();
    let first = sign(&home, &Manifest::empty(b"~").to_bytes(), &["--signer", "me"]);
    assert_eq!(first.code, 0, "{}", first.err());
    let header = Manifest::parse(&first.stdout).unwrap().header;
    assert_eq!((header.seq, header.signer.as_str(), header.created.len()), (1, "me", 20));
    assert_eq!(sign(&home, &first.stdout, &[]).stdout, first.stdout);
    let again = sign(&home, &first.stdout, &["--again"]);
    let manifest = Manifest::parse(&again.stdout).unwrap();
    assert_eq!((manifest.header.seq, manifest.signatures.len()), (2, 1));
    assert_eq!(sign(&home, &again.stdout, &["--check"]).code, 0);
    let last = again.out().replace("\"seq\":2", "\"seq\":18446744073709551615");
    assert_eq!(sign(&home, last.as_bytes(), &[]).code, 4);
}

#[test]
fn each_reason_to_refuse_has_its_words() {
    let b = Box::new();
    let unsigned = b.manifest.to_bytes();
    let signed = sign(&b.home, &unsigned, &[]).stdout;
    let other = sign(&Home::new(), &unsigned, &[]).stdout;
    let altered = String::from_utf8(signed.clone()).unwrap().replace("\"root\":\"~\"", "\"root\":\"/\"");
    let fresh = Home::new();
    for (home, manifest, words) in [
        (&b.home, &unsigned, "not signed"),
        (&b.home, &other, "another box"),
        (&b.home, &altered.into_bytes(), "altered"),
        (&fresh, &signed, "no signing key"),
    ] {
        let out = sign(home, manifest, &["--check"]);
        assert_eq!((out.code, out.field(1).as_str()), (4, "bad"), "{}", out.err());
        assert!(out.out().contains(words), "{words}: {}", out.out());
    }
    assert!(!fresh.path(".swr").exists(), "a check makes nothing");
    let good = sign(&b.home, &signed, &["--check", "--json"]);
    assert!(good.code == 0 && good.out().starts_with('{'), "{}", good.out());
    assert_eq!(sign(&b.home, b"garbage\n", &[]).code, 4);
    assert_eq!(sign(&b.home, &signed, &["operand"]).code, 64);
}

#[test]
fn a_key_file_that_is_none_is_neither_used_nor_replaced() {
    for unfit in unfit_keys() {
        let b = Box::new();
        if !(unfit.make)(&b.home.path(".swr/signing.key")) {
            eprintln!("skipped: {} cannot be made here", unfit.what);
            continue;
        }
        let before = b.home.census();
        for args in [&[][..], &["--check"], &["--again"]] {
            let out = sign(&b.home, &b.manifest.to_bytes(), args);
            assert_eq!(out.code, 4, "{}: {}", unfit.what, out.err());
            assert!(out.err().contains("hint: "), "{}: {}", unfit.what, out.err());
            // Moved aside, the key of whose home this is would be lost to them.
            let is_theirs = unfit.what.contains("somebody else");
            assert_eq!(out.err().contains("hint: run this as that user"), is_theirs, "{}", out.err());
            // Signing prints a manifest or nothing; only a check speaks in verdicts.
            let said = if args == ["--check"] { out.out() } else { out.err() };
            assert!(said.contains(unfit.words), "{}: {said}", unfit.what);
            assert_eq!(out.out().starts_with("bad\tmanifest\t"), args == ["--check"], "{}", unfit.what);
            assert_eq!(out.out().lines().count(), usize::from(args == ["--check"]), "{}", unfit.what);
        }
        assert_eq!(b.home.census(), before, "{}", unfit.what);
    }
}

#[test]
fn two_first_signings_at_once_end_with_one_key() {
    let home = Home::new();
    let unsigned = Manifest::empty(b"~").to_bytes();
    let outs: Vec<Output> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| sign(&home, &unsigned, &[]))).collect();
        all.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for out in outs {
        assert_eq!(out.code, 0, "{}", out.err());
        assert_eq!(sign(&home, &out.stdout, &["--check"]).code, 0);
    }
}

#[test]
fn an_older_manifest_than_was_accepted_is_signed_again_above_it() {
    let home = Home::new();
    let first = sign(&home, &Manifest::empty(b"~").to_bytes(), &[]).stdout;
    let key = Manifest::parse(&first).unwrap().signatures[0].key.clone();
    fs::write(home.path(".swr/accepted.jsonl"), format!("{{\"key\":\"{key}\",\"seq\":9}}\n")).unwrap();
    for args in [&[][..], &["--check"]] {
        let out = sign(&home, &first, args);
        let said = out.out() + &out.err();
        assert_eq!(out.code, 4, "{said}");
        assert!(
            said.contains("old: seq 1, and 9") && said.contains("hint: read it, then swr sign --again"),
            "{said}"
        );
    }
    let again = sign(&home, &first, &["--again"]);
    assert_eq!((again.code, Manifest::parse(&again.stdout).unwrap().header.seq), (0, 10), "{}", again.err());
    assert_eq!(sign(&home, &again.stdout, &["--check"]).code, 0);
}

#[test]
fn a_check_says_what_restore_would_say() {
    let home = Home::new();
    let unsigned = Manifest::empty(b"~");
    let out = sign(&home, &unsigned.to_bytes(), &["--check"]);
    assert_eq!((out.code, out.err().as_str()), (4, "hint: read it, then swr sign\n"));
    fs::create_dir_all(home.path(".swr")).unwrap();
    let approved = format!("{{\"approved\":\"{}\"}}\n", unsigned.digest().hex());
    fs::write(home.path(".swr/accepted.jsonl"), approved).unwrap();
    let out = sign(&home, &unsigned.to_bytes(), &["--check"]);
    assert_eq!(out.code, 0, "{}", out.out());
    assert!(out.out().contains("its content was approved"), "{}", out.out());
}

#[test]
fn with_a_key_that_others_may_have_read_only_what_is_signed_anew_counts() {
    let home = Home::new();
    let unsigned = Manifest::empty(b"~").to_bytes();
    let first = sign(&home, &unsigned, &[]);
    let key = home.path(".swr/signing.key");
    chmod(&key, 0o644);
    if !in_reach(&key) {
        eprintln!("skipped: nobody else gets to {}", home.dir.display());
        return;
    }
    let good = sign(&home, &first.stdout, &["--check"]);
    assert_eq!(good.code, 0, "it is on record: {}", good.out());
    assert!(good.err().contains("hint: chmod 700 "), "{}", good.err());
    fs::remove_file(home.path(".swr/signed.jsonl")).unwrap();
    let bad = sign(&home, &first.stdout, &["--check"]);
    assert_eq!((bad.code, bad.field(1).as_str()), (4, "bad"), "{}", bad.out());
    let second = sign(&home, &first.stdout, &[]);
    assert_eq!(
        (second.code, Manifest::parse(&second.stdout).unwrap().header.seq),
        (0, 2),
        "{}",
        second.err()
    );
    assert!(second.err().contains("open to others, mode 0644"), "{}", second.err());
    assert_eq!(sign(&home, &second.stdout, &["--check"]).code, 0);
    assert_eq!(sign(&home, &second.stdout, &[]).stdout, second.stdout);
    // Closed by a person, the key alone decides again.
    chmod(&key, 0o600);
    assert_eq!(sign(&home, &first.stdout, &["--check"]).code, 0);
}

#[test]
fn a_cycle_of_needs_is_not_signed_and_a_need_on_nothing_is_said() {
    let mut b = Box::new();
    for id in ["a", "b"] {
        b.home.file(id, id);
    }
    b.add("a", b"a", 0, None, &["b"]).add("b", b"b", 0, None, &["gone"]);
    let out = sign(&b.home, &b.manifest.to_bytes(), &[]);
    assert_eq!(out.code, 0, "{}", out.err());
    assert!(out.err().contains("b needs 'gone', which no entry is"), "{}", out.err());
    b.add("b", b"b", 0, None, &["a"]);
    let out = sign(&b.home, &b.manifest.to_bytes(), &[]);
    assert_eq!((out.code, out.out().as_str()), (4, ""), "{}", out.err());
    assert!(
        out.err().contains("cycle of needs: a -> b -> a\nhint: give one of them other needs"),
        "{}",
        out.err()
    );
}

#[test]
fn a_terminal_is_not_read_as_a_manifest() {
    let b = Box::new();
    for args in [&[][..], &["--check"]] {
        let terminal = fs::File::open("/dev/ptmx").unwrap();
        let out = run(b.home.command(env!("CARGO_BIN_EXE_swr-sign")).args(args).stdin(terminal));
        assert_eq!((out.code, out.out().as_str()), (64, ""), "{}", out.err());
        assert!(out.err().contains("swr sign"), "{}", out.err());
    }
}
