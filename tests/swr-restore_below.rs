//! `swr-restore` and entries that lie below another one: a repair of the tree takes none of them away.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;
mod swr_box;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;

use private_home::{Output, appears, run};
use swr_box::{Box, chmod};
use workspace::capture::TreeOptions;

const RESTORE: &str = env!("CARGO_BIN_EXE_swr-restore");
const BELOW: [&str; 3] = ["proj/deploy.sh", "proj/.aws/deep/credentials", "proj/build/bin/tool"];

fn restore(b: &Box, args: &[&str]) -> Output {
    run(b.home.command(RESTORE).args(args))
}

/// A tree that lost a file, with three healthy entries of their own below it.
fn nested(recipe: &str) -> Box {
    nested_in(recipe, false)
}

/// The same; whether the tree also records the file below that is an entry of its own.
fn nested_in(recipe: &str, counts_deploy: bool) -> Box {
    let mut b = Box::new();
    b.tree(
        "proj",
        &[
            ("src/a.c", "int a;\n", 0o644),
            ("deploy.sh", "#!/bin/sh\n", 0o755),
            (".aws/deep/credentials", "key\n", 0o600),
            ("build/bin/tool", "binary", 0o755),
        ],
    );
    chmod(&b.home.path("proj/.aws"), 0o700);
    chmod(&b.home.path("proj/.aws/deep"), 0o710);
    b.home.file("outside/deep/credentials", "not ours\n");
    let source = TreeOptions { sentinels: vec![b"src/a.c".to_vec()], jobs: 1, ..TreeOptions::default() };
    b.add("deploy", b"proj/deploy.sh", 1, None, &[]);
    b.add("aws", b"proj/.aws/deep/credentials", 0, None, &[]);
    b.add_tree("proj", b"proj", 2, Some(recipe), &[], &source);
    b.add("bin", b"proj/build/bin", 4, Some("echo built >>builds; exit 1"), &["proj"]);
    let mut proj = b.manifest.entry("proj").unwrap().clone();
    if let workspace::Shape::Tree { files, bytes, members, .. } = &mut proj.shape {
        (*files, *bytes) = (1, 1);
        members.retain(|m| counts_deploy || m.path != b"deploy.sh");
    }
    b.manifest.put(proj);
    b.sign();
    fs::remove_file(b.home.path("proj/src/a.c")).unwrap();
    b
}

fn mode(b: &Box, path: &str) -> u32 {
    fs::symlink_metadata(b.home.path(path)).unwrap().permissions().mode() & 0o7777
}

fn all_there(b: &Box, what: &str) {
    let modes = BELOW.map(|path| {
        assert!(b.home.path(path).is_file(), "{what}: {path} is gone");
        mode(b, path)
    });
    assert_eq!(modes, [0o755, 0o600, 0o755], "{what}");
    assert_eq!((mode(b, "proj/.aws"), mode(b, "proj/.aws/deep")), (0o700, 0o710), "{what}");
    assert_eq!(fs::read_to_string(b.home.path("proj/.aws/deep/credentials")).unwrap(), "key\n", "{what}");
    assert_eq!(fs::read_to_string(b.home.path("outside/deep/credentials")).unwrap(), "not ours\n", "{what}");
    assert!(!b.home.path("builds").exists(), "{what}: a healthy build was built again");
}

#[test]
fn a_repaired_tree_does_not_take_the_healthy_entries_below_it_away() {
    let whole = "mkdir -p proj/src && echo 'int a;' >proj/src/a.c";
    for (what, in_the_way) in [
        ("nothing in the way", ""),
        ("other content", "; echo upstream >proj/deploy.sh; mkdir proj/build"),
        ("a file in place of a directory", "; echo x >proj/build; echo x >proj/.aws"),
        ("a link out of the tree", "; ln -s ../outside proj/.aws; ln -s ../../outside proj/build"),
        ("a directory in place of a file", "; mkdir -p proj/deploy.sh/x"),
    ] {
        let b = nested(&format!("{whole}{in_the_way}"));
        let out = restore(&b, &[]);
        assert_eq!((out.code, out.out().lines().count()), (0, 1), "{what}: {}{}", out.out(), out.err());
        assert!(out.out().starts_with("healed\ttree\tproj\t"), "{what}: {}", out.out());
        assert!(out.out().contains("; 3 entries below it put back; kept aside: "), "{what}: {}", out.out());
        all_there(&b, what);
        assert_eq!(restore(&b, &[]).out(), "", "{what}: nothing is left to do");
    }
}

#[test]
fn entries_below_a_tree_whose_recipe_fails_or_makes_nothing_stay() {
    for (what, recipe, code) in [
        ("fails", "mkdir -p proj/.aws; exit 7", 2),
        ("makes nothing", "true", 3),
        ("makes a file", "echo >proj", 3),
    ] {
        let b = nested(recipe);
        let out = restore(&b, &[]);
        assert_eq!(out.code, code, "{what}: {}{}", out.out(), out.err());
        all_there(&b, what);
    }
}

