//! `gguf-verify` at its command line: operands, pins, streams, and what is in the place of a model.
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

#[path = "vectors/gguf/corpus.rs"]
mod corpus;
#[path = "vectors/gguf/pinned.rs"]
mod pinned;
mod private_home;

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::{ffi::OsStr, fs};

use pinned::{manifest, sha256, tool};
use private_home::*;

/// The states and subjects of all lines.
fn lines(output: &Output) -> Vec<(String, String)> {
    let field = |line: &str, n| line.split('\t').nth(n).unwrap_or("").to_owned();
    output.out().lines().map(|line| (field(line, 0), field(line, 2))).collect()
}

fn pair(state: &str, subject: &str) -> (String, String) {
    (state.to_owned(), subject.to_owned())
}

#[test]
fn without_operands_every_role_is_checked_but_test_roles() {
    let home = Home::new();
    let good = corpus::good();
    let file = ("b.gguf", good.len());
    manifest(
        &home,
        &[("one", "a.gguf", 10, None), ("two", file.0, file.1, None), ("test3", "c.gguf", 1, None)],
    );
    home.file("models/b.gguf", &good);
    let output = run(&mut tool(&home));
    assert_eq!(output.code, 3);
    assert_eq!(lines(&output), [pair("missing", "one"), pair("ok", "two")]);
    assert_eq!(output.err(), "");
    assert!(output.out().contains("models/a.gguf"), "{}", output.out());

    let output = run(tool(&home).args(["test3", "two"]));
    assert_eq!(lines(&output), [pair("missing", "test3"), pair("ok", "two")]);
    assert_eq!(run(tool(&home).arg("two")).code, 0);
}

#[test]
fn a_role_wins_over_a_file_of_its_name_and_a_slash_makes_a_path() {
    let home = Home::new();
    manifest(&home, &[("one", "a.gguf", 10, None)]);
    home.file("one", corpus::good());
    assert_eq!(run(tool(&home).arg("one")).field(1), "missing");
    assert_eq!(run(tool(&home).arg("./one")).field(1), "ok");
    assert_eq!(run(tool(&home).args(["--", "./one"])).field(1), "ok");
    let output = run(tool(&home).arg("onee"));
    assert_eq!((output.code, output.field(1)), (3, "missing".into()));
    assert!(output.field(4).contains("roles are one"), "{}", output.out());
}

#[test]
fn a_path_is_held_against_the_pin_of_its_file_name_unless_told_otherwise() {
    let home = Home::new();
    let good = corpus::good();
    let sha = sha256(&good);
    manifest(&home, &[("one", "a.gguf", good.len() + 1, Some(&"0".repeat(64)))]);
    home.file("else/a.gguf", &good);
    home.file("else/b.gguf", &good);
    let output = run(tool(&home).arg("else/a.gguf"));
    assert_eq!((output.code, output.field(1)), (3, "corrupt".into()));
    assert!(output.field(4).contains("pinned are 483617"), "{}", output.out());
    assert_eq!(run(tool(&home).arg("else/b.gguf")).code, 0);
    for (option, value, code) in [
        ("--bytes", "483616", 0),
        ("--bytes", "483615", 3),
        ("--sha256", sha.as_str(), 0),
        ("--sha256", &"1".repeat(64), 3),
    ] {
        let output = run(tool(&home).args([option, value, "else/a.gguf"]));
        assert_eq!(output.code, code, "{option} {value}: {}", output.out());
    }
    let output = run(tool(&home).args(["--bytes=483616", "--sha256", &sha, "else/b.gguf"]));
    assert!(output.field(4).starts_with("verified: sha256"), "{}", output.out());
}

#[test]
fn a_hash_is_read_only_when_asked_for_and_verified_only_said_of_it() {
    let home = Home::new();
    let good = corpus::good();
    let sha = sha256(&good);
    manifest(&home, &[("one", "a.gguf", good.len(), Some(&sha)), ("two", "b.gguf", good.len(), None)]);
    home.file("models/a.gguf", &good);
    home.file("models/b.gguf", &good);
    let shallow = run(tool(&home).arg("one"));
    assert!(shallow.field(4).contains("not hashed") && !shallow.out().contains("verified"));
    for deep in [
        run(tool(&home).args(["--deep", "one"])),
        run(tool(&home).env("SELFHEAL_DEEP_VERIFY", "1").arg("one")),
    ] {
        assert_eq!(deep.code, 0);
        assert!(deep.field(4).starts_with("verified: sha256 "), "{}", deep.out());
    }
    let unpinned = run(tool(&home).args(["--deep", "two"]));
    assert_eq!(unpinned.code, 0);
    assert!(
        unpinned.field(4).contains(&format!("sha256 {sha}, no pin")) && !unpinned.out().contains("verified")
    );
}

