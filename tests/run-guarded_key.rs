//! `run-guarded --key`: whatever changes the answer changes the key, and nothing else does.
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

mod fake_engine;
mod private_home;

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, SystemTime};

use fake_engine::Fake;
use private_home::{run, run_with};

/// A fake with a kept engine that has a stamp, and a pin for every model.
fn stamped() -> Fake {
    let fake = Fake::new("answer x");
    let dir = format!(".selfheal/engine/{}", engine::cpu().id);
    fake.home.script(&format!("{dir}/llama-completion"), "echo ran >>\"$HOME/ran\"");
    fake.home.file(&format!("{dir}/stamp"), stamp("b11434", "-DGGML_NATIVE=ON", "GNU 12.2.0", "2026-11-30"));
    let text = fs::read_to_string(fake.home.path("manifest.json")).unwrap();
    let sha = "ab".repeat(32);
    fake.home.file("manifest.json", text.replace("\"sha256\":null", &format!("\"sha256\":\"{sha}\"")));
    fake
}

fn stamp(tree: &str, option: &str, compiler: &str, built: &str) -> Vec<u8> {
    engine::Stamp {
        cpu: engine::cpu().id,
        flags: vec!["avx2".into()],
        portable: false,
        tree: tree.into(),
        options: vec![option.into()],
        compiler: compiler.into(),
        built: built.into(),
        programs: Vec::new(),
    }
    .line()
}

fn kept(name: &str) -> String {
    format!(".selfheal/engine/{}/{name}", engine::cpu().id)
}

/// The key of a call, which is 64 hexadecimal digits and all that is printed.
fn key(fake: &Fake, operands: &[&str]) -> String {
    let output = run(fake.command(&[&["--key"], operands].concat()).env("SELFHEAL_MODE", "fix"));
    assert_eq!((output.code, output.err().as_str()), (0, ""), "{operands:?}");
    let key = output.out().strip_suffix('\n').unwrap().to_owned();
    assert!(
        key.len() == 64 && key.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
        "{key}"
    );
    key
}

const ASKED: [&str; 3] = ["Where is caf\u{e9}?", "scout", "64"];

#[test]
fn d18_every_difference_is_a_miss_and_the_same_call_is_a_hit() {
    let fake = stamped();
    let before = fake.census();
    let mut seen = HashMap::from([(key(&fake, &ASKED), "the call itself".to_owned())]);
    let mut differs = |key: String, what: &str| {
        let other = seen.insert(key, what.to_owned());
        assert_eq!(other, None, "{what}");
    };
    for (what, operands) in [
        ("a newline at the end", ["Where is caf\u{e9}?\n", "scout", "64"]),
        ("a blank at the end", ["Where is caf\u{e9}? ", "scout", "64"]),
        ("the same text decomposed", ["Where is cafe\u{301}?", "scout", "64"]),
        ("another case", ["where is caf\u{e9}?", "scout", "64"]),
        ("N", ["Where is caf\u{e9}?", "scout", "65"]),
        ("a role", ["Where is caf\u{e9}?", "spark", "64"]),
        ("a slow role", ["Where is caf\u{e9}?", "sage", "64"]),
        ("a digit moved from the prompt to N", ["Where is caf\u{e9}?6", "scout", "4"]),
    ] {
        differs(key(&fake, &operands), what);
    }
    assert_eq!(fake.census(), before, "no key writes anything");
    let manifest = fs::read_to_string(fake.home.path("manifest.json")).unwrap();
    for (what, from, to) in [
        ("the model's pin", "ab".repeat(32), "cd".repeat(32)),
        ("the model's size", "\"bytes\":".into(), "\"bytes\":1".into()),
        ("the model's file", "\"scout.gguf\"".into(), "\"scout-2.gguf\"".into()),
        ("thinking", "\"light\":true".into(), "\"light\":false".into()),
    ] {
        fake.edit_manifest(&from, &to);
        differs(key(&fake, &ASKED), what);
        fake.home.file("manifest.json", &manifest);
    }
    let was = fs::read(fake.home.path(&kept("stamp"))).unwrap();
    for (what, line) in [
        ("the engine's source", stamp("b11435", "-DGGML_NATIVE=ON", "GNU 12.2.0", "2026-11-30")),
        ("the engine's options", stamp("b11434", "-DGGML_NATIVE=OFF", "GNU 12.2.0", "2026-11-30")),
        ("the engine's compiler", stamp("b11434", "-DGGML_NATIVE=ON", "GNU 13.1.0", "2026-11-30")),
        ("half a stamp", was[..was.len() / 2].to_vec()),
    ] {
        fake.home.file(&kept("stamp"), line);
        differs(key(&fake, &ASKED), what);
    }
    fake.home.file(&kept("stamp"), was);
    assert_eq!(seen[&key(&fake, &ASKED)], "the call itself");
    assert!(!fake.home.path("ran").exists() && fake.calls().is_empty(), "a key runs nothing");
}

