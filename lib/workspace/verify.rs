//! One entry against the disk: every difference is a finding, and what could not be checked is `unknown`.

use std::fmt::{self, Write as _};
use std::io;

use contract::State;
use contract::message::cause_of;
use files::beneath::{self, Root};
use files::digest::Sha;
use rustix::fs::{FileType, Stat};

use crate::cache::{self, Cache};
use crate::content;
use crate::entry::{Entry, MemberKind, Shape};
use crate::tree;

/// What differs, and how it can be repaired without a recipe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// `missing short corrupt stripped` are damage, `unknown` could not be checked.
    pub state: State,
    /// The cause first.
    pub detail: String,
    /// What would repair it.
    pub repair: Repair,
}

/// What repairs a finding. Paths are relative to the workspace root.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Repair {
    /// Nothing can: it could not be checked.
    Nothing,
    /// The entry's recipe.
    Recipe,
    /// These permission bits on this path.
    Mode(Vec<u8>, u32),
    /// A symbolic link at this path to this target.
    Link(Vec<u8>, Vec<u8>),
    /// An empty directory at this path with these permission bits.
    EmptyDir(Vec<u8>, u32),
    /// The content embedded in the entry.
    Escrow,
}

/// What a healthy entry is known by; its words are made only when they are printed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Proof {
    /// It is not healthy.
    #[default]
    Nothing,
    /// Its content has the hash; bytes.
    Content(u64),
    /// Its size alone; bytes.
    Size(u64),
    /// So many samples; bytes.
    Samples(u64, usize),
    /// A link to this.
    Link(Vec<u8>),
    /// A tree.
    Tree {
        /// Regular files in it.
        files: u64,
        /// Bytes in them.
        bytes: u64,
        /// Sentinels found.
        sentinels: usize,
        /// Whether its Merkle root is right.
        content: bool,
    },
}

impl Proof {
    /// In words.
    pub fn words(&self) -> String {
        let mut words = String::with_capacity(48);
        let _ = write!(words, "{self}");
        words
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            Self::Content(bytes) => write!(f, "{bytes} bytes, content verified"),
            Self::Size(bytes) => write!(f, "{bytes} bytes, size only"),
            Self::Samples(bytes, count) => write!(f, "{bytes} bytes, {count} samples match"),
            Self::Link(target) => write!(f, "link to '{}'", String::from_utf8_lossy(target)),
            Self::Tree { files, bytes, sentinels, content } => {
                write!(f, "{files} files, {bytes} bytes, {sentinels} sentinels")?;
                f.write_str(if *content { ", content verified" } else { "" })
            }
        }
    }
}

/// How thoroughly to look.
pub struct Depth<'a> {
    /// Read blobs whole instead of trusting size and samples.
    pub deep: bool,
    /// What was hashed before; `None` looks at everything.
    pub cache: Option<&'a Cache<'a>>,
    /// Wall seconds, for the cache.
    pub now: u64,
    /// Threads that may hash one tree.
    pub jobs: usize,
}

/// What looking at one entry gave.
#[derive(Debug, Default)]
pub struct Result {
    /// Empty when it is healthy.
    pub findings: Vec<Finding>,
    /// What it is known by when it is healthy.
    pub proof: Proof,
    /// Fingerprint and hash to record, when content was hashed.
    pub hashed: Option<Box<(Sha, Sha)>>,
}

impl Result {
    pub(crate) fn add(&mut self, state: State, repair: Repair, detail: String) {
        self.findings.push(Finding { state, detail, repair });
    }

    pub(crate) fn unknown(&mut self, what: &str, cause: &io::Error) {
        let detail = format!("could not be checked: {what}{}", words(cause));
        self.add(State::Unknown, Repair::Nothing, detail);
    }
}

/// Looks at one entry. `path` is its path below `root`.
pub fn entry(root: &Root, entry: &Entry, path: &[u8], depth: &Depth) -> Result {
    known(root, entry, path, root.stat(path), depth)
}