#[test]
fn a_pin_that_names_a_page_is_bad_and_not_fetched_again() {
    let home = Home::new();
    let page = b"<html>404</html>";
    manifest(&home, &[("one", "a.gguf", page.len(), Some(&sha256(page)))]);
    home.file("models/a.gguf", page);
    assert_eq!(run(tool(&home).arg("one")).field(1), "corrupt");
    let deep = run(tool(&home).args(["--deep", "one"]));
    assert_eq!((deep.code, deep.field(1)), (3, "bad".into()));
    assert!(deep.field(4).contains("the pin itself"), "{}", deep.out());
}

#[test]
fn a_type_newer_than_this_tool_is_refused_and_a_matching_hash_accepts_it() {
    let home = Home::new();
    let path = corpus::dir().join("dv-ti-type-63.gguf");
    let sha = sha256(&fs::read(&path).unwrap());
    let output = run(tool(&home).arg(&path));
    assert_eq!((output.code, output.field(1)), (3, "bad".into()));
    assert!(output.field(4).contains("unknown type 99, newer than this tool"), "{}", output.out());
    let output = run(tool(&home).args(["--sha256", &sha]).arg(&path));
    assert_eq!((output.code, output.field(1)), (0, "ok".into()));
    assert!(output.field(4).contains("structure not checked"), "{}", output.out());
}

#[test]
fn what_stands_in_the_place_of_a_model_is_named_and_never_waited_for() {
    let home = Home::new();
    fs::create_dir(home.path("dir")).unwrap();
    assert!(run(home.command("mkfifo").arg("fifo")).code == 0);
    let _socket = UnixListener::bind(home.path("socket")).unwrap();
    symlink("loop", home.path("loop")).unwrap();
    symlink("nowhere", home.path("dangling")).unwrap();
    home.file("file", "x");
    home.file("good", corpus::good());
    symlink("good", home.path("link")).unwrap();
    for (path, code, state, cause) in [
        ("./dir", 3, "corrupt", "a directory instead of a model"),
        ("./fifo", 3, "corrupt", "a FIFO instead of a model"),
        ("./socket", 3, "corrupt", "a socket instead of a model"),
        ("/dev/zero", 3, "corrupt", "a device instead of a model"),
        ("./loop", 5, "unknown", "cannot be read"),
        ("./dangling", 3, "missing", "is a link to 'nowhere', which does not exist"),
        ("./none", 3, "missing", "no such file"),
        ("./file/below", 3, "missing", "not a directory"),
        ("./link", 0, "ok", "structure ok"),
    ] {
        let output = run(tool(&home).arg(path));
        assert_eq!((output.code, output.field(1).as_str()), (code, state), "{path}: {}", output.out());
        assert!(output.field(4).contains(cause), "{path}: {}", output.out());
        assert_eq!(output.out().lines().count(), 1);
    }
}

#[test]
fn a_model_that_may_not_be_read_is_unknown() {
    let home = Home::new();
    let path = home.file("secret.gguf", corpus::good());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let own = home.path("gguf-verify");
    copy_program(env!("CARGO_BIN_EXE_gguf-verify"), &own);
    let mut command = home.command(&own);
    command.arg("./secret.gguf");
    // Root reads everything, so the tool runs as nobody then.
    let mut id = home.command("id");
    if run(id.arg("-u")).out().trim() == "0" {
        assert_eq!(run(tool(&home).arg("./secret.gguf")).code, 0);
        command.uid(65534).gid(65534);
    }
    let output = run(&mut command);
    assert_eq!((output.code, output.field(1)), (5, "unknown".into()), "{}", output.err());
    assert!(output.field(4).contains("permission denied"), "{}", output.out());
}

#[test]
fn json_has_the_same_four_fields_and_the_same_code() {
    let home = Home::new();
    home.file("a.gguf", "Entry not found");
    let plain = run(tool(&home).arg("./a.gguf"));
    let json = run(tool(&home).args(["--json", "./a.gguf"]));
    assert_eq!((plain.code, json.code), (3, 3));
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    for (n, key) in ["state", "kind", "subject", "detail"].into_iter().enumerate() {
        assert_eq!(value[key].as_str(), Some(plain.field(n + 1).as_str()));
    }
}

