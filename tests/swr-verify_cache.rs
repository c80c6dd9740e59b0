//! `swr-verify` as a process: blobs and the cache, the name of the wipe, and how it ends.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;
mod swr_box;

use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use private_home::{Output, run, run_with};
use swr_box::{Box, chmod};
use workspace::capture::TreeOptions;

const VERIFY: &str = env!("CARGO_BIN_EXE_swr-verify");

fn verify(b: &Box, args: &[&str]) -> Output {
    run(b.home.command(VERIFY).args(args))
}

/// Changes one byte and gives the file its times back, as a careless copy or an attacker would.
fn flip(path: &Path, at: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let times = file.metadata().unwrap().modified().unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    file.set_times(fs::FileTimes::new().set_modified(times)).unwrap();
}

/// Looks and remembers, again and again until the files are old enough for that.
fn remember(b: &Box) -> Output {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let out = verify(b, &["--deep", "--update-cache"]);
        let cache = fs::read_to_string(b.home.path(".swr/verify.cache")).unwrap_or_default();
        if ["m ", "s ", "t "].iter().all(|id| cache.lines().any(|l| l.starts_with(id))) {
            return out;
        }
        assert!(Instant::now() < end, "nothing is remembered: {cache}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A blob `m` of 3 MB, a script `s`, a hashed tree `t`.
fn example() -> Box {
    let mut b = Box::new();
    b.tree(".", &[("m", &"model".repeat(600_000), 0o644), ("s", "#!/bin/sh\n", 0o755)]);
    b.tree("t", &[("a/b", "text", 0o644)]);
    let hash = TreeOptions { hash: true, jobs: 1, ..TreeOptions::default() };
    b.add("m", b"m", 3, None, &[])
        .add("s", b"s", 1, None, &[])
        .add_tree("t", b"t", 2, None, &[], &hash)
        .sign();
    b
}

#[test]
fn a_byte_outside_of_the_samples_is_found_by_deep_alone() {
    let b = example();
    flip(&b.home.path("m"), 100_000);
    assert_eq!(verify(&b, &[]).code, 0);
    let deep = verify(&b, &["--deep"]);
    assert_eq!((deep.code, deep.field(1).as_str()), (1, "corrupt"), "{}", deep.out());
    flip(&b.home.path("m"), 100_000);
    assert_eq!(verify(&b, &["--deep"]).code, 0);
    for at in [0, 65_535, 2_999_999] {
        flip(&b.home.path("m"), at);
        let out = verify(&b, &[]);
        assert_eq!((out.code, out.field(1).as_str()), (1, "corrupt"), "byte {at}");
        flip(&b.home.path("m"), at);
    }
}

#[test]
fn a_change_whose_mtime_was_put_back_is_found_in_spite_of_the_cache() {
    let b = example();
    assert_eq!(remember(&b).code, 0);
    let cached = verify(&b, &[]);
    assert!(cached.out().lines().all(|l| l.starts_with("ok\t")), "{}", cached.out());
    let mtime = |name: &str| fs::metadata(b.home.path(name)).unwrap().mtime_nsec();
    for (name, id) in [("s", "s"), ("t/a/b", "t")] {
        let before = mtime(name);
        flip(&b.home.path(name), 1);
        assert_eq!(mtime(name), before);
        let out = verify(&b, &[]);
        assert_eq!(out.code, 1, "{name}");
        assert!(out.out().contains(&format!("\t{id}\tcontent differs")), "{}", out.out());
        flip(&b.home.path(name), 1);
    }
    // A stale record of a blob falls back to its samples.
    flip(&b.home.path("m"), 0);
    assert_eq!(verify(&b, &[]).field(1), "corrupt");
    flip(&b.home.path("m"), 0);
    let out = verify(&b, &[]);
    assert!(out.code == 0 && out.out().contains("16 samples match"), "{}", out.out());
}

#[test]
fn a_file_that_changed_this_moment_is_not_remembered() {
    let b = example();
    assert_eq!(verify(&b, &["--update-cache"]).code, 0);
    let cache = b.home.path(".swr/verify.cache");
    let text = fs::read_to_string(&cache).unwrap();
    let ctime = fs::metadata(b.home.path("s")).unwrap().ctime();
    // Fair on a machine that took two seconds to come here.
    if ctime + 2 > fs::metadata(&cache).unwrap().mtime() {
        assert_eq!(text.lines().count(), 2, "{text}");
    }
}

#[test]
fn a_cache_that_is_broken_or_from_the_future_proves_nothing() {
    let b = example();
    assert_eq!(remember(&b).code, 0);
    let path = b.home.path(".swr/verify.cache");
    let good = fs::read_to_string(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    assert!(good.lines().count() > 2, "{good}");
    flip(&b.home.path("s"), 1);
    let future: String = good
        .lines()
        .map(|l| if l.starts_with("s ") { format!("{l}0\n") } else { format!("{l}\n") })
        .collect();
    for bad in
        [future.as_bytes(), b"", b"\xff\0\n", &good.as_bytes()[..good.len() / 2], b"swr verify cache 1\n"]
    {
        fs::write(&path, bad).unwrap();
        let out = verify(&b, &[]);
        assert!(out.code == 1 && out.out().contains("corrupt\tfile\ts\t"), "{}", out.out());
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(verify(&b, &[]).code, 1, "a directory in its place is no cache");
}

#[test]
fn only_json_and_jobs_do_what_they_say() {
    let b = example();
    fs::remove_file(b.home.path("s")).unwrap();
    assert_eq!(verify(&b, &["--only", "m", "--only", "t"]).code, 0);
    let out = verify(&b, &["--only", "s"]);
    assert_eq!((out.code, out.out().lines().count()), (1, 1), "no signature of a part: {}", out.out());
    for line in verify(&b, &["--json"]).out().lines() {
        let value: workspace::json::Json = workspace::json::parse(line.as_bytes()).unwrap();
        assert!(matches!(value, workspace::json::Json::Object(_)), "{line}");
    }
    let all = verify(&b, &[]).out();
    for jobs in ["1", "2", "64"] {
        assert_eq!(verify(&b, &["--jobs", jobs]).out(), all, "{jobs}");
    }
    for args in [&["--jobs", "0"][..], &["--jobs", "65"], &["--only", "none"], &["--what"], &["operand"]] {
        let out = verify(&b, args);
        assert_eq!((out.code, out.out().as_str()), (64, ""), "{args:?}");
    }
}

#[test]
fn an_unsigned_manifest_is_enough_to_look_and_may_come_through_a_pipe() {
    let b = example();
    b.write(&b.manifest.body);
    assert_eq!(verify(&b, &[]).code, 0);
    let mut command = b.home.command(VERIFY);
    let out = run_with(command.args(["--manifest", "-"]), &b.manifest.body, Duration::from_secs(30));
    assert_eq!(out.code, 0, "{}", out.err());
}

/// Entries of the sizes and places that the signatures tell apart.
fn workspace() -> Box {
    let mut b = Box::new();
    let big = "x".repeat(2 << 20);
    b.tree(
        ".",
        &[
            (".clawhub/token", "secret", 0o600),
            ("run.sh", "#!/bin/sh\n", 0o755),
            ("notes.txt", "notes", 0o644),
            ("big.gguf", &big, 0o644),
            ("more.gguf", &big, 0o644),
            ("app/node_modules/x", "x", 0o644),
            ("app/build/y", "y", 0o755),
        ],
    );
    for (id, path, tier) in [
        ("token", ".clawhub/token", 0),
        ("run", "run.sh", 1),
        ("notes", "notes.txt", 1),
        ("big", "big.gguf", 3),
        ("more", "more.gguf", 3),
        ("modules", "app/node_modules", 4),
        ("build", "app/build/y", 4),
    ] {
        b.add(id, path.as_bytes(), tier, None, &[]);
    }
    b.sign();
    b
}

/// What a platform does to a workspace.
type Wipe<'a> = &'a dyn Fn(&Box);

#[test]
fn each_wipe_gets_its_name() {
    let gone = |b: &Box, names: &[&str]| {
        for name in names {
            let path = b.home.path(name);
            if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
        }
    };
    let cases: [(&str, Wipe<'_>); 7] = [
        ("cold-start", &|b| gone(b, &[".clawhub", "run.sh", "notes.txt", "big.gguf", "more.gguf", "app"])),
        ("size-cap-eviction", &|b| gone(b, &["big.gguf", "more.gguf"])),
        ("exclusion-sweep", &|b| gone(b, &["app/node_modules", "app/build"])),
        ("permission-reset", &|b| {
            for name in ["run.sh", "app/build/y"] {
                chmod(&b.home.path(name), 0o644);
            }
        }),
        ("credential-loss", &|b| gone(b, &[".clawhub/token"])),
        ("local-corruption", &|b| flip(&b.home.path("notes.txt"), 0)),
        ("", &|b| gone(b, &["notes.txt", "big.gguf"])),
    ];
    for (want, wipe) in cases {
        let b = workspace();
        wipe(&b);
        let out = verify(&b, &[]);
        let last = out.out().lines().last().unwrap().to_owned();
        let signature = last.strip_prefix("degraded\tmanifest\t").and_then(|l| l.split('\t').next());
        assert_eq!((out.code, signature.unwrap_or("")), (1, want), "{}", out.out());
    }
}

#[test]
fn another_machine_is_named_only_when_something_is_damaged() {
    let b = example();
    assert_eq!(verify(&b, &["--update-cache"]).code, 0);
    let path = b.home.path(".swr/verify.cache");
    let text = fs::read_to_string(&path).unwrap();
    let host = text.lines().nth(1).unwrap();
    fs::write(&path, text.replacen(host, &format!("host {}", "ab".repeat(32)), 1)).unwrap();
    assert_eq!(verify(&b, &[]).code, 0);
    chmod(&b.home.path("s"), 0o644);
    let out = verify(&b, &[]);
    assert!(out.out().contains("degraded\tmanifest\tmoved-host\t"), "{}", out.out());
    verify(&b, &["--update-cache"]);
    assert!(!verify(&b, &[]).out().contains("moved-host"));
}

#[test]
fn where_nothing_can_be_written_it_ends_74() {
    let b = example();
    for to in [">/dev/full", ">&-"] {
        let out = run(b.home.command("sh").args(["-c", &format!("exec \"$0\" {to}"), VERIFY]));
        assert_eq!(out.code, 74, "{to} {}", out.err());
    }
    let manifest = b.home.path(".swr/manifest.jsonl");
    // Nobody, not even root, makes a directory there.
    let command = |args: &[&str]| {
        let mut command = b.home.command(VERIFY);
        command.env("SWR_HOME", "/proc/swr").arg("--manifest").arg(&manifest).args(args);
        run(&mut command)
    };
    assert_eq!(command(&[]).code, 0);
    let out = command(&["--update-cache"]);
    assert_eq!((out.code, out.out().lines().count()), (0, 3), "the verdicts decide: {}", out.err());
    assert!(out.err().contains("cannot write "), "and it is said: {}", out.err());
    fs::remove_file(b.home.path("s")).unwrap();
    assert_eq!(command(&["--update-cache"]).code, 1);
}

#[test]
fn a_manifest_that_is_none_is_said_in_one_line_with_a_hint() {
    let b = example();
    let path = b.home.path(".swr/manifest.jsonl");
    let (text, start) = (fs::read_to_string(&path).unwrap(), Instant::now());
    for bad in ["", "garbage\n", &text[..text.len() - 1], &text.replace("\"swr\":1", "\"swr\":2")] {
        fs::write(&path, bad).unwrap();
        let out = verify(&b, &[]);
        assert_eq!((out.code, out.err().lines().count()), (4, 1), "{}", out.err());
        assert!(out.out().starts_with("bad\tmanifest\tmanifest\t"), "{}", out.out());
        assert!(out.err().starts_with("hint: "), "{}", out.err());
    }
    let out = verify(&b, &["--json"]).out();
    assert!(out.starts_with("{\"state\":\"bad\",") && out.lines().count() == 1, "{out}");
    fs::remove_file(&path).unwrap();
    let out = verify(&b, &[]);
    assert!(out.code == 4 && out.err().contains("hint: bring back a copy of .swr"), "{}", out.err());
    fs::create_dir(&path).unwrap();
    assert_eq!(verify(&b, &[]).code, 74);
    fs::remove_dir(&path).unwrap();
    assert_eq!(run(b.home.command("mkfifo").arg(&path)).code, 0);
    let out = verify(&b, &[]);
    assert!(out.code == 74 && out.err().contains("FIFO"), "{}", out.err());
    assert!(start.elapsed().as_secs() < 60);
}
