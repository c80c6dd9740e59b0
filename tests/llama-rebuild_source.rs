//! llama-rebuild: which source it trusts, what a gutted tree costs, and what an archive must prove.
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

mod fake_source;
mod private_home;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::Duration;

use fake_source::*;
use private_home::*;

const TRUSTED: &str = "https://github.com/ggml-org/llama.cpp";

#[test]
fn only_the_trusted_remote_is_built() {
    let home = workshop();
    let dir = checkout(&home, "llama.cpp", TRUSTED);
    let cases = [
        ("https://github.com/ggml-org/llama.cpp.git", 5),
        ("https://user:s3cret@github.com/ggml-org/llama.cpp", 5),
        ("git@github.com:ggml-org/llama.cpp.git", 5),
        ("ssh://git@github.com/ggml-org/llama.cpp", 5),
        ("https://GitHub.com:443/GGML-org/llama.cpp/", 5),
        ("https://user:s3cret@github.com.evil.org/ggml-org/llama.cpp", 4),
        ("https://github.com/ggml-org/llama.cpp-evil", 4),
        ("https://s3cret@github.com/evil/llama.cpp", 4),
        ("https://github.com/ggml-org/llama.cpp/../../evil/llama.cpp", 4),
        ("http://github.com/ggml-org/llama.cpp", 4),
        ("git://github.com/ggml-org/llama.cpp", 4),
        ("https://github.com/ggerganov/llama.cpp", 4),
        ("/srv/llama.cpp", 4),
        ("ext::sh -c 'touch was-run'", 4),
    ];
    for (url, code) in cases {
        git(&home, &dir, &["config", "remote.origin.url", url]);
        let output = run(&mut rebuild(&home, &[]));
        expect(&output, code, if code == 5 { "would" } else { "bad" }, &[]);
        let said = output.out() + &output.err();
        assert!(!said.contains("s3cret"), "{said}");
    }
    assert!(!home.path("was-run").exists());
}

#[test]
fn what_a_remote_really_points_to_counts() {
    let home = workshop();
    let dir = checkout(&home, "llama.cpp", TRUSTED);
    git(&home, &dir, &["config", "url.https://evil.org/.insteadOf", "https://github.com/"]);
    expect(&run(&mut rebuild(&home, &[])), 4, "bad", &["https://evil.org/ggml-org/llama.cpp, is not"]);
    git(&home, &dir, &["config", "--unset", "url.https://evil.org/.insteadOf"]);
    git(&home, &dir, &["config", "url.https://github.com/.insteadOf", "gh:"]);
    git(&home, &dir, &["config", "remote.origin.url", "gh:ggml-org/llama.cpp"]);
    expect(&run(&mut rebuild(&home, &[])), 5, "would", &[]);
}

#[test]
fn a_checkout_beside_the_tag_is_reported_and_built_as_it_is() {
    let home = workshop();
    let dir = checkout(&home, "llama.cpp", TRUSTED);
    let head = git(&home, &dir, &["rev-parse", "HEAD"]);
    let drift = format!("is at {head}, not at the manifest's tag b7");
    expect(&run(&mut rebuild(&home, &[])), 5, "would", &[&drift]);
    git(&home, &dir, &["tag", "b7"]);
    let output = run(&mut rebuild(&home, &[]));
    expect(&output, 5, "would", &[]);
    assert!(!output.err().contains("not at the manifest's tag"), "{}", output.err());
}

#[test]
fn every_remote_must_be_trusted_because_the_checkout_may_be_of_any() {
    let home = workshop();
    let dir = checkout(&home, "llama.cpp", TRUSTED);
    git(&home, &dir, &["remote", "add", "fork", "https://github.com/evil/llama.cpp"]);
    expect(&run(&mut rebuild(&home, &[])), 4, "bad", &["https://github.com/evil/llama.cpp, is not"]);
}

