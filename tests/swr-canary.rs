//! `swr-canary` as a process: what is planted is read back, each sort of loss is told, and nothing foreign is removed.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use private_home::{Home, Output, run};

fn canary(home: &Home, args: &[&str]) -> Output {
    run(home.command(env!("CARGO_BIN_EXE_swr-canary")).args(args))
}

fn planted() -> Home {
    let home = Home::new();
    let out = canary(&home, &["plant"]);
    assert_eq!(out.code, 0, "{}", out.err());
    home
}

#[test]
fn what_is_planted_is_kept_and_removed_without_a_trace() {
    let home = planted();
    let out = canary(&home, &["read"]);
    assert_eq!(out.code, 0, "{}", out.out());
    assert!(out.out().lines().count() > 300 && out.out().lines().all(|l| l.starts_with("ok\tcanary\t")));
    assert_eq!(canary(&home, &["read", "--json"]).out().lines().count(), out.out().lines().count());
    assert_eq!(canary(&home, &["plant"]).code, 64, "twice");
    for (path, mode) in [(".swr/canary", 0o700), (".swr/canary/planted.json", 0o600)] {
        assert_eq!(fs::metadata(home.path(path)).unwrap().permissions().mode() & 0o7777, mode, "{path}");
    }
    assert_eq!(canary(&home, &["remove"]).code, 0);
    assert!(!home.path(".swr-canary").exists());
    assert_eq!(canary(&home, &["remove"]).code, 0, "nothing to remove is no error");
    assert_eq!(canary(&home, &["read"]).code, 64);
    assert_eq!(canary(&home, &["plant", "--dir", "else where"]).code, 0);
    assert!(home.path("else where/size-1K").exists());
}

/// What happens to a probe.
type Loss<'a> = &'a dyn Fn(&Path);

#[test]
fn each_sort_of_loss_is_told_and_the_table_counts_it() {
    let home = planted();
    let at = |name: &str| home.path(".swr-canary").join(name);
    let losses: [(&str, &str, &str, Loss<'_>); 8] = [
        ("size-32M", "missing", "gone", &|p| fs::remove_file(p).unwrap()),
        ("size-8M", "corrupt", "bytes, planted were", &|p| {
            fs::OpenOptions::new().write(true).open(p).unwrap().set_len(9).unwrap();
        }),
        ("suffix.sh", "corrupt", "content changed", &|p| fs::write(p, [0; 512]).unwrap()),
        ("mode-0755", "stripped", "mode 0644", &|p| {
            fs::set_permissions(p, fs::Permissions::from_mode(0o644)).unwrap();
        }),
        ("in/node_modules/probe", "missing", "gone", &|p| fs::remove_dir_all(p.parent().unwrap()).unwrap()),
        ("link", "corrupt", "another type", &|p| {
            fs::remove_file(p).unwrap();
            fs::write(p, "copy").unwrap();
        }),
        ("link-dangling", "corrupt", "points elsewhere", &|p| {
            fs::remove_file(p).unwrap();
            symlink("else", p).unwrap();
        }),
        ("empty", "missing", "gone", &|p| fs::remove_dir(p).unwrap()),
    ];
    for (name, .., loss) in &losses {
        loss(&at(name));
    }
    let out = canary(&home, &["read"]);
    let text = out.out();
    let lost: Vec<_> = text.lines().filter(|l| !l.starts_with("ok\t")).collect();
    assert_eq!((out.code, lost.len()), (1, losses.len()), "{lost:?}");
    for (name, state, words, _) in &losses {
        let line = lost.iter().find(|l| l.split('\t').nth(2) == Some(*name)).unwrap();
        assert!(line.starts_with(&format!("{state}\tcanary\t")) && line.contains(words), "{line}");
    }
    let table = canary(&home, &["table"]);
    assert_eq!(table.code, 0);
    for row in [
        "size\t32M\t1\t0\t0",
        "size\t1K\t1\t1\t0",
        "mode\t0755\t1\t1\t1",
        "directory\tnode_modules\t1\t0\t0",
        "count\tof 300\t300\t300\t0",
        "link\tpresent\t1\t0\t0",
        "empty\tdirectory\t1\t0\t0",
    ] {
        assert!(table.out().lines().any(|l| l == row), "{row}: {}", table.out());
    }
    // What is not as planted may be somebody's: it stays.
    home.file(".swr-canary/many/mine", "user work");
    let out = canary(&home, &["remove"]);
    assert!(out.code == 0 && out.err().contains("4 probes were changed"), "{}", out.err());
    let left: Vec<_> = ["size-8M", "suffix.sh", "link", "many/mine"].map(|n| at(n).exists()).to_vec();
    assert_eq!(left, [true; 4]);
    assert!(!at("many/000").exists() && !at("mode-0755").exists());
}

#[test]
fn a_directory_that_is_gone_takes_every_probe_with_it() {
    let home = planted();
    fs::rename(home.path(".swr-canary"), home.path("away")).unwrap();
    let out = canary(&home, &["read"]);
    assert!(out.code == 1 && out.out().lines().all(|l| l.starts_with("missing\t")), "{}", out.out());
    assert_eq!(canary(&home, &["remove"]).code, 0);
}

#[test]
fn nothing_is_planted_over_something_or_without_a_note() {
    let home = Home::new();
    home.file("mine/file", "user work");
    assert_eq!(canary(&home, &["plant", "--dir", "mine"]).code, 74);
    assert_eq!(fs::read_dir(home.path("mine")).unwrap().count(), 1);
    let mut command = home.command(env!("CARGO_BIN_EXE_swr-canary"));
    assert_eq!(run(command.env("SWR_HOME", "/proc/swr").arg("plant")).code, 74);
    assert!(!home.path(".swr-canary").exists());
    for args in [&[][..], &["sing"], &["plant", "twice"], &["plant", "--what"]] {
        assert_eq!(canary(&home, args).code, 64, "{args:?}");
    }
}
