//! `swr-restore` after a snapshot reset the permissions of the signing key.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;
mod swr_box;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use contract::mode;
use private_home::{Output, run};
use seal::standing;
use swr_box::{Box, chmod, in_reach, missing};

const RESTORE: &str = env!("CARGO_BIN_EXE_swr-restore");

fn restore(b: &Box, args: &[&str]) -> Output {
    run(b.home.command(RESTORE).args(args))
}

/// As `swr-sign` does when it has signed.
fn record(b: &Box) {
    standing::record(&mode::by_name(), &b.home.path(".swr"), b.manifest.digest()).unwrap();
}

fn key_mode(b: &Box) -> u32 {
    fs::metadata(b.home.path(".swr/signing.key")).unwrap().permissions().mode() & 0o7777
}

/// A key of mode 0644 that others get to; `None` where the directory of the tests itself lets nobody through.
fn opened(b: Box) -> Option<Box> {
    let key = b.home.path(".swr/signing.key");
    chmod(&key, 0o644);
    if in_reach(&key) {
        return Some(b);
    }
    eprintln!("skipped: nobody else gets to {}", b.home.dir.display());
    None
}

#[test]
fn a_key_whose_mode_was_reset_out_of_reach_of_others_is_closed_again_and_used() {
    for reset in [0o644, 0o666, 0o777] {
        let b = missing();
        chmod(&b.home.path(".swr/signing.key"), reset);
        let out = restore(&b, &["--dry-run"]);
        assert_eq!((out.code, key_mode(&b)), (1, reset), "a dry run writes nothing: {}", out.err());
        let out = restore(&b, &[]);
        assert_eq!((out.code, key_mode(&b)), (0, 0o600), "{}", out.err());
        let said: Vec<_> =
            out.err().lines().filter(|l| l.contains("signing.key")).map(str::to_owned).collect();
        assert_eq!(said.len(), 1, "{}", out.err());
        assert!(said[0].contains(&format!("mode 0600 again (was {reset:04o}")), "{said:?}");
        assert!(!restore(&b, &[]).err().contains("signing.key"));
    }
}

#[test]
fn a_reset_that_opened_everything_is_healed_when_this_content_was_signed_here() {
    let b = missing();
    record(&b);
    let Some(b) = opened(b) else { return };
    chmod(&b.home.path(".swr/signed.jsonl"), 0o644);
    let out = restore(&b, &[]);
    assert_eq!((out.code, out.field(1).as_str()), (0, "healed"), "{}", out.err());
    // That it was open stays to be seen until somebody has decided what it means.
    assert_eq!(key_mode(&b), 0o644);
    let key = b.home.path(".swr/signing.key");
    let hint = format!("chmod 600 '{}', if nobody else can have read it; else move it aside", key.display());
    assert!(out.err().contains(&hint), "{}", out.err());
    chmod(&key, 0o600);
    assert!(!restore(&b, &[]).err().contains("signing.key"));
}

#[test]
fn what_somebody_who_read_the_key_signs_is_refused() {
    let b = missing();
    record(&b);
    let Some(mut b) = opened(b) else { return };
    let good = b.manifest.to_bytes();
    let mut entry = b.manifest.entry("f").unwrap().clone();
    entry.restore = Some("touch evil".into());
    b.manifest.put(entry);
    b.sign();
    let out = restore(&b, &[]);
    assert_eq!((out.code, out.field(1).as_str()), (4, "bad"), "{}", out.err());
    assert!(
        out.out().contains("open to others, mode 0644, and this content is not recorded"),
        "{}",
        out.out()
    );
    assert!(out.err().starts_with("hint: chmod 700 "), "{}", out.err());
    assert!(!b.home.path("evil").exists() && !b.home.path("f").exists());
    b.write(&good);
    assert_eq!(restore(&b, &[]).code, 0);
}

/// Makes the record prove nothing.
type Spoil = fn(&Box);

#[test]
fn a_record_that_another_could_have_written_proves_nothing() {
    let cases: [(&str, Spoil); 5] = [
        ("none", |b| fs::remove_file(b.home.path(".swr/signed.jsonl")).unwrap()),
        ("others may write it", |b| chmod(&b.home.path(".swr/signed.jsonl"), 0o646)),
        ("others may write its directory", |b| chmod(&b.home.path(".swr"), 0o777)),
        ("a link", |b| {
            fs::rename(b.home.path(".swr/signed.jsonl"), b.home.path("moved")).unwrap();
            std::os::unix::fs::symlink("../moved", b.home.path(".swr/signed.jsonl")).unwrap();
        }),
        ("garbage", |b| fs::write(b.home.path(".swr/signed.jsonl"), "{\"signed\":1}\n\n\0").unwrap()),
    ];
    for (what, spoil) in cases {
        let b = missing();
        record(&b);
        let Some(b) = opened(b) else { return };
        spoil(&b);
        let out = restore(&b, &[]);
        assert_eq!((out.code, out.field(1).as_str()), (4, "bad"), "{what}: {}", out.err());
        assert!(!b.home.path("ran").exists(), "{what}");
    }
}
