//! The GGUF corpus, unpacked once into the target directory, and its table of expected verdicts.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::disallowed_methods, reason = "tests start programs and lay out files themselves")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/gguf");

/// What a verifier without a pin should say.
pub(crate) struct Case {
    pub(crate) file: String,
    pub(crate) expect: String,
}

/// The table; the unpacked files are held against its sizes.
pub(crate) fn cases() -> Vec<Case> {
    let table = fs::read_to_string(Path::new(HERE).join("cases.tsv")).unwrap();
    let dir = dir();
    let case = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        assert_eq!(fields.len(), 6, "{line}");
        let bytes = fs::metadata(dir.join(fields[0])).unwrap().len();
        assert_eq!(bytes.to_string(), fields[1], "{line}");
        Case { file: fields[0].to_owned(), expect: fields[2].to_owned() }
    };
    table.lines().skip(1).map(case).collect()
}

/// The directory that holds the corpus. Several test programs may come here at once: the last rename wins nothing.
pub(crate) fn dir() -> PathBuf {
    let archive = Path::new(HERE).join("corpus.tar.xz");
    let sha = files::digest::of_file(&mut fs::File::open(&archive).unwrap()).unwrap().unwrap();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("gguf-corpus-{}", &sha.hex()[..16]));
    if dir.is_dir() {
        return dir;
    }
    let thread = format!("{:?}", std::thread::current().id());
    let half = dir.with_extension(format!("{}{}", std::process::id(), thread.replace(['(', ')'], "-")));
    fs::create_dir_all(&half).unwrap();
    let unpacked = Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(&half).output();
    assert!(
        unpacked.as_ref().is_ok_and(|u| u.status.success()),
        "cannot unpack corpus.tar.xz: install tar and xz (apt-get install xz-utils): {unpacked:?}"
    );
    if fs::rename(&half, &dir).is_err() {
        let _ = fs::remove_dir_all(&half);
    }
    assert!(dir.join("dv-good.gguf").is_file(), "the corpus has no dv-good.gguf");
    dir
}

/// The sound model of the corpus.
pub(crate) fn good() -> Vec<u8> {
    fs::read(dir().join("dv-good.gguf")).unwrap()
}