#[test]
fn a_damaged_entry_below_is_not_put_back_in_place_of_what_the_recipe_made() {
    let b = nested(
        "mkdir -p proj/src && echo 'int a;' >proj/src/a.c && printf '#!/bin/sh\\n' >proj/deploy.sh && chmod +x proj/deploy.sh",
    );
    fs::write(b.home.path("proj/deploy.sh"), "damaged").unwrap();
    let out = restore(&b, &["--only", "proj"]);
    assert_eq!(out.code, 0, "{}{}", out.out(), out.err());
    assert_eq!(fs::read_to_string(b.home.path("proj/deploy.sh")).unwrap(), "#!/bin/sh\n");
    assert!(out.out().contains("; 2 entries below it put back"), "{}", out.out());
}

#[test]
fn entries_below_a_tree_come_back_after_a_kill_in_the_middle_of_its_recipe() {
    for (what, again, args) in [
        ("the recipe ends well then", "mkdir -p proj/src && echo 'int a;' >proj/src/a.c", &["--resume"][..]),
        ("it fails then", "exit 7", &["--resume"]),
        ("killed between two entries", "exit 7", &["--resume"]),
        ("without --resume", "exit 7", &[]),
        ("another entry is asked for", "exit 7", &["--only", "deploy"]),
    ] {
        let b = nested(&format!(
            "mkdir -p proj; if test -e again; then {again}; else echo x >proj/.aws; touch started; sleep 60; fi"
        ));
        let mut first = b.home.command(RESTORE).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        appears(&b.home.path("started"));
        first.kill().unwrap();
        first.wait().unwrap();
        assert!(!b.home.path("proj/deploy.sh").exists(), "{what}: killed in between");
        if what == "killed between two entries" {
            let aside = fs::read_dir(b.home.path(".swr/quarantine")).unwrap().next().unwrap().unwrap().path();
            fs::rename(aside.join("proj/deploy.sh"), b.home.path("proj/deploy.sh")).unwrap();
        }
        b.home.file("again", "");
        let out = restore(&b, args);
        assert!(out.err().contains("interrupted"), "{what}: {}", out.err());
        all_there(&b, what);
        let first_word = out.field(1);
        let said = if args == ["--only", "deploy"] {
            ""
        } else if again == "exit 7" {
            "failed"
        } else {
            "healed"
        };
        assert_eq!(first_word, said, "{what}: {}{}", out.out(), out.err());
    }
}

#[test]
fn an_embedded_file_below_comes_back_in_the_turn_in_which_its_tree_does() {
    for tier in [1, 4] {
        let mut b = nested_in("mkdir -p proj/src && echo 'int a;' >proj/src/a.c", true);
        let mut deploy = b.manifest.entry("deploy").unwrap().clone();
        if let workspace::Shape::File { escrow, .. } = &mut deploy.shape {
            *escrow = workspace::escrow::pack(b"#!/bin/sh\n");
        }
        deploy.tier = tier;
        b.manifest.put(deploy);
        b.sign();
        fs::remove_file(b.home.path("proj/deploy.sh")).unwrap();
        let out = restore(&b, &[]);
        assert_eq!(out.code, 0, "{}{}", out.out(), out.err());
        all_there(&b, "embedded");
        assert_eq!(restore(&b, &[]).out(), "", "tier {tier}");
    }
}

#[test]
fn a_missing_entry_without_a_recipe_is_told_where_its_good_copy_stands_aside() {
    let mut b = nested("true");
    fs::remove_file(b.home.path("proj/deploy.sh")).unwrap();
    b.home.file("proj/src/a.c", "int a;\n");
    let mut proj = b.manifest.entry("proj").unwrap().clone();
    proj.id = "pro-j".into();
    b.manifest.lines.retain(|l| l.entry.id != "proj");
    b.manifest.put(proj);
    b.manifest.lines.retain(|l| l.entry.id != "bin");
    b.sign();
    let aside = |stamp: &str, text: &str| {
        let path = b.home.file(&format!(".swr/quarantine/{stamp}/proj/deploy.sh"), text);
        chmod(&path, 0o755);
        path
    };
    aside("20260101T000000Z-pro-j-1", "#!/bin/sh\n");
    let newest = aside("20260102T000000Z-pro-j-1", "#!/bin/sh\n");
    aside("20260103T000000Z-pro-j-1", "damaged");
    aside("20260104T000000Z-aws-1", "#!/bin/sh\n");
    symlink("20260101T000000Z-pro-j-1", b.home.path(".swr/quarantine/odd")).unwrap();
    for args in [&[][..], &["--dry-run"]] {
        let out = restore(&b, args);
        assert_eq!((out.code, out.out().lines().count()), (2, 1), "{}{}", out.out(), out.err());
        let hint = format!("hint: a good copy stands aside: mv '{}' ", newest.display());
        assert!(out.err().contains(&hint), "{}", out.err());
    }
}
