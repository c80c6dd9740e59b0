//! `hf-fetch` as a process: what it says, what it leaves, and what it does not do.

mod fetching;
mod private_home;
mod servers;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use fetching::*;
use private_home::*;
use servers::Server;
use servers::behaviour::{TAG, content, good, serving};

#[test]
fn a_missing_model_comes_whole_verified_and_readable() {
    let file = content(1, 3_000_000);
    let server = serving(&file);
    let home = home_of(&file);
    let output = run(&mut fetch(&home, &server.url(), &["m"]));
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(
        (output.field(1), output.field(2), output.field(3)),
        ("healed".into(), "model".into(), "m".into())
    );
    assert!(output.field(4).contains("3000000 of 3000000 bytes") && output.field(4).ends_with("verified"));
    assert_eq!(fs::read(target(&home)).unwrap(), *file);
    assert_eq!(target(&home).metadata().unwrap().permissions().mode() & 0o777, 0o644);
    assert_eq!(listing(&home), ["m.gguf"]);
    assert_eq!(home.path(".selfheal/models").metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert!(
        server.gets()[0].path.ends_with(&format!("/o/n/resolve/{REVISION}/m.gguf")),
        "{:?}",
        server.asked()
    );
    let log = fs::read_to_string(home.path(".selfheal/selfheal.log")).unwrap();
    assert!(log.ends_with(" hf-fetch healed m\n"), "{log}");
    // Lines of progress on a pipe, at most one per tenth, and no bar.
    let (said, tenths) = (output.err(), output.err().matches(" %, ").count());
    assert!((2..=10).contains(&tenths) && said.contains(" 100 %, "), "{said}");
    assert!(!output.err().contains('\r'));
}

#[test]
fn a_model_that_is_right_is_not_asked_for() {
    let file = content(2, 5000);
    let server = serving(&file);
    let home = home_of(&file);
    home.file(".selfheal/models/m.gguf", &**file);
    for mode in ["fix", "check"] {
        let output = run(fetch(&home, &server.url(), &["m", "o/n/m.gguf"]).env("SELFHEAL_MODE", mode));
        assert_eq!(output.code, 0, "{output:?}");
        let lines: Vec<_> =
            output.out().lines().map(|l| l.split('\t').take(3).collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines, ["ok model m", "ok model m"]);
    }
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn without_consent_nothing_is_asked_and_nothing_written() {
    let file = content(3, 5000);
    let server = serving(&file);
    let home = home_of(&file);
    home.file(".selfheal/models/m.gguf", b"GGUF damaged");
    let before = home.census();
    for mode in ["", "check"] {
        let output = run(fetch(&home, &server.url(), &["m"]).env("SELFHEAL_MODE", mode));
        assert_eq!(output.code, 5, "{output:?}");
        assert_eq!(output.field(1), "would");
        assert!(
            output.err().starts_with("DRY: would fetch m, 5000 bytes, from http://127.0.0.1:"),
            "{}",
            output.err()
        );
    }
    assert_eq!(run(fetch(&home, &server.url(), &["m"]).env("SELFHEAL_MODE", "fixx")).code, 64);
    assert_eq!(home.census(), before);
    assert_eq!(server.asked().len(), 0);
}

/// Every call that could change a file, traced.
#[test]
fn a_trace_in_check_mode_shows_no_write() {
    let file = content(4, 5000);
    let server = serving(&file);
    let home = home_of(&file);
    home.file(".selfheal/models/m.gguf", b"GGUF damaged");
    let trace = home.path("trace");
    let mut command = home.command("strace");
    command.args(["-f", "-o"]).arg(&trace).args([
        "-e",
        "trace=open,openat,openat2,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,chmod,fchmod,fchmodat,link,linkat,symlink,symlinkat,truncate,ftruncate,mknod,mknodat,utimensat,connect,socket",
    ]);
    command.arg(env!("CARGO_BIN_EXE_hf-fetch")).args(["m", "--segments", "4"]);
    command.env("SELFHEAL_MANIFEST", home.path("manifest.json")).env("HF_ENDPOINT", server.url());
    command.env("SELFHEAL_TEST_HTTP", "1");
    if servers::real::program("strace").is_none() {
        return;
    }
    let output = run(&mut command);
    assert_eq!(output.code, 5, "{output:?}");
    let text = fs::read_to_string(&trace).unwrap();
    assert!(text.contains("manifest.json"), "the trace saw the program's files: {text}");
    let opens = |l: &str| {
        l.contains("open") && !l.contains("O_WRONLY") && !l.contains("O_RDWR") && !l.contains("O_CREAT")
    };
    let wrong: Vec<_> =
        text.lines().filter(|l| l.contains('(') && !opens(l)).filter(|l| !l.contains("/dev/null")).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn a_false_old_copy_stays_until_the_new_one_is_proven() {
    let file = content(5, 300_000);
    let wrong = content(6, 300_000);
    let home = home_of(&file);
    home.file(".selfheal/models/m.gguf", b"GGUF old");
    // Right size, other bytes: refused at the end, after which the old copy is still there.
    let server = serving(&wrong);
    let output = run(&mut fetch(&home, &server.url(), &["m"]));
    assert_eq!((output.code, output.field(1)), (3, "bad".into()), "{output:?}");
    assert!(output.field(4).starts_with("changed: sha256"), "{output:?}");
    assert_eq!(fs::read(target(&home)).unwrap(), b"GGUF old");
    assert_eq!(listing(&home), ["m.gguf"]);
    assert_eq!(server.gets().len(), 1, "a whole answer that is wrong is not fetched twice");
    let server = serving(&file);
    assert_eq!(run(&mut fetch(&home, &server.url(), &["m"])).code, 0);
    assert_eq!(fs::read(target(&home)).unwrap(), *file);
}

/// What the hub says of another file, and the verdict; no byte of a body is read.
#[test]
fn a_changed_upstream_costs_no_byte() {
    let file = content(7, 40_000);
    let pin = sha(&file).hex();
    let other = sha(b"other").hex();
    let table: &[(&[(&str, String)], &str)] = &[
        (&[("x-linked-size", "40001".into()), ("x-linked-etag", format!("\"{pin}\""))], "changed: "),
        (&[("x-linked-size", "40000".into()), ("x-linked-etag", format!("\"{other}\""))], "changed: "),
        (&[("x-linked-etag", format!("W/\"{other}\"")), ("content-length", "40000".into())], "changed: "),
        (&[("content-length", "39999".into())], "changed: "),
        (
            &[("content-length", "17".into()), ("content-type", "text/html; charset=utf-8".into())],
            "web page: ",
        ),
    ];
    for (headers, cause) in table {
        let headers: Vec<(String, String)> =
            headers.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect();
        let server = Server::start(move |asked, wire| {
            let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            wire.head(200, &headers);
            if asked.method == "GET" {
                wire.body(vec![0; 40_000]);
            }
        });
        let home = home_of(&file);
        let output = run(&mut fetch(&home, &server.url(), &["m"]));
        assert_eq!(output.code, 3, "{output:?}");
        assert_eq!(output.field(1), if *cause == "changed: " { "bad" } else { "failed" });
        assert!(output.field(4).starts_with(cause), "{output:?}");
        assert_eq!((server.sent(), server.gets().len()), (0, 0), "{cause}");
        assert_eq!(listing(&home), [""; 0]);
    }
}

#[test]
fn each_refusal_has_its_word_and_its_state() {
    let table = [
        (404, "bad", "not found: "),
        (410, "bad", "not found: "),
        (401, "bad", "forbidden: "),
        (403, "bad", "forbidden: "),
        (451, "bad", "forbidden: "),
        (418, "failed", "protocol: "),
    ];
    for (status, state, cause) in table {
        let server = Server::start(move |_, wire| wire.head(status, &[("content-length", "0")]));
        let home = home_of(b"x");
        let output = run(&mut fetch(&home, &server.url(), &["m"]));
        assert_eq!((output.code, output.field(1).as_str()), (3, state), "{status}: {output:?}");
        assert!(output.field(4).starts_with(cause), "{status}: {output:?}");
        assert!(output.err().lines().any(|l| l.starts_with("hint: ")), "{output:?}");
        assert_eq!(listing(&home), [""; 0]);
    }
}

#[test]
fn a_mirror_serves_a_pinned_model_when_the_endpoint_does_not() {
    let file = content(8, 20_000);
    let endpoint = Server::start(|_, wire| wire.head(404, &[]));
    let mirror = serving(&file);
    let home = home_with(&Model::of(&file), &[&format!("{}/below/", mirror.url())]);
    let output = run(&mut fetch(&home, &endpoint.url(), &["m"]));
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(mirror.gets()[0].path, format!("/below/o/n/resolve/{REVISION}/m.gguf"));
}

#[test]
fn a_model_without_repository_is_asked_of_the_endpoint_alone() {
    let file = content(9, 20_000);
    let home = home_with(&Model { repository: None, revision: None, ..Model::of(&file) }, &[]);
    let output = run(fetch(&home, "", &["m"]).env_remove("HF_ENDPOINT"));
    assert_eq!((output.code, output.field(1)), (3, "bad".into()), "{output:?}");
    assert!(output.field(4).starts_with("no source: "), "{output:?}");
    let server = serving(&file);
    assert_eq!(run(&mut fetch(&home, &server.url(), &["m"])).code, 0);
    assert_eq!(server.gets()[0].path, "/m.gguf");
}

#[test]
fn without_a_pinned_revision_main_is_asked_and_said() {
    let file = content(10, 20_000);
    let home = home_with(&Model { revision: None, ..Model::of(&file) }, &[]);
    let server = serving(&file);
    let output = run(&mut fetch(&home, &server.url(), &["m"]));
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.err().contains("no revision is pinned, asking for main"), "{}", output.err());
    assert_eq!(server.gets()[0].path, "/o/n/resolve/main/m.gguf");
}

#[test]
fn a_model_without_a_pin_is_not_fetched_from_just_anywhere() {
    let file = content(11, 20_000);
    let home = home_with(&Model { sha: None, ..Model::of(&file) }, &[]);
    let server = serving(&file);
    let output = run(&mut fetch(&home, &server.url(), &["m"]));
    assert_eq!((output.code, output.field(1)), (3, "bad".into()), "{output:?}");
    assert!(output.field(4).starts_with("no pin: ") && output.err().contains("--learn"), "{output:?}");
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn parallel_callers_fetch_once() {
    let file = content(12, 900_000);
    let slow = file.clone();
    let server = Server::start(move |asked, wire| {
        if asked.method == "HEAD" {
            return good(&slow, TAG, asked, wire);
        }
        wire.head(200, &[("content-length", &slow.len().to_string()), ("etag", TAG)]);
        for part in slow.chunks(100_000) {
            wire.body(part);
            servers::rest(30);
        }
    });
    let home = home_of(&file);
    let outputs: Vec<Output> = std::thread::scope(|scope| {
        let started: Vec<_> =
            (0..6).map(|_| scope.spawn(|| run(&mut fetch(&home, &server.url(), &["m"])))).collect();
        started.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(outputs.iter().all(|o| o.code == 0), "{outputs:?}");
    assert_eq!(outputs.iter().filter(|o| o.field(1) == "healed").count(), 1, "{outputs:?}");
    assert_eq!(server.gets().len(), 1);
    assert_eq!(fs::read(target(&home)).unwrap(), *file);
    assert_eq!(listing(&home), ["m.gguf"]);
}

#[test]
fn a_caller_that_waits_too_long_is_told_busy() {
    let file = content(13, 10_000);
    let server = Server::start(move |_, wire| {
        wire.gone(std::time::Duration::from_secs(30));
    });
    let home = home_of(&file);
    let mut first = fetch(&home, &server.url(), &["m"]).stderr(std::process::Stdio::null()).spawn().unwrap();
    server.wait_for(1);
    let output = run(&mut fetch(&home, &server.url(), &["m", "o/n/x.gguf", "--limit", "0.3"]));
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(output.code, 75, "{output:?}");
    assert!(output.err().contains("m is being fetched by another process"), "{output:?}");
    // The next operand is not kept waiting for that.
    assert!(output.out().starts_with("bad\tmodel\to/n/x.gguf\tno pin: "), "{output:?}");
    // The killed one left nothing that has to be removed by hand.
    let server = serving(&file);
    assert_eq!(run(&mut fetch(&home, &server.url(), &["m"])).code, 0);
}

#[test]
fn what_is_no_file_is_not_replaced() {
    let file = content(14, 1000);
    let server = serving(&file);
    let home = home_of(&file);
    fs::create_dir_all(target(&home)).unwrap();
    let output = run(&mut fetch(&home, &server.url(), &["m"]));
    assert_eq!((output.code, output.field(1)), (3, "failed".into()), "{output:?}");
    assert!(
        output.field(4).starts_with("occupied: ") && output.field(4).ends_with("is a directory"),
        "{output:?}"
    );
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn a_link_is_replaced_and_its_target_kept() {
    let file = content(15, 1000);
    let server = serving(&file);
    let home = home_of(&file);
    let theirs = home.file("theirs.gguf", b"GGUF theirs");
    fs::create_dir_all(home.path(".selfheal/models")).unwrap();
    std::os::unix::fs::symlink(&theirs, target(&home)).unwrap();
    assert_eq!(run(&mut fetch(&home, &server.url(), &["m"])).code, 0);
    assert_eq!(fs::read(&theirs).unwrap(), b"GGUF theirs");
    assert!(target(&home).symlink_metadata().unwrap().is_file());
}

#[test]
fn wrong_usage_is_64_and_asks_nobody() {
    let home = home_of(b"x");
    let table: &[&[&str]] = &[
        &[],
        &["nobody"],
        &["auto"],
        &["../../etc/passwd"],
        &["o/n/../x"],
        &["o/n/.hidden"],
        &["o//x"],
        &["o/n/x\ny"],
        &["other/repo/m.gguf"],
        &["m", "--segments", "0"],
        &["m", "--segments", "9"],
        &["m", "--limit", "0"],
        &["m", "--stall", "soon"],
        &["m", "--frobnicate"],
    ];
    let server = serving(&content(16, 10));
    for args in table {
        let output = run(&mut fetch(&home, &server.url(), args));
        assert_eq!((output.code, output.out()), (64, String::new()), "{args:?}: {output:?}");
    }
    for endpoint in ["ftp://x", "huggingface.co", "https://user:secret@x/"] {
        let output = run(&mut fetch(&home, endpoint, &["m"]));
        assert_eq!(output.code, 64, "{endpoint}: {output:?}");
        assert!(!output.err().contains("secret"), "{output:?}");
    }
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn plain_http_is_refused_without_the_test_variable_and_beyond_the_machine() {
    let file = content(17, 10);
    let server = serving(&file);
    let home = home_of(&file);
    let output = run(fetch(&home, &server.url(), &["m"]).env_remove("SELFHEAL_TEST_HTTP"));
    assert_eq!((output.code, output.field(1)), (3, "failed".into()), "{output:?}");
    assert!(output.field(4).starts_with("refused: "), "{output:?}");
    let output = run(&mut fetch(&home, "http://192.0.2.1", &["m"]));
    assert!(output.field(4).starts_with("refused: "), "{output:?}");
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn json_says_the_same() {
    let file = content(18, 10);
    let server = serving(&file);
    let output = run(&mut fetch(&home_of(&file), &server.url(), &["--json", "m"]));
    assert_eq!(output.code, 0, "{output:?}");
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((value["state"].as_str(), value["subject"].as_str()), (Some("healed"), Some("m")));
}
