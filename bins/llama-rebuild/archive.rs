//! A pinned source archive: proven, unpacked into our own directory, and proven again without the archive.
//!
//! The tree goes to `$SELFHEAL_HOME/engine/source/<tree>`, never into the user's. Beside it stands
//! `<tree>.proof`: the archive's SHA-256 and a digest over every unpacked file. As long as the archive is still
//! pinned and the digest still holds, the tree is what the archive held, and a later rebuild needs no archive.

use std::fs::File;
use std::io::{self as stdio, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use child::{Sink, Stdin};
use contract::clock::Deadline;
use contract::{Error, Fix, State, exit, message};
use files::digest::{Hasher, Sha};
use files::{atomic, tree as renames};
use models::{Archive, Manifest};

use crate::halt::{Halt, io, say};
use crate::{machine, tree};

/// Large parts of the tree that no build reads (115 of 178 MB): sample vocabularies and documents.
const LEFT_OUT: [&str; 2] = ["models", "docs"];

/// The pin that a file is, by size and SHA-256.
pub(crate) fn pinned<'m>(file: &Path, manifest: &'m Manifest) -> Result<&'m Archive, Halt> {
    let name = message::quoted(file.as_os_str());
    let (mut open, meta) = regular(file)?;
    let archives = &manifest.engine.archives;
    let hint = archives.first().map_or_else(
        || "the manifest pins no archive".to_owned(),
        |a| format!("pip download --no-deps --no-binary {0} {0}=={1}", a.name, a.version),
    );
    // The size alone tells a cut download from another file.
    let named = archives.iter().find(|a| file.file_name().is_some_and(|n| n == a.file.as_str()));
    if let Some(archive) = named.filter(|a| meta.len() < a.bytes) {
        let words = format!("{name} is truncated: {} of {} bytes", meta.len(), archive.bytes);
        return Err(Halt::new(State::Short, words).hint(hint));
    }
    if !archives.iter().any(|a| a.bytes == meta.len()) {
        let words = format!("{name} is no pinned archive: no pin has {} bytes", meta.len());
        return Err(Halt::new(State::Bad, words).hint(hint));
    }
    let (sha, count) = files::digest::of_reader(&mut open).map_err(io("read", file))?;
    archives.iter().find(|a| a.sha256 == sha && a.bytes == count).ok_or_else(|| {
        let words = format!("{name} is no pinned archive: its sha256 is {}", sha.hex());
        Halt::new(State::Bad, words).hint(hint)
    })
}

fn regular(file: &Path) -> Result<(File, std::fs::Metadata), Halt> {
    files::open::regular(file).map_err(|refusal| match refusal {
        files::open::Refusal::Io(cause) => io("read", file)(cause),
        files::open::Refusal::NotAFile(what) => {
            let words = format!("cannot read {}: it is {}", message::quoted(file.as_os_str()), what.words());
            Halt::Error(Error::new(exit::IO, words))
        }
    })
}

fn place(archive: &Archive) -> Result<PathBuf, Halt> {
    let tree = &archive.tree;
    if tree.is_empty() || tree.starts_with('.') || tree.contains(['/', '\0']) {
        let words = format!("the manifest's tree name '{tree}' is not a plain name");
        return Err(Halt::Error(Error::new(exit::IO, words)));
    }
    Ok(engine::kept_dir()?.join("source").join(tree))
}

/// Beside the tree, not in it: a tree that was tampered with cannot vouch for itself.
fn proof_of(target: &Path, archive: &Archive) -> PathBuf {
    target.with_file_name(format!("{}.proof", archive.tree))
}

fn proof_line(archive: &Archive, digest: Sha) -> String {
    format!("{} {}\n", archive.sha256.hex(), digest.hex())
}