#[test]
fn another_remote_is_built_only_when_it_is_approved() {
    let home = workshop();
    checkout(&home, "llama.cpp", "https://example.org/fork");
    let output = run(&mut rebuild(&home, &[]));
    expect(&output, 4, "bad", &["hint: SELFHEAL_LLAMA_ANY_REMOTE=1 approves"]);
    expect(&run(rebuild(&home, &[]).env("SELFHEAL_LLAMA_ANY_REMOTE", "0")), 4, "bad", &[]);
    expect(&run(rebuild(&home, &[]).env("SELFHEAL_LLAMA_ANY_REMOTE", "1")), 5, "would", &[]);
}

#[test]
fn a_tree_without_any_remote_is_refused_even_inside_a_trusted_repository() {
    let home = workshop();
    // the home itself is a trusted checkout; the tree in it is not part of what it tracks
    checkout(&home, ".", TRUSTED);
    tree(&home, "llama.cpp");
    for approved in ["0", "1"] {
        let output = run(rebuild(&home, &[]).env("SELFHEAL_LLAMA_ANY_REMOTE", approved));
        expect(&output, 4, "bad", &["has no git remote", "--from-archive"]);
    }
    // a directory that looks like a bare repository is none
    home.file("llama.cpp/config", "[remote \"origin\"]\nurl = https://github.com/ggml-org/llama.cpp\n");
    home.file("llama.cpp/HEAD", "ref: refs/heads/main\n");
    fs::create_dir_all(home.path("llama.cpp/objects")).unwrap();
    fs::create_dir_all(home.path("llama.cpp/refs")).unwrap();
    expect(&run(&mut rebuild(&home, &[])), 4, "bad", &["has no git remote"]);
}

#[test]
fn nothing_that_a_hostile_repository_configures_is_run() {
    let home = workshop();
    let dir = checkout(&home, "llama.cpp", TRUSTED);
    let canary = home.script("canary", ": >\"$HOME/was-run\"");
    let canary = canary.to_str().unwrap();
    for name in ["core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "credential.helper"] {
        git(&home, &dir, &["config", name, canary]);
    }
    git(&home, &dir, &["config", "alias.remote", &format!("!{canary}")]);
    git(&home, &dir, &["config", "alias.rev-parse", &format!("!{canary}")]);
    for hook in ["post-checkout", "pre-commit", "reference-transaction", "post-index-change"] {
        home.script(&format!("llama.cpp/.git/hooks/{hook}"), ": >\"$HOME/was-run\"");
    }
    expect(&run(&mut rebuild(&home, &[])), 5, "would", &[]);
    expect(&run(&mut fix(&home, &[])), 0, "healed", &[]);
    assert!(!home.path("was-run").exists());
}

#[test]
fn the_callers_git_variables_do_not_lead_elsewhere() {
    let home = workshop();
    checkout(&home, "llama.cpp", "https://example.org/fork");
    let good = checkout(&home, "good", TRUSTED);
    let output = run(rebuild(&home, &[]).env("GIT_DIR", good.join(".git")).env("GIT_WORK_TREE", good));
    expect(&output, 4, "bad", &["example.org/fork"]);
}

#[test]
fn a_gutted_tree_is_named_and_cloned_anew_with_the_old_one_moved_aside() {
    for (lost, emptied) in [("ggml/src/ggml.c", true), ("src/llama.cpp", false), ("CMakeLists.txt", true)] {
        let home = workshop();
        let dir = checkout(&home, "llama.cpp", TRUSTED);
        home.file("llama.cpp/my-notes", "mine");
        if emptied {
            fs::write(dir.join(lost), "").unwrap();
        } else {
            fs::remove_file(dir.join(lost)).unwrap();
        }
        manifest(&home, &upstream(&home), "");
        let census = home.census();
        let dry = run(rebuild(&home, &[]).env("SELFHEAL_LLAMA_ANY_REMOTE", "1"));
        expect(&dry, 5, "would", &["is gutted", lost, "at b7"]);
        assert_eq!(home.census(), census);
        let output = run(fix(&home, &[]).env("SELFHEAL_LLAMA_ANY_REMOTE", "1"));
        expect(&output, 0, "healed", &["is gutted", lost, "llama.cpp.aside-1", "source brought anew"]);
        assert!(dir.join(lost).metadata().unwrap().len() > 0);
        assert_eq!(fs::read(home.path("llama.cpp.aside-1/my-notes")).unwrap(), b"mine");
        expect(&run(&mut rebuild(&home, &["--status"])), 0, "ok", &[]);
    }
}