#[test]
fn d18_what_does_not_change_the_answer_is_a_hit() {
    let fake = stamped();
    let first = key(&fake, &ASKED);
    // The model swept away, other limits on time, another day of the same build, the prompt from a stream.
    fs::remove_dir_all(fake.home.path(".selfheal/models")).unwrap();
    assert_eq!(key(&fake, &ASKED), first);
    fake.edit_manifest("\"base_s\":1", "\"base_s\":9");
    assert_eq!(key(&fake, &ASKED), first);
    fake.home.file(&kept("stamp"), stamp("b11434", "-DGGML_NATIVE=ON", "GNU 12.2.0", "2027-01-01"));
    assert_eq!(key(&fake, &ASKED), first);
    let mut command = fake.command(&["--key", "-", "scout", "64"]);
    let output = run_with(&mut command, ASKED[0].as_bytes(), Duration::from_secs(60));
    assert_eq!(output.out().trim_end(), first);
    // A short question goes to the scout with 96 tokens at most, however it was asked.
    let short = key(&fake, &["Where?", "auto", "500"]);
    assert_eq!(short, key(&fake, &["Where?", "scout", "96"]));
    assert_eq!(short, key(&fake, &["Where?", "auto", "96"]));
    assert_ne!(short, key(&fake, &["Where?", "scout", "500"]));
}

#[test]
fn a_model_without_a_pin_is_known_by_size_and_time_until_it_is_measured() {
    let fake = stamped();
    let text = fs::read_to_string(fake.home.path("manifest.json")).unwrap();
    let open = text.replace(&format!("\"{}\"", "ab".repeat(32)), "null");
    fake.home.file("manifest.json", open.replace("\"light\":true", "\"repository\":\"o/n\",\"light\":true"));
    let first = key(&fake, &ASKED);
    assert_eq!(key(&fake, &ASKED), first);
    let model = fake.home.path(".selfheal/models/scout.gguf");
    let file = fs::OpenOptions::new().append(true).open(&model).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)).unwrap();
    let touched = key(&fake, &ASKED);
    assert_ne!(touched, first);
    fs::remove_file(&model).unwrap();
    let absent = key(&fake, &ASKED);
    assert!(absent != first && absent != touched);
    let sha = "ef".repeat(32);
    let pin =
        format!("{{\"repository\":\"o/n\",\"file\":\"scout.gguf\",\"bytes\":9,\"sha256\":\"{sha}\"}}\n");
    fake.home.file(".selfheal/state/pins.jsonl", pin);
    let pinned = key(&fake, &ASKED);
    assert!(pinned != first && pinned != touched && pinned != absent);
    fake.model("scout");
    assert_eq!(key(&fake, &ASKED), pinned);
}

#[test]
fn an_engine_without_a_stamp_is_known_by_its_files() {
    let fake = Fake::new("answer x");
    let first = key(&fake, &ASKED);
    assert_eq!(key(&fake, &ASKED), first);
    fake.home.file("llama.cpp/build/bin/libllama.so", "one");
    let with_library = key(&fake, &ASKED);
    fake.program("llama-completion", "answer another");
    let rebuilt = key(&fake, &ASKED);
    assert!(first != with_library && with_library != rebuilt && first != rebuilt);
    assert!(fake.calls().is_empty());
}

#[test]
fn without_an_engine_there_is_no_key_to_store_under() {
    let fake = Fake::new("answer x");
    fake.remove("llama-completion");
    let output = fake.ask(&["--key", "Where?", "scout", "8"]);
    assert_eq!((output.code, output.out().as_str()), (4, ""));
    assert!(output.err().contains("no inference engine is here"), "{}", output.err());
    for (operands, words) in [
        (["--key", "x", "wizard", "8"], "no role 'wizard'"),
        (["--key", "x", "scout", "0"], "N is '0'"),
        (["--key", " ", "scout", "8"], "blank"),
    ] {
        let output = fake.ask(&operands);
        assert_eq!((output.code, output.out().as_str()), (64, ""), "{operands:?}");
        assert!(output.err().contains(words), "{}", output.err());
    }
}
