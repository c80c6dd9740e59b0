//! `swr-verify` as a process: a healthy tree is not touched, and every damage of a generated one is found.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;
mod swr_box;
mod swr_tree;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use private_home::{Output, run};
use swr_box::{Box, chmod};
use swr_tree::{Grown, Rng, at, grow};
use workspace::capture::TreeOptions;

const VERIFY: &str = env!("CARGO_BIN_EXE_swr-verify");

fn verify(b: &Box, args: &[&str]) -> Output {
    run(b.home.command(VERIFY).args(args))
}

/// `STATE ID` of each line that is not `ok` and not about the whole.
fn found(output: &Output) -> Vec<String> {
    let lines: Vec<_> =
        output.out().lines().map(|l| l.split('\t').map(str::to_owned).collect::<Vec<_>>()).collect();
    let damage = lines.iter().filter(|f| f[0] != "ok" && f[1] != "manifest");
    damage.map(|f| format!("{} {}", f[0], f[2])).collect()
}

/// A grown tree at `w`: entry `hash` and entry `loose` over the whole of it, one entry for each file and link.
fn grown(seed: u64) -> (Box, Grown) {
    let mut b = Box::new();
    let tree = grow(&b.home.dir, b"w", &mut Rng(seed));
    let hash = TreeOptions { hash: true, jobs: 2, ..TreeOptions::default() };
    b.add_tree("hash", b"w", 2, None, &[], &hash).add("loose", b"w", 2, None, &[]);
    for (n, path) in tree.files.iter().enumerate() {
        b.add(&format!("f{n}"), path, 1, None, &[]);
    }
    for (n, path) in tree.links.iter().enumerate() {
        b.add(&format!("l{n}"), path, 1, None, &[]);
    }
    b.sign();
    (b, tree)
}

#[test]
fn a_healthy_tree_is_healthy_and_nothing_of_it_is_touched() {
    for seed in 1..=4 {
        let (b, tree) = grown(seed);
        assert!(tree.files.len() > 3, "seed {seed}");
        let before = b.home.census();
        for args in [&[][..], &["--deep", "--no-cache"], &["--jobs", "1"]] {
            let out = verify(&b, args);
            assert_eq!(
                (out.code, found(&out).len()),
                (0, 0),
                "seed {seed} {args:?}: {}{}",
                out.out(),
                out.err()
            );
        }
        assert_eq!(b.home.census(), before, "seed {seed}");
        assert!(!b.home.path("pwned").exists() && !b.home.path("w/pwned").exists());
    }
}

#[test]
fn every_single_byte_that_flips_is_found() {
    let (b, tree) = grown(5);
    let mut flipped = 0;
    for (n, path) in tree.files.iter().enumerate() {
        let path = at(&b.home.dir, path);
        let good = fs::read(&path).unwrap();
        for byte in 0..good.len() {
            let mut bad = good.clone();
            bad[byte] ^= 1 << (byte % 8);
            fs::write(&path, &bad).unwrap();
            let out = verify(&b, &[]);
            let want = ["corrupt hash".to_owned(), format!("corrupt f{n}")];
            assert_eq!((out.code, found(&out)), (1, want.to_vec()), "{path:?} byte {byte}");
            flipped += 1;
        }
        fs::write(&path, &good).unwrap();
    }
    assert!(flipped > 50, "{flipped}");
    assert_eq!(verify(&b, &[]).code, 0);
}

#[test]
fn every_mode_that_changes_is_found() {
    let (b, tree) = grown(6);
    for (n, path) in tree.files.iter().enumerate() {
        let path = at(&b.home.dir, path);
        let good = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        for bit in [0o001, 0o010, 0o100, 0o004, 0o020, 0o4000] {
            chmod(&path, good ^ bit);
            let out = verify(&b, &[]);
            let seen = found(&out);
            assert_eq!(out.code, 1);
            assert!(seen.contains(&format!("stripped f{n}")), "{path:?} {bit:o}: {seen:?}");
            // With a root any bit counts, without one an execute bit of an executable file, and what opens a closed one.
            assert!(seen.iter().any(|s| s.ends_with(" hash")), "{path:?} {bit:o}: {seen:?}");
            let closed = good.trailing_zeros() >= 6;
            let recorded =
                (closed || good & 0o111 != 0) && bit & 0o111 != 0 || closed && bit.trailing_zeros() < 6;
            assert_eq!(seen.contains(&"stripped loose".to_owned()), recorded, "{path:?} {bit:o}: {seen:?}");
        }
        chmod(&path, good);
    }
    assert_eq!(verify(&b, &[]).code, 0);
}

