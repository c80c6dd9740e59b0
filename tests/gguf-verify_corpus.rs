//! Every file of the corpus gets its expected verdict; the field cases of damaged models.

#[path = "vectors/gguf/corpus.rs"]
mod corpus;
#[path = "fuzz/gguf_file.rs"]
mod gguf_file;
#[path = "vectors/gguf/pinned.rs"]
mod pinned;
mod private_home;

use std::process::Command;

use pinned::{manifest, sha256, tool};
use private_home::*;

/// The tool held to 64 MB of address space and `seconds` of processor time: beyond, it is killed.
fn bounded(home: &Home, seconds: u32) -> Command {
    let mut command = home.command("sh");
    command
        .arg("-c")
        .arg(format!("ulimit -v 65536 && ulimit -t {seconds} && exec \"$0\" \"$@\""))
        .arg(env!("CARGO_BIN_EXE_gguf-verify"))
        .env("SELFHEAL_MODELS_DIR", home.path("models"))
        .env("SELFHEAL_MANIFEST", home.path("manifest.json"));
    command
}

#[test]
fn every_file_of_the_corpus_gets_its_expected_verdict() {
    let home = Home::new();
    manifest(&home, &[]);
    let cases = corpus::cases();
    assert_eq!(cases.len(), 121);
    for case in cases {
        let output = run(bounded(&home, 1).arg(corpus::dir().join(&case.file)));
        let expected: &[i32] = match case.expect.as_str() {
            "ok" => &[0],
            "refuse" => &[3],
            "degraded" => &[5],
            "either" => &[0, 3, 5],
            other => panic!("{other}"),
        };
        assert!(expected.contains(&output.code), "{} is {}: {}", case.file, case.expect, output.out());
        assert_eq!(output.out().lines().count(), 1, "{}", case.file);
        assert!(!output.out().contains("verified"), "{}", output.out());
        assert_eq!(output.err(), "", "{}", case.file);
    }
}

#[test]
fn with_the_true_pin_and_deep_only_the_model_itself_is_accepted() {
    let home = Home::new();
    let good = corpus::good();
    let pin = ["--deep".into(), format!("--bytes={}", good.len()), format!("--sha256={}", sha256(&good))];
    for case in corpus::cases() {
        let output = run(tool(&home).args(&pin).arg(corpus::dir().join(&case.file)));
        let expected = if case.file == "dv-good.gguf" { 0 } else { 3 };
        assert_eq!(output.code, expected, "{}: {}", case.file, output.out());
        assert_eq!(output.out().contains("verified"), expected == 0, "{}", output.out());
    }
}

/// The word that a person needs stands in the cause.
#[test]
fn the_cause_names_what_is_wrong() {
    let home = Home::new();
    for (file, state, words) in [
        ("dv-align-3.gguf", "corrupt", "general.alignment is 3"),
        ("dv-arr-nested.gguf", "corrupt", "array of type 9"),
        ("dv-bigendian.gguf", "bad", "big-endian"),
        ("dv-doubled.gguf", "corrupt", "another GGUF"),
        ("dv-dupkey.gguf", "corrupt", "stands twice"),
        ("dv-empty.gguf", "short", "empty"),
        ("dv-entry-not-found.gguf", "corrupt", "Entry not found"),
        ("dv-hdr-23.gguf", "short", "cut off"),
        ("dv-html.gguf", "corrupt", "HTML page ('Sign in')"),
        ("dv-lastpad-cut-1.gguf", "degraded", "padding"),
        ("dv-lfs-pointer.gguf", "corrupt", "Git LFS pointer (to 483616 bytes"),
        ("dv-magic-ggjt.gguf", "corrupt", "old ggjt"),
        ("dv-noarch.gguf", "bad", "general.architecture"),
        ("dv-split-00001-of-00003.gguf", "short", "'dv-split-00002-of-00003.gguf'"),
        ("dv-ti-type-1f.gguf", "bad", "q4_0_4_4"),
        ("dv-ti-type-2b.gguf", "bad", "newer than this tool"),
        ("dv-trail-1.gguf", "corrupt", "1 byte appended"),
        ("dv-trunc-1.gguf", "short", "1 byte fewer"),
        ("dv-trunc-in-kv.gguf", "short", "key 14 of 19"),
        ("dv-version-00000001.gguf", "bad", "version 1"),
        ("dv-version-00000004.gguf", "bad", "newer than this tool"),
        ("dv-vocabonly.gguf", "bad", "no tensors"),
        ("dv-zeros-same-size.gguf", "corrupt", "all zeros"),
    ] {
        let output = run(tool(&home).arg(corpus::dir().join(file)));
        assert_eq!(output.field(1), state, "{}", output.out());
        assert!(output.field(4).contains(words), "{}", output.out());
    }
    let zeros = corpus::dir().join("dv-zero-hole.gguf");
    let output = run(tool(&home).args(["--sha256", &"0".repeat(64)]).arg(zeros));
    assert!(output.field(4).contains("61440 bytes from byte"), "{}", output.out());
}