#[test]
fn a_name_with_newline_and_tab_stays_one_line() {
    let home = Home::new();
    let name = OsStr::from_bytes(b"./a\n\tb\\\xff.gguf");
    fs::write(home.path("x"), corpus::good()).unwrap();
    fs::rename(home.path("x"), home.dir.join(name)).unwrap();
    for (verb, code) in [(name, 0), (OsStr::from_bytes(b"./missing\nok\tmodel\tx"), 3)] {
        let output = run(tool(&home).arg(verb));
        assert_eq!(output.code, code);
        assert_eq!(output.stdout.split(|b| *b == b'\n').count(), 2, "{}", output.out());
        assert_eq!(output.stdout.split(|b| *b == b'\t').count(), 4, "{}", output.out());
    }
    let subject = run(tool(&home).arg(name)).stdout.split(|b| *b == b'\t').nth(2).unwrap().to_vec();
    assert_eq!(subject, b"./a\\n\\tb\\\\\xff.gguf");
}

#[test]
fn a_closed_or_full_stdout_ends_with_the_contracts_number() {
    let home = Home::new();
    home.file("a.gguf", corpus::good());
    let shell = |script: &str| {
        let mut command = home.command("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_gguf-verify")]);
        run(&mut command)
    };
    let full = shell("\"$0\" ./a.gguf >/dev/full");
    assert_eq!(full.code, 74);
    assert!(
        full.err().starts_with("gguf-verify: cannot write to standard output: no space"),
        "{}",
        full.err()
    );
    let closed = shell("\"$0\" ./a.gguf >&-");
    assert_eq!(closed.code, 74);
    // 400 verdicts are more than a pipe holds when each path is long.
    let many =
        "set --; n=0; while [ $n -lt 400 ]; do set -- \"$@\" \"./$(printf %0200d $n)\"; n=$((n+1)); done; ";
    let head = shell(&format!("{many} {{ \"$0\" \"$@\"; echo \"rc $?\" >&2; }} | head -1"));
    assert_eq!(head.out().lines().count(), 1);
    assert_eq!(head.err(), "rc 141\n");
}

#[test]
fn wrong_usage_is_64_with_a_hint() {
    let home = Home::new();
    for args in [
        &["--no-such"][..],
        &["-x"],
        &["--bytes"],
        &["--bytes", "many", "./a"],
        &["--bytes", "1"],
        &["--bytes", "1", "./a", "./b"],
        &["--sha256", "abc", "./a"],
        &["--deep=yes", "./a"],
    ] {
        let output = run(tool(&home).args(args));
        assert_eq!((output.code, output.out()), (64, String::new()), "{args:?}");
        assert!(output.err().contains("hint: gguf-verify --help"), "{args:?}: {}", output.err());
    }
}

#[test]
fn without_a_manifest_a_path_is_checked_and_a_role_is_69() {
    let home = Home::new();
    home.file("a.gguf", corpus::good());
    assert_eq!(run(tool(&home).arg("a.gguf")).code, 0);
    // The program's own directory may hold a manifest of the build: look from elsewhere.
    let own = home.path("bin/gguf-verify");
    fs::create_dir(home.path("bin")).unwrap();
    copy_program(env!("CARGO_BIN_EXE_gguf-verify"), &own);
    let output = run(home.command(&own).arg("scout"));
    assert_eq!(output.code, 69);
    assert_eq!(output.err().lines().count(), 2, "{}", output.err());
    assert_eq!(run(&mut home.command(&own)).code, 69);

    home.file("manifest.json", "{\"version\":1");
    let output = run(tool(&home).arg("./a.gguf"));
    assert_eq!(output.code, 0);
    assert!(output.err().contains("no pins are known"), "{}", output.err());
    assert_eq!(run(tool(&home).arg("scout")).code, 74);
}

#[test]
fn nothing_is_ever_written() {
    let home = Home::new();
    let good = corpus::good();
    manifest(&home, &[("one", "a.gguf", good.len(), Some(&sha256(&good))), ("two", "b.gguf", 9, None)]);
    home.file("models/a.gguf", &good);
    home.file("models/b.gguf", "<html>");
    let before = home.census();
    for mode in ["check", "fix"] {
        let output = run(tool(&home).env("SELFHEAL_MODE", mode).arg("--deep"));
        assert_eq!(output.code, 3);
    }
    assert_eq!(home.census(), before);
}

#[test]
fn help_and_version_end_0() {
    let home = Home::new();
    let help = run(tool(&home).arg("--help"));
    assert_eq!(help.code, 0);
    assert!(help.out().starts_with("gguf-verify - "));
    let version = run(tool(&home).args(["--version", "--no-such"]));
    assert_eq!(version.code, 0);
    assert!(version.out().starts_with("gguf-verify "));
}
