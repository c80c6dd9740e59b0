//! Files as disks have them: holes, hostile sizes, split models, a model cut while it is read.
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

#[path = "fuzz/gguf_file.rs"]
mod gguf_file;
#[path = "vectors/gguf/pinned.rs"]
mod pinned;
mod private_home;

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use gguf_file::{ARRAY, F32, GgufFile, STRING};
use pinned::{sha256, tool};
use private_home::*;

/// Makes `path` as long as `size` without writing anything.
fn stretch(path: &Path, size: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(size).unwrap();
}

/// Processor seconds that a hostile file may take: programs under test are usually not optimised.
const SECONDS: u32 = if cfg!(debug_assertions) { 20 } else { 1 };

#[test]
fn a_hole_in_the_data_is_degraded_and_a_hash_settles_it() {
    let home = Home::new();
    let whole = GgufFile::small().tensor("big", &[1 << 20], 24, 1 << 20).write();
    let path = home.file("a.gguf", &whole.bytes[..whole.data]);
    stretch(&path, whole.bytes.len() as u64);
    let output = run(tool(&home).arg(&path));
    assert_eq!((output.code, output.field(1)), (5, "degraded".into()), "{}", output.out());
    assert!(output.field(4).contains("a hole of "), "{}", output.out());
    let mut content = whole.bytes[..whole.data].to_vec();
    content.resize(whole.bytes.len(), 0);
    let output = run(tool(&home).args(["--sha256", &sha256(&content)]).arg(&path));
    assert_eq!((output.code, output.field(1)), (0, "ok".into()), "{}", output.out());
    assert!(output.field(4).starts_with("verified") && output.field(4).contains("hole"), "{}", output.out());
}

#[test]
fn a_file_that_was_only_reserved_is_named() {
    let home = Home::new();
    let path = home.file("a.gguf", "");
    stretch(&path, 480_000_000);
    let output = run(tool(&home).arg(&path));
    assert_eq!((output.code, output.field(1)), (3, "corrupt".into()));
    assert!(output.field(4).contains("nothing was ever written"), "{}", output.out());
}

/// Headers that claim what a sparse file makes cheap: arrays without end, as many keys or tensors as are read at all.
#[test]
fn a_hostile_file_of_10_gb_takes_neither_memory_nor_time() {
    let home = Home::new();
    let endless = |kind: u32, count: u64| [&kind.to_le_bytes()[..], &count.to_le_bytes()].concat();
    let only = |kind, count| {
        GgufFile::bare().text("general.architecture", "x").key("k", ARRAY, endless(kind, count))
    };
    let many = |what: &str| {
        let mut file = GgufFile::small();
        for n in 0..(1 << 17) - 2 {
            let name = format!("{n:x}");
            file = match what {
                "keys" => file.key(&name, 0, vec![1]),
                _ => file.tensor(&name, &[0], 0, 0),
            };
        }
        file.write()
    };
    let cases = [
        ("strings", only(STRING, 1 << 30).write(), "longer than any model's"),
        ("floats", only(F32, 1 << 30).write(), "appended"),
        ("more floats", only(F32, (1 << 30) + 1).write(), "an array of 1073741825 elements"),
        ("most keys", many("keys"), "appended"),
        ("most tensors", many("tensors"), "appended"),
    ];
    for (name, file, words) in cases {
        let path = home.file("a.gguf", &file.bytes[..file.data]);
        stretch(&path, 10 << 30);
        let mut command = home.command("sh");
        command
            .arg("-c")
            .arg(format!("ulimit -v 65536 && ulimit -t {SECONDS} && exec \"$0\" \"$@\""))
            .arg(env!("CARGO_BIN_EXE_gguf-verify"))
            .arg(&path);
        let output = run(&mut command);
        assert_eq!(output.code, 3, "{name}: {} {}", output.out(), output.err());
        assert!(output.field(4).contains(words), "{name}: {}", output.out());
    }
}