#[test]
fn d06_what_was_stored_instead_of_the_model_is_named() {
    let home = Home::new();
    let good = corpus::good();
    manifest(&home, &[("scout", "scout.gguf", good.len(), Some(&sha256(&good)))]);
    let page = b"<!DOCTYPE html><html><head><title>503</title></head>".to_vec();
    let mut big = page.clone();
    big.resize(good.len(), b' ');
    let lfs =
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 483616\n", "ab".repeat(32));
    let ggjt = [b"tjgg", &good[4..]].concat();
    for (name, content, words) in [
        ("html15", b"<html>4</html>\n".to_vec(), "HTML page"),
        ("entry", b"Entry not found".to_vec(), "Entry not found"),
        ("html_big", big, "HTML page"),
        ("lfs", lfs.into_bytes(), "Git LFS pointer"),
        ("json401", b"{\"error\":\"Invalid credentials in Authorization header\"}".to_vec(), "JSON error"),
        ("ggjt", ggjt, "old ggjt"),
        ("empty", Vec::new(), "empty"),
    ] {
        home.file("models/scout.gguf", content);
        for deep in [&["scout"][..], &["--deep", "scout"]] {
            let output = run(tool(&home).args(deep));
            assert_eq!(output.code, 3, "{name}: {}", output.out());
            assert!(output.field(4).contains(words), "{name}: {}", output.out());
        }
    }
}

#[test]
fn d07_a_malformed_header_is_refused_in_bounded_time_and_memory() {
    let home = Home::new();
    manifest(&home, &[]);
    let good = corpus::good();
    let with = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    // The first tensor's dimensions stand behind its name.
    let name = good.windows(17).position(|w| w == b"token_embd.weight").unwrap();
    for (file, content) in [
        ("short1.gguf", good[..good.len() - 1].to_vec()),
        ("header_only.gguf", good[..24].to_vec()),
        ("half_header.gguf", good[..12].to_vec()),
        ("count_max.gguf", with(8, &[0xff; 16])),
        ("kvlen_max.gguf", with(24, &[0xff; 8])),
        (
            "dims_overflow.gguf",
            with(name + 17 + 4, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f].repeat(2)),
        ),
    ] {
        home.file(file, content);
        let output = run(bounded(&home, 1).arg(home.path(file)));
        assert_eq!(output.code, 3, "{file}: {} {}", output.out(), output.err());
        assert!(matches!(output.field(1).as_str(), "short" | "corrupt"), "{file}: {}", output.out());
    }
    for control in ["ok.gguf", "solo-00001-of-00001.gguf"] {
        home.file(control, &good);
        assert_eq!(run(bounded(&home, 1).arg(home.path(control))).code, 0, "{control}");
    }
}

#[test]
fn d08_same_size_damage_is_found_by_the_hash_and_never_called_verified() {
    let home = Home::new();
    let good = corpus::good();
    manifest(&home, &[("scout", "scout.gguf", good.len(), Some(&sha256(&good)))]);
    let mut flipped = good.clone();
    flipped[300_000] ^= 1;
    let mut zeros = good.clone();
    zeros[400_000..].fill(0);
    let parts = [&good[..], &gguf_file::GgufFile::small().write().bytes].concat();
    let appended = [&good[..], &[b'x'; 416]].concat();
    for (name, content, shallow) in [
        ("bitflip", flipped, &[0, 5][..]),
        ("zeros_tail", zeros, &[0, 5]),
        ("append416", appended, &[3]),
        ("catmerged", parts, &[3]),
    ] {
        home.file("models/scout.gguf", content);
        let output = run(tool(&home).arg("scout"));
        assert!(shallow.contains(&output.code), "{name}: {}", output.out());
        assert!(!output.out().contains("verified") && !output.out().contains("hash ok"), "{}", output.out());
        assert_eq!(output.out().contains("pinned are 483616"), *shallow == [3], "{name}: {}", output.out());
        let deep = run(tool(&home).args(["--deep", "scout"]));
        assert_eq!((deep.code, deep.field(1)), (3, "corrupt".into()), "{name}: {}", deep.out());
    }
    home.file("models/scout.gguf", &good);
    let deep = run(tool(&home).args(["--deep", "scout"]));
    assert!(deep.code == 0 && deep.out().contains("verified"), "{}", deep.out());
}