#[test]
fn a_missing_tree_is_cloned_and_only_from_where_the_manifest_says() {
    let home = workshop();
    let url = upstream(&home);
    manifest(&home, &url, "");
    expect(&run(&mut fix(&home, &[])), 4, "bad", &["the remote to clone from", "is not github.com/ggml-org"]);
    // an empty directory is a missing tree
    fs::create_dir(home.path("llama.cpp")).unwrap();
    // what a clone left that was killed; its process number cannot be any more
    home.file(".llama.cpp.4194399.tmp/half", "half");
    let output = run(fix(&home, &[]).env("SELFHEAL_LLAMA_ANY_REMOTE", "1"));
    expect(&output, 0, "healed", &["llama.cpp' is missing", "version 7", "ANY_REMOTE approves it"]);
    assert!(!home.path(".llama.cpp.4194399.tmp").exists());
    // the user's own rule may lead a trusted name elsewhere: then it is not the trusted place any more
    let home = workshop();
    let base = upstream(&home).replace("/upstream", "/");
    home.file(".gitconfig", format!("[url \"{base}\"]\n\tinsteadOf = https://github.com/ggml-org/\n"));
    expect(&run(&mut fix(&home, &[])), 4, "bad", &["the remote to clone from, file://"]);
    assert!(!home.path("llama.cpp").exists());
}

#[test]
fn a_clone_that_fails_says_why_and_leaves_nothing() {
    let home = workshop();
    manifest(&home, &format!("file://user:s3cret@{}/nowhere", home.dir.display()), "");
    checkout(&home, "llama.cpp", TRUSTED);
    fs::write(home.path("llama.cpp/src/llama.cpp"), "").unwrap();
    let output = run(fix(&home, &[]).env("SELFHEAL_LLAMA_ANY_REMOTE", "1"));
    expect(&output, 4, "failed", &["cannot be cloned", "hint: llama-rebuild --from-archive"]);
    assert!(!(output.out() + &output.err()).contains("s3cret"));
    let left: Vec<_> = fs::read_dir(&home.dir).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(!left.iter().any(|n| n.to_string_lossy().contains("llama.cpp.")), "{left:?}");
    let log = fs::read_to_string(home.path(".selfheal/selfheal.log")).unwrap();
    assert!(log.contains("rebuild-failed") && !log.contains("s3cret"), "{log}");
}

#[test]
fn a_clone_that_is_gutted_itself_replaces_nothing() {
    let home = workshop();
    let url = upstream(&home);
    git(&home, &home.path("upstream"), &["rm", "-q", "ggml/src/ggml.c"]);
    git(&home, &home.path("upstream"), &["commit", "-q", "-m", "y"]);
    git(&home, &home.path("upstream"), &["tag", "-f", "b7"]);
    manifest(&home, &url, "");
    let dir = checkout(&home, "llama.cpp", TRUSTED);
    fs::write(dir.join("src/llama.cpp"), "").unwrap();
    let output = run(fix(&home, &[]).env("SELFHEAL_LLAMA_ANY_REMOTE", "1"));
    expect(&output, 4, "bad", &["the clone is no whole tree: ggml/src/ggml.c"]);
    assert!(dir.join("ggml/src/ggml.c").exists() && !home.path("llama.cpp.aside-1").exists());
}