/// The same with what `lstat` says of the path.
pub fn known(root: &Root, entry: &Entry, path: &[u8], stat: io::Result<Stat>, depth: &Depth) -> Result {
    let mut result = Result::default();
    let stat = match stat {
        Ok(stat) => stat,
        Err(cause) if is_absent(&cause) => {
            let what = match entry.shape {
                Shape::Tree { .. } => "directory absent",
                Shape::Link { .. } => "link absent",
                _ => "file absent",
            };
            result.add(State::Missing, whole(entry, path), what.into());
            return result;
        }
        Err(cause) => {
            result.unknown("", &cause);
            return result;
        }
    };
    match &entry.shape {
        Shape::Link { target } => link(root, path, target, &stat, &mut result),
        Shape::Tree { .. } if beneath::kind_of(&stat) != FileType::Directory => {
            let detail = format!("{} in place of a directory", kind_words(&stat));
            result.add(State::Corrupt, Repair::Recipe, detail);
        }
        Shape::Tree { .. } => tree::check(root, entry, path, &stat, depth, &mut result),
        Shape::File { .. } | Shape::Blob { .. } if beneath::kind_of(&stat) != FileType::RegularFile => {
            let detail = format!("{} in place of a file", kind_words(&stat));
            result.add(State::Corrupt, whole(entry, path), detail);
        }
        Shape::File { size, sha256, mode, .. } => {
            let want = Want { size: *size, mode: *mode };
            if metadata(entry, path, &stat, want, &mut result) {
                hashed(root, entry, path, &stat, *sha256, depth, &mut result);
            }
        }
        Shape::Blob { size, sha256, mode, samples } => {
            let want = Want { size: *size, mode: *mode };
            if metadata(entry, path, &stat, want, &mut result) {
                blob(root, entry, path, &stat, (*sha256, samples), depth, &mut result);
            }
        }
    }
    result
}

#[derive(Clone, Copy)]
struct Want {
    size: u64,
    mode: u32,
}

/// Size and mode; whether the content is worth looking at.
fn metadata(entry: &Entry, path: &[u8], stat: &Stat, want: Want, result: &mut Result) -> bool {
    let mode = stat.st_mode & 0o7777;
    if mode != want.mode {
        let lost = if want.mode & 0o111 & !mode == 0 { "" } else { ", execute bit lost" };
        let detail = format!("mode {mode:04o}{lost} (want {:04o})", want.mode);
        result.add(State::Stripped, Repair::Mode(path.to_vec(), want.mode), detail);
    }
    let size = beneath::print_of(stat).size;
    if size == want.size {
        return true;
    }
    let (state, sign, difference) = if size < want.size {
        (State::Short, '-', want.size - size)
    } else {
        (State::Corrupt, '+', size - want.size)
    };
    result.add(state, whole(entry, path), format!("{size} bytes (want {}, {sign}{difference})", want.size));
    false
}

fn link(root: &Root, path: &[u8], target: &[u8], stat: &Stat, result: &mut Result) {
    let repair = Repair::Link(path.to_vec(), target.to_vec());
    let want = String::from_utf8_lossy(target);
    if beneath::kind_of(stat) != FileType::Symlink {
        result.add(
            State::Corrupt,
            repair,
            format!("link replaced by {} (want a link to '{want}')", kind_words(stat)),
        );
        return;
    }
    match root.place(path).and_then(|p| p.link_target()) {
        Ok(found) if found == target => result.proof = Proof::Link(found),
        Ok(found) => {
            let found = String::from_utf8_lossy(&found);
            result.add(State::Corrupt, repair, format!("link to '{found}' (want '{want}')"));
        }
        Err(cause) => result.unknown("", &cause),
    }
}