/// The unpacked tree of an archive when it is still what the archive held.
pub(crate) fn proven(archive: &Archive) -> Result<Option<PathBuf>, Halt> {
    let dir = place(archive)?;
    let proof = tree::read_text(&proof_of(&dir, archive));
    if proof.is_empty() || tree::look(&dir)? != tree::Tree::Whole {
        return Ok(None);
    }
    match tree::digest(&dir) {
        Ok(digest) => Ok((proof == proof_line(archive, digest)).then_some(dir)),
        Err(Halt::Verdict { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Unpacks an archive and returns the tree.
///
/// The file may change under us, so it is hashed while it is copied to a private file, and it is that copy, which
/// nobody else can name, that is unpacked: what was hashed is what is unpacked.
pub(crate) fn unpack(fix: &Fix, file: &Path, archive: &Archive, deadline: Deadline) -> Result<PathBuf, Halt> {
    let target = place(archive)?;
    let source = target.parent().unwrap_or(&target).to_owned();
    say(&format!("unpacking {}", message::quoted(file.as_os_str())));
    let temporary = source.join(format!(".{}.{}.tmp", archive.tree, std::process::id()));
    atomic::make_dir(fix, &temporary).map_err(io("make", &temporary))?;
    let result = unpack_into(fix, file, archive, &temporary, deadline)
        .and_then(|digest| put_in_place(fix, &temporary.join(&archive.member), &target, archive, digest));
    // What is left of it is ours and of no use, also after a failure.
    let _ = renames::remove_own(fix, &temporary);
    result.map(|()| target)
}

fn unpack_into(
    fix: &Fix,
    file: &Path,
    archive: &Archive,
    temporary: &Path,
    deadline: Deadline,
) -> Result<Sha, Halt> {
    let copy_path = temporary.join("archive");
    let mut copy = atomic::begin(fix, &copy_path).map_err(io("make", &copy_path))?;
    let (mut from, _) = regular(file)?;
    let sha = copy_hashing(&mut from, copy.file()).map_err(io("copy", file))?;
    if sha != archive.sha256 {
        let words = format!("{} changed while it was read", message::quoted(file.as_os_str()));
        return Err(Halt::new(State::Failed, words));
    }
    copy.file().rewind().map_err(io("read", &copy_path))?;
    let input = copy.file().try_clone().map_err(io("read", &copy_path))?;
    let tar = machine::require("tar", "tar")?;
    machine::require("gzip", "gzip")?;
    let mut run = machine::command(tar).args(["-x", "-z", "-o", "-f", "-"]);
    // A dangling `.git` file of a submodule makes cmake look for a repository that is not there.
    for name in LEFT_OUT.into_iter().chain([".git"]) {
        run = run.arg(format!("--exclude={}/{name}", archive.member));
    }
    let run = run
        .arg(&archive.member)
        .current_dir(temporary)
        .stdin(Stdin::File(input))
        .stdout(Sink::Null)
        .stderr(Sink::Head(64 << 10))
        .limit(deadline.left().min(Duration::from_secs(900)));
    let outcome = machine::run(run)?;
    if !outcome.success() {
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        if said.contains("No space left on device") {
            return Err(Halt::new(State::Failed, "the archive cannot be unpacked: the disk is full")
                .hint("df -h; the tree takes 70 MB, its build 100 MB more"));
        }
        // the first line is the cause, the others are what came of it
        let why = said.lines().find(|l| !l.trim().is_empty()).unwrap_or(outcome.cause.word());
        return Err(Halt::new(State::Failed, format!("the archive cannot be unpacked: {why}")));
    }
    let unpacked = temporary.join(&archive.member);
    if let tree::Tree::Gutted(lost) = tree::look(&unpacked)? {
        let words = format!("the archive holds no whole source tree: {} is missing", lost.join(" "));
        return Err(Halt::new(State::Bad, words));
    }
    tree::digest(&unpacked)
}

/// Takes the tree to its name. An older tree there is ours but not what it should be: it goes, the proof first.
fn put_in_place(fix: &Fix, from: &Path, target: &Path, archive: &Archive, digest: Sha) -> Result<(), Halt> {
    if target.symlink_metadata().is_ok() {
        let old = target.with_file_name(format!(".{}.old.{}.tmp", archive.tree, std::process::id()));
        renames::rename_new(target, &old).map_err(io("move", target))?;
        let _ = renames::remove_own(fix, &old);
    }
    renames::rename_new(from, target).map_err(io("move", from))?;
    let proof = proof_of(target, archive);
    atomic::write(fix, &proof, proof_line(archive, digest).as_bytes(), 0o600).map_err(io("write", &proof))
}

fn copy_hashing(from: &mut File, to: &mut File) -> stdio::Result<Sha> {
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(n) => {
                hasher.update(&buffer[..n]);
                to.write_all(&buffer[..n])?;
            }
            Err(cause) if cause.kind() == stdio::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
}