#[test]
fn a_gutted_fork_and_a_foreign_directory_are_not_replaced() {
    let home = workshop();
    manifest(&home, &upstream(&home), "");
    let dir = checkout(&home, "llama.cpp", "https://github.com/me/llama.cpp");
    fs::write(dir.join("src/llama.cpp"), "").unwrap();
    expect(&run(&mut fix(&home, &[])), 4, "bad", &["github.com/me/llama.cpp, is not"]);
    home.file("project/thesis.txt", "years of work");
    let mut elsewhere = fix(&home, &[]);
    elsewhere.env("SELFHEAL_LLAMA_DIR", home.path("project")).env("SELFHEAL_LLAMA_ANY_REMOTE", "1");
    expect(&run(&mut elsewhere), 4, "bad", &["holds something else"]);
    assert!(home.path("project/thesis.txt").exists() && dir.join("ggml").exists());
}

#[test]
fn a_tree_of_before_the_config_template_is_whole() {
    let home = workshop();
    let dir = checkout(&home, "llama.cpp", TRUSTED);
    fs::remove_file(dir.join("ggml/cmake/ggml-config.cmake.in")).unwrap();
    expect(&run(&mut rebuild(&home, &[])), 5, "would", &["is gutted", "ggml-config.cmake.in"]);
    let text = fs::read_to_string(dir.join("ggml/CMakeLists.txt")).unwrap();
    fs::write(
        dir.join("ggml/CMakeLists.txt"),
        text.replace("configure_file(cmake/ggml-config.cmake.in x)", ""),
    )
    .unwrap();
    fs::rename(dir.join("tools"), dir.join("examples")).unwrap();
    let output = run(&mut rebuild(&home, &[]));
    expect(&output, 5, "would", &[]);
    assert!(!output.out().contains("gutted"), "{}", output.out());
}

#[test]
fn only_a_pinned_archive_is_unpacked() {
    let home = workshop();
    let (file, pin) = archive(&home, |_| {});
    manifest(&home, TRUSTED, &pin);
    let good = fs::read(&file).unwrap();
    let other = |name: &str, bytes: &[u8]| home.file(name, bytes);
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    let longer = [good.as_slice(), b"x"].concat();
    let cases = [
        (other("cut/wrapper-7.tar.gz", &good[..good.len() - 1]), "short", "is truncated"),
        (other("html/wrapper-7.tar.gz", b"<html>"), "short", "is truncated: 6 of"),
        (other("flipped/wrapper-7.tar.gz", &flipped), "bad", "its sha256 is"),
        (other("longer.tar.gz", &longer), "bad", "no pin has"),
        (other("empty.tar.gz", b""), "bad", "no pin has 0 bytes"),
    ];
    for (file, state, words) in cases {
        for mut command in [rebuild(&home, &["--from-archive"]), fix(&home, &["--from-archive"])] {
            let output = run(command.arg(&file));
            expect(
                &output,
                4,
                state,
                &[words, "hint: pip download --no-deps --no-binary wrapper wrapper==7"],
            );
        }
    }
    assert!(!home.path(".selfheal/engine/source").exists());
    for (file, words) in
        [("nothing.tar.gz", "no such file"), ("bin", "it is a directory"), ("fifo", "it is a FIFO")]
    {
        if file == "fifo" {
            assert_eq!(run(home.command("mkfifo").arg("fifo")).code, 0);
        }
        let output = run_with(&mut fix(&home, &["--from-archive", file]), b"", Duration::from_secs(20));
        assert_eq!((output.code, output.out().as_str()), (74, ""), "{}", output.err());
        assert!(output.err().contains(words), "{}", output.err());
    }
}