#[test]
fn a_model_cut_while_it_is_hashed_is_unknown_and_no_crash() {
    let home = Home::new();
    let size = 64_u64 << 30;
    let whole = GgufFile::small().tensor("big", &[size], 24, 0).write();
    let path = home.file("a.gguf", &whole.bytes[..whole.data]);
    stretch(&path, whole.bytes.len() as u64 + size);
    let mut child = tool(&home)
        .args(["--deep", "./a.gguf"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The descriptor's position says when hashing has begun.
    let process = format!("/proc/{}", child.id());
    let hashing = || {
        fs::read_dir(format!("{process}/fd")).into_iter().flatten().flatten().any(|fd| {
            let number = fd.file_name();
            let info = fs::read_to_string(format!("{process}/fdinfo/{}", number.to_string_lossy()));
            let ours = fs::read_link(fd.path()).is_ok_and(|target| target == path);
            let position =
                |info: String| info.strip_prefix("pos:")?.split_whitespace().next()?.parse::<u64>().ok();
            ours && info.ok().and_then(position).is_some_and(|n| n > 1 << 20 && n < size / 2)
        })
    };
    let bound = Instant::now() + Duration::from_secs(30);
    while !hashing() {
        let ended = wait(&mut child, Instant::now() + Duration::from_millis(2)).is_some();
        assert!(!ended && Instant::now() < bound, "hashing was not seen");
    }
    stretch(&path, 1000);
    assert!(wait(&mut child, Instant::now() + Duration::from_secs(60)).is_some(), "hangs");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", String::from_utf8_lossy(&output.stderr));
    let line = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(line.starts_with("unknown\tmodel\t./a.gguf\tchanged while it was read"), "{line}");
}

/// Three parts as `gguf-split --no-tensor-first-split` writes them, the first without tensors.
fn parts() -> Vec<Vec<u8>> {
    let first = GgufFile::bare().text("general.architecture", "llama").split(0, 3, 2);
    let part = |n, name| GgufFile::bare().split(n, 3, 2).tensor(name, &[8, 8], 0, 256);
    [first, part(1, "a"), part(2, "b")].iter().map(|file| file.write().bytes).collect()
}

#[test]
fn a_split_model_is_ok_only_with_all_its_parts() {
    let home = Home::new();
    let names = [1, 2, 3].map(|n| format!("d/m-0000{n}-of-00003.gguf"));
    let lay_out = || {
        for (name, part) in names.iter().zip(parts()) {
            home.file(name, part);
        }
    };
    lay_out();
    for name in &names {
        let output = run(tool(&home).arg(name));
        assert_eq!(output.code, 0, "{name}: {}", output.out());
    }
    let first = || run(tool(&home).arg(&names[0]));

    fs::remove_file(home.path(&names[2])).unwrap();
    let output = first();
    assert_eq!((output.code, output.field(1)), (3, "short".into()));
    assert!(
        output.field(4).contains("part 1 of 3 alone: 'm-00003-of-00003.gguf' missing"),
        "{}",
        output.out()
    );

    lay_out();
    home.file(&names[1], &parts()[1][..300]);
    let output = first();
    assert_eq!((output.code, output.field(1)), (3, "short".into()));
    assert!(output.field(4).contains("its part 'm-00002-of-00003.gguf': cut off"), "{}", output.out());

    home.file(&names[1], &parts()[2]);
    assert!(first().field(4).contains("is not part 2 of 3"), "{}", first().out());

    let extra = GgufFile::bare().split(1, 3, 2).tensor("a", &[8], 0, 32).tensor("c", &[8], 0, 32).write();
    home.file(&names[1], extra.bytes);
    assert!(first().field(4).contains("3 tensors together, not the 2"), "{}", first().out());

    home.file("d/renamed.gguf", &parts()[0]);
    let output = run(tool(&home).arg("d/renamed.gguf"));
    assert_eq!((output.code, output.field(1)), (3, "bad".into()));
    assert!(output.field(4).contains("'-00001-of-00003.gguf'"), "{}", output.out());
}

#[test]
fn a_sibling_that_lost_its_last_padding_makes_the_model_degraded_even_when_verified() {
    let home = Home::new();
    let [first, second] = [0, 1].map(|n| {
        let file = GgufFile::bare().split(n, 2, 2).text("general.architecture", "llama");
        file.tensor(if n == 0 { "a" } else { "b" }, &[5], 24, 5).write().bytes
    });
    home.file("m-00001-of-00002.gguf", &first);
    home.file("m-00002-of-00002.gguf", &second[..second.len() - 1]);
    let output = run(tool(&home).args(["--sha256", &sha256(&first), "./m-00001-of-00002.gguf"]));
    assert_eq!((output.code, output.field(1)), (5, "degraded".into()), "{}", output.out());
    assert!(output.field(4).contains("its part 'm-00002-of-00002.gguf': 1 byte of the padding"));
}