/// The whole content against its hash, or a fresh cache record of it.
fn hashed(
    root: &Root,
    entry: &Entry,
    path: &[u8],
    stat: &Stat,
    want: Sha,
    depth: &Depth,
    result: &mut Result,
) {
    let print = beneath::print_of(stat);
    let fingerprint = cache::fingerprint(std::iter::once(&print));
    let cached =
        depth.cache.and_then(|c| c.get(&entry.id, fingerprint, depth.now)).filter(|sha| *sha == want);
    let found = match cached {
        Some(sha) => Ok(Some(sha)),
        None => root.read(path).and_then(|mut file| content::whole(&mut file, &print)),
    };
    match found {
        Err(cause) => result.unknown("", &cause),
        Ok(None) => result.unknown("", &io::Error::other("it changed while it was read")),
        Ok(Some(sha)) if sha == want => {
            result.proof = Proof::Content(print.size);
            let settled = cached.is_none() && cache::is_settled(std::iter::once(&print), depth.now);
            result.hashed = settled.then(|| Box::new((fingerprint, sha)));
        }
        Ok(Some(_)) => {
            let detail = format!("content differs, {} bytes as wanted", print.size);
            result.add(State::Corrupt, whole(entry, path), detail);
        }
    }
}

/// A blob: a fresh record proves it; else its samples; whole when asked or when it has no samples.
fn blob(
    root: &Root,
    entry: &Entry,
    path: &[u8],
    stat: &Stat,
    (sha256, samples): (Option<Sha>, &[Sha]),
    depth: &Depth,
    result: &mut Result,
) {
    let print = beneath::print_of(stat);
    let fingerprint = cache::fingerprint(std::iter::once(&print));
    let known = depth.cache.and_then(|c| c.get(&entry.id, fingerprint, depth.now));
    if let Some(want) = sha256
        && (depth.deep || samples.is_empty() || known == Some(want))
    {
        return hashed(root, entry, path, stat, want, depth, result);
    }
    if samples.is_empty() {
        result.proof = Proof::Size(print.size);
        return;
    }
    // What the cache holds of samples is never the hash of a content, so neither passes for the other.
    let record = crate::merkle::root(samples);
    let proof = Proof::Samples(print.size, samples.len());
    if known == Some(record) && !depth.deep {
        result.proof = proof;
        return;
    }
    match root.read(path).and_then(|file| content::samples(&file, print.size, samples.len())) {
        Err(cause) => result.unknown("", &cause),
        Ok(found) => match found.iter().zip(samples).position(|(a, b)| a != b) {
            None => {
                result.proof = proof;
                let settled = cache::is_settled(std::iter::once(&print), depth.now);
                result.hashed = settled.then(|| Box::new((fingerprint, record)));
            }
            Some(n) => {
                let at = content::sample_offset(print.size, samples.len(), n);
                let detail = format!("content differs near byte {at}, {} bytes as wanted", print.size);
                result.add(State::Corrupt, whole(entry, path), detail);
            }
        },
    }
}

/// What brings the whole entry back.
fn whole(entry: &Entry, path: &[u8]) -> Repair {
    match &entry.shape {
        Shape::Link { target } => Repair::Link(path.to_vec(), target.clone()),
        Shape::File { escrow: Some(_), .. } => Repair::Escrow,
        // Nothing is lost with a directory that holds no file; a recipe may bring more than was asked for.
        Shape::Tree { files: 0, sentinels, count, members, git, merkle, .. }
            if entry.restore.is_none()
                && sentinels.is_empty()
                && count.iter().all(|(_, n)| *n == 0)
                && git.as_ref().is_none_or(Vec::is_empty)
                && (git.is_some() || merkle.is_some())
                && !members.iter().any(|m| matches!(m.what, MemberKind::File(_))) =>
        {
            Repair::EmptyDir(path.to_vec(), 0o755)
        }
        _ => Repair::Recipe,
    }
}

/// Not there, as opposed to not to be looked at.
pub fn is_absent(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

pub(crate) fn kind_words(stat: &Stat) -> &'static str {
    match beneath::kind_of(stat) {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        _ => "a device",
    }
}

pub(crate) fn words(cause: &io::Error) -> String {
    match cause.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => "a link is in the way".into(),
        Some(code) if code == rustix::io::Errno::XDEV.raw_os_error() => {
            "the path leaves the workspace".into()
        }
        _ => cause_of(cause),
    }
}