#[test]
fn the_unpacked_tree_is_proven_again_without_its_archive() {
    let home = workshop();
    let (file, pin) = archive(&home, |_| {});
    manifest(&home, TRUSTED, &pin);
    let file = file.to_str().unwrap();
    let dry = run(&mut rebuild(&home, &["--from-archive", file]));
    expect(&dry, 5, "would", &["wrapper-7.tar.gz' (b7)"]);
    assert!(!home.path(".selfheal").exists());
    expect(
        &run(&mut fix(&home, &["--from-archive", file])),
        0,
        "healed",
        &["built from b7", "source brought anew"],
    );
    assert!(!home.path("llama.cpp").exists(), "the user's directory is left alone");
    // the engine is lost and the archive is gone: the unpacked tree serves
    let id = engine::cpu().id;
    let lose_engine = || fs::write(kept(&home, &id).join("llama-completion"), "").unwrap();
    lose_engine();
    fs::rename(file, home.path("elsewhere.tar.gz")).unwrap();
    let output = run(&mut fix(&home, &[]));
    expect(&output, 0, "healed", &["built from b7", "using the source unpacked from wrapper-7.tar.gz"]);
    // one byte, one mode, one file more, one file less: it is not what the archive held any more
    let source = home.path(".selfheal/engine/source/b7");
    let spoils: [&dyn Fn(); 4] = [
        &|| fs::write(source.join("src/llama.cpp"), "contenT\n").unwrap(),
        &|| {
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(source.join("common/CMakeLists.txt"), mode).unwrap();
        },
        &|| fs::write(source.join("ggml/src/more.c"), "x").unwrap(),
        &|| fs::remove_file(source.join("tools/CMakeLists.txt")).unwrap(),
    ];
    for spoil in spoils {
        spoil();
        lose_engine();
        let output = run(&mut rebuild(&home, &[]));
        expect(&output, 5, "would", &["cloned into"]);
        // given the archive, it is unpacked anew
        let again =
            run(&mut fix(&home, &["--from-archive", home.path("elsewhere.tar.gz").to_str().unwrap()]));
        expect(&again, 0, "healed", &["source brought anew"]);
    }
    // a pin that is withdrawn withdraws the tree
    lose_engine();
    let at = pin.find("\"sha256\":\"").unwrap() + 10;
    manifest(&home, TRUSTED, &pin.replace(&pin[at..at + 64], &"0".repeat(64)));
    expect(&run(&mut rebuild(&home, &[])), 5, "would", &["cloned into"]);
}

#[test]
fn an_archive_whose_tree_is_unsafe_or_gutted_is_refused_though_it_is_pinned() {
    type Spoil = fn(&Path);
    let spoils: [(&str, Spoil); 3] = [
        ("leads out of the tree", |dir| symlink("/etc/passwd", dir.join("src/link")).unwrap()),
        ("leads out of the tree", |dir| symlink("../../../x", dir.join("src/link")).unwrap()),
        ("no whole source tree: ggml/src/ggml.c", |dir| fs::write(dir.join("ggml/src/ggml.c"), "").unwrap()),
    ];
    for (words, spoil) in spoils {
        let home = workshop();
        let (file, pin) = archive(&home, spoil);
        manifest(&home, TRUSTED, &pin);
        let output = run(&mut fix(&home, &["--from-archive", file.to_str().unwrap()]));
        expect(&output, 4, "bad", &[words]);
        let left = fs::read_dir(home.path(".selfheal/engine/source")).unwrap().count();
        assert_eq!(left, 0, "{words}");
    }
}

#[test]
fn a_pinned_file_that_is_no_archive_says_so() {
    let home = workshop();
    let (_, pin) = archive(&home, |_| {});
    let text = b"this is no archive\n";
    let file = home.file("wrapper-7.tar.gz", text);
    let (sha, bytes) = files::digest::of_reader(&mut text.as_slice()).unwrap();
    let at = pin.find("\"sha256\":\"").unwrap() + 10;
    let pin = pin.replace(&pin[at..at + 64], &sha.hex());
    let size = pin.find("\"bytes\":").unwrap() + 8;
    let end = size + pin[size..].find(',').unwrap();
    manifest(&home, TRUSTED, &pin.replace(&pin[size..end], &bytes.to_string()));
    let output = run(&mut fix(&home, &["--from-archive", file.to_str().unwrap()]));
    expect(&output, 4, "failed", &["the archive cannot be unpacked", "gzip"]);
    assert_eq!(fs::read_dir(home.path(".selfheal/engine/source")).unwrap().count(), 0);
}