#[test]
fn every_member_that_goes_or_comes_is_found() {
    let (b, tree) = grown(7);
    for (n, path) in tree.files.iter().enumerate() {
        let path = at(&b.home.dir, path);
        let aside = b.home.path("aside");
        fs::rename(&path, &aside).unwrap();
        let seen = found(&verify(&b, &[]));
        assert!(seen.contains(&format!("missing f{n}")), "{path:?} {seen:?}");
        for id in ["hash", "loose"] {
            assert!(seen.iter().any(|s| s.ends_with(&format!(" {id}"))), "{path:?} {seen:?}");
        }
        fs::rename(&aside, &path).unwrap();
        let added = path.with_file_name("added");
        fs::write(&added, "").unwrap();
        let out = verify(&b, &[]);
        assert_eq!((out.code, found(&out)), (1, vec!["corrupt hash".to_owned()]), "{added:?}");
        fs::remove_file(added).unwrap();
    }
    for path in &tree.empties {
        let path = at(&b.home.dir, path);
        let mode = fs::metadata(&path).unwrap().permissions();
        fs::remove_dir(&path).unwrap();
        let seen = found(&verify(&b, &[]));
        assert_eq!(seen, ["missing hash", "missing loose"], "{path:?}");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, mode).unwrap();
    }
    for (n, path) in tree.links.iter().enumerate() {
        let path = at(&b.home.dir, path);
        let target = fs::read_link(&path).unwrap();
        let want =
            |state: &str| ["hash", "loose", &format!("l{n}")].map(|id| format!("{state} {id}")).to_vec();
        fs::remove_file(&path).unwrap();
        assert_eq!(found(&verify(&b, &[])), want("missing"), "{path:?}");
        symlink("elsewhere", &path).unwrap();
        assert_eq!(found(&verify(&b, &[])), want("corrupt"), "{path:?}");
        fs::remove_file(&path).unwrap();
        fs::write(&path, "a copy of what it pointed at").unwrap();
        assert_eq!(found(&verify(&b, &[])), want("corrupt"), "{path:?}");
        fs::remove_file(&path).unwrap();
        symlink(&target, &path).unwrap();
    }
    assert_eq!(verify(&b, &[]).code, 0);
}

/// Puts something at a path.
type Put<'a> = &'a dyn Fn(&std::path::Path);

#[test]
fn what_stands_in_the_place_of_a_file_is_named_and_never_waited_for() {
    let mut b = Box::new();
    b.home.file("f", "content");
    b.home.file("d/x", "x");
    b.add("f", b"f", 1, None, &[]).add("d", b"d", 1, None, &[]).sign();
    let made = |program: &str, args: &[&str], path: &std::path::Path| {
        let mut all = vec![path.as_os_str()];
        all.extend(args.iter().map(std::ffi::OsStr::new));
        Command::new(program).args(all).status().unwrap().success()
    };
    let devices = made("mknod", &["c", "1", "3"], &b.home.path("null"));
    if !devices {
        eprintln!("skipped: mknod is not permitted, no device was looked at");
    }
    let cases: [(&str, Put<'_>); 4] = [
        ("a FIFO", &|p| assert!(made("mkfifo", &[], p))),
        ("a directory", &|p| fs::create_dir(p).unwrap()),
        ("a link", &|p| symlink("/etc/passwd", p).unwrap()),
        ("a device", &|p| fs::rename(b.home.path("null"), p).unwrap()),
    ];
    for (what, put) in &cases[..3 + usize::from(devices)] {
        for (id, place) in [("f", "file"), ("d", "directory")] {
            if (*what, id) == ("a directory", "d") || (*what, id) == ("a device", "d") {
                continue;
            }
            let (path, aside) = (b.home.path(id), b.home.path("aside"));
            fs::rename(&path, &aside).unwrap();
            put(&path);
            let out = verify(&b, &[]);
            assert_eq!((out.code, found(&out)), (1, vec![format!("corrupt {id}")]), "{what}");
            assert!(out.out().contains(&format!("{what} in place of a {place}")), "{}", out.out());
            if path.is_dir() {
                fs::remove_dir(&path).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
            }
            fs::rename(&aside, &path).unwrap();
        }
    }
}

#[test]
fn a_tree_that_grows_is_healthy_and_one_that_is_gutted_is_not() {
    let mut b = Box::new();
    b.tree(
        "repo",
        &[("ggml/core.c", "int x;\n", 0o644), ("a/SKILL.md", "a", 0o644), ("b/@s/SKILL.md", "b", 0o644)],
    );
    let options = TreeOptions {
        sentinels: vec![b"ggml/core.c".to_vec()],
        count: vec![b"SKILL.md".to_vec()],
        ..TreeOptions::default()
    };
    b.add_tree("repo", b"repo", 2, None, &[], &options).sign();
    b.tree("repo", &[("new/file", "more", 0o644), ("c/SKILL.md", "c", 0o644)]);
    assert_eq!(verify(&b, &[]).code, 0, "it grew");
    fs::write(b.home.path("repo/ggml/core.c"), "").unwrap();
    let out = verify(&b, &[]);
    assert!(out.out().contains("sentinel empty: ggml/core.c"), "{}", out.out());
    fs::remove_file(b.home.path("repo/ggml/core.c")).unwrap();
    let out = verify(&b, &[]);
    assert!(out.out().contains("sentinel missing: ggml/core.c"), "{}", out.out());
    b.tree("repo", &[("ggml/core.c", "int x;\n", 0o644)]);
    fs::rename(b.home.path("repo/b/@s/SKILL.md"), b.home.path("repo/b/@s/README.md")).unwrap();
    assert_eq!(verify(&b, &[]).code, 0, "another of that name came");
    fs::rename(b.home.path("repo/c/SKILL.md"), b.home.path("repo/c/other")).unwrap();
    let out = verify(&b, &[]);
    assert!(out.out().contains("1 files named 'SKILL.md' (want at least 2)"), "{}", out.out());
}

#[test]
fn what_may_not_be_read_is_unknown_and_never_missing() {
    let mut b = Box::new();
    b.home.file("shut/f", "content");
    b.home.file("tree/in/x", "x");
    b.home.file("secret", "y");
    let hash = TreeOptions { hash: true, jobs: 1, ..TreeOptions::default() };
    b.add("f", b"shut/f", 1, None, &[]).add("secret", b"secret", 1, None, &[]);
    b.add_tree("tree", b"tree", 2, None, &[], &hash).add("shut", b"shut", 2, None, &[]).sign();
    let manifest = b.home.file("copy.jsonl", b.manifest.to_bytes());
    chmod(&manifest, 0o644);
    for (path, mode) in [("shut", 0o000), ("tree/in", 0o000), ("secret", 0o000)] {
        chmod(&b.home.path(path), mode);
    }
    // Root reads everything: another user has to look.
    let root = fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t");
    let mut command = if root {
        let mut command = b.home.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", VERIFY]);
        command
    } else {
        b.home.command(VERIFY)
    };
    let out = run(command.arg("--manifest").arg(&manifest));
    for (path, mode) in [("shut", 0o755), ("tree/in", 0o755), ("secret", 0o644)] {
        chmod(&b.home.path(path), mode);
    }
    if root && (out.err().contains("setpriv") || out.code == 127) {
        eprintln!("skipped: setpriv cannot become another user: {}", out.err());
        return;
    }
    let mut seen = found(&out);
    seen.sort();
    assert_eq!(out.code, 1, "{}", out.err());
    // A mode was changed where it could be seen; what stands behind could not.
    seen.retain(|s| s != "stripped secret");
    assert_eq!(seen, ["unknown f", "unknown secret", "unknown shut", "unknown tree"], "{}", out.out());
}

#[test]
fn needs_that_cannot_be_met_are_named_while_the_disk_is_healthy() {
    let mut b = Box::new();
    for id in ["a", "b", "c"] {
        b.home.file(id, id);
    }
    b.add("a", b"a", 0, None, &["b"]).add("b", b"b", 0, None, &["a"]).add("c", b"c", 0, None, &["gone"]);
    b.sign();
    let out = verify(&b, &[]);
    let said: Vec<_> = out.out().lines().skip(3).map(str::to_owned).collect();
    assert_eq!((out.code, found(&out).len()), (1, 0), "{}", out.out());
    assert_eq!(
        said,
        [
            "degraded\tmanifest\tneeds\tcycle of needs: a -> b -> a",
            "degraded\tmanifest\tneeds\tc needs 'gone', which no entry is",
        ]
    );
    assert!(
        out.err().starts_with("hint: give one of them other needs: swr add PATH --needs"),
        "{}",
        out.err()
    );
    let only = verify(&b, &["--only", "c"]);
    assert_eq!((only.code, only.out().lines().count()), (1, 2), "{}", only.out());
    let mut fine = Box::new();
    fine.home.file("a", "a");
    fine.home.file("b", "b");
    fine.add("a", b"a", 0, None, &["b"]).add("b", b"b", 0, None, &[]).sign();
    assert_eq!((verify(&fine, &[]).code, verify(&fine, &[]).err().as_str()), (0, ""));
}

#[test]
fn a_manifest_of_a_newer_version_is_refused_and_nothing_called_damaged() {
    let b = Box::new();
    b.write(b"{\"swr\":2,\"seq\":1,\"fresh\":true}\n{\"id\":\"f\",\"unheard\":\"of\"}\n");
    let out = verify(&b, &[]);
    let said = "bad\tmanifest\tmanifest\tthe manifest is unusable: line 1: version 2, and this swr reads version 1\n";
    assert_eq!((out.code, out.out().as_str()), (4, said));
    assert!(out.err().starts_with("hint: run the toolkit that wrote it"), "{}", out.err());
}
