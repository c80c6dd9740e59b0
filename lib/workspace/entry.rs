//! One manifest entry: what a path of the healthy workspace must look like, and how it comes back.

use std::borrow::Cow;

use contract::Kind;
use files::digest::Sha;
use serde::de::{Deserialize, Deserializer, Error as _};

use crate::fields::{Below, Counts, FromText, List, Long, Mode, Object, Path, Short, Text, fields};
use crate::{json, name};

/// Longest id, in bytes.
const ID: usize = 64;
/// Highest tier.
const TIERS: u8 = 4;
/// Longest recipe bound: a day.
const LONGEST_S: u64 = 86_400;

/// What one path must look like; borrowed from the manifest's text where that has it as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// Its name in the manifest: letters, digits, `.`, `_`, `-`.
    pub id: Cow<'a, str>,
    /// Where it is: below the workspace root, or below the home when it begins with `~/`. Any bytes.
    pub path: Cow<'a, [u8]>,
    /// 0 is restored first, 4 last.
    pub tier: u8,
    /// What must be so of it.
    pub shape: Shape,
    /// Ids that must be healthy before its recipe runs.
    pub needs: Vec<Cow<'a, str>>,
    /// Shell text that brings it back.
    pub restore: Option<Cow<'a, str>>,
    /// Seconds its recipe may take.
    pub timeout_s: Option<u64>,
    /// For a person.
    pub notes: Option<Cow<'a, str>>,
}

/// What must be so of an entry, by its kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Kind `file` with `target`: a symbolic link.
    Link {
        /// What it points at, any bytes; it may dangle.
        target: Vec<u8>,
    },
    /// Kind `file`: a small regular file.
    File {
        /// Bytes.
        size: u64,
        /// SHA-256 of its content.
        sha256: Sha,
        /// Permission bits, 0 to 0o7777.
        mode: u32,
        /// Its content, zlib (RFC 1950) in base64 (RFC 4648), when it is embedded.
        escrow: Option<String>,
    },
    /// Kind `blob`: a large regular file.
    Blob {
        /// Bytes.
        size: u64,
        /// SHA-256 of its content, where it is known.
        sha256: Option<Sha>,
        /// Permission bits.
        mode: u32,
        /// SHA-256 of 64 KiB at each of 16 offsets spread over the file, in order; empty when not recorded.
        samples: Vec<Sha>,
    },
    /// Kind `tree`: a directory. All counts are lower bounds: a growing tree is healthy.
    Tree {
        /// Files that must exist and not be empty, relative to the tree.
        sentinels: Vec<Vec<u8>>,
        /// At least so many files.
        files: u64,
        /// At least so many bytes in files.
        bytes: u64,
        /// At least so many files of each of these names, wherever they are in the tree.
        count: Vec<(Vec<u8>, u64)>,
        /// Members that a platform loses silently: modes, links, empty directories.
        members: Vec<Member>,
        /// The repositories in the tree, each by the path of its `.git`. Where it is recorded, empty or not, bounds count
        /// work alone ([`crate::work`]); a tree without it was recorded before that was told apart.
        git: Option<Vec<Vec<u8>>>,
        /// Root over every member's path, type, mode, content and link target; then an added file is damage.
        merkle: Option<Sha>,
    },
}

/// A tree's member that is more than a plain file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Relative to the tree, any bytes; `.` is the tree's own directory.
    pub path: Vec<u8>,
    /// What it is.
    pub what: MemberKind,
}

/// What a recorded member is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberKind {
    /// A regular file with these permission bits.
    File(u32),
    /// A directory with these permission bits, recorded because it is empty, or the tree's own because it is closed.
    Empty(u32),
    /// A symbolic link to this target.
    Link(Vec<u8>),
}

impl<'a> Entry<'a> {
    /// `file`, `blob` or `tree`.
    pub fn kind(&self) -> Kind {
        match self.shape {
            Shape::Link { .. } | Shape::File { .. } => Kind::File,
            Shape::Blob { .. } => Kind::Blob,
            Shape::Tree { .. } => Kind::Tree,
        }
    }

    /// The entry of a manifest line; a field that does not fit its kind is an error.
    pub(crate) fn of(line: &mut Fields<'a>) -> Result<Self, String> {
        let entry = Self {
            id: line.id.take().ok_or("no 'id'")?.0.0,
            path: line.path.take().ok_or("no 'path'")?.0.0,
            tier: line.tier.take().filter(|t| *t <= TIERS).ok_or("'tier' is not 0 to 4")?,
            shape: shape(line.kind.take().ok_or("no 'kind'")?.0, line)?,
            needs: list(&mut line.needs, |id| id.0.0),
            restore: line.restore.take().map(|t| t.0.0),
            timeout_s: line.timeout_s.take(),
            notes: line.notes.take().map(|t| t.0.0),
        };
        line.done()?;
        if entry.timeout_s.is_some_and(|s| s == 0 || s > LONGEST_S) {
            return Err("'timeout_s' is not 1 to 86400".into());
        }
        Ok(entry)
    }

    /// The same with nothing borrowed.
    pub fn into_owned(self) -> Entry<'static> {
        let owned = |text: Cow<'a, str>| Cow::Owned(text.into_owned());
        Entry {
            id: owned(self.id),
            path: Cow::Owned(self.path.into_owned()),
            tier: self.tier,
            shape: self.shape,
            needs: self.needs.into_iter().map(owned).collect(),
            restore: self.restore.map(owned),
            timeout_s: self.timeout_s,
            notes: self.notes.map(owned),
        }
    }

    /// The entry as one line of JSON, without newline.
    pub fn to_json(&self) -> String {
        let mut o = Object::new();
        o.text("id", &self.id);
        o.text("path", &name::encode(&self.path));
        o.text("kind", self.kind().word());
        o.raw("tier", &self.tier.to_string());
        write_shape(&self.shape, &mut o);
        if !self.needs.is_empty() {
            o.raw("needs", &join(self.needs.iter().map(|n| json::quote(n))));
        }
        if let Some(text) = &self.restore {
            o.text("restore", text);
        }
        if let Some(seconds) = self.timeout_s {
            o.raw("timeout_s", &seconds.to_string());
        }
        if let Some(text) = &self.notes {
            o.text("notes", text);
        }
        o.end()
    }
}

/// Letters, digits, `.`, `_`, `-`; at most 64; the first one a letter or digit.
pub fn is_id(text: &str) -> bool {
    (1..=ID).contains(&text.len())
        && text.as_bytes()[0].is_ascii_alphanumeric()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

fields! {
    /// One line below the header: an entry or a signature.
    Fields<'a> {
        id: Text<Id<'a>>,
        path: Text<Place<'a>>,
        kind: Text<Kind>,
        tier: u8,
        size: u64,
        sha256: Text<Sha>,
        mode: Text<Mode>,
        target: Text<Path>,
        escrow: Text<Long>,
        samples: List<Text<Sha>>,
        sentinels: List<Text<Below>>,
        files: u64,
        bytes: u64,
        count: Counts,
        members: List<Member>,
        git: List<Text<Below>>,
        merkle: Text<Sha>,
        needs: List<Text<Id<'a>>>,
        restore: Text<Short<'a>>,
        timeout_s: u64,
        notes: Text<Short<'a>>,
        sig: Text<Long>,
        key: Text<Long>,
        value: Text<Long>,
    }
}

fields! {
    /// A tree's member.
    MemberFields<'a> { path: Text<Within>, dir: bool, mode: Text<Mode>, target: Text<Path> }
}

/// An entry's name.
pub(crate) struct Id<'a>(Cow<'a, str>);

/// Where a tree's member is.
pub(crate) struct Within(Vec<u8>);

/// Where an entry is.
pub(crate) struct Place<'a>(Cow<'a, [u8]>);

impl<'a> FromText<'a> for Id<'a> {
    const IS: &'static str = "an id";

    fn from_text(text: Cow<'a, str>) -> Option<Self> {
        is_id(&text).then_some(Self(text))
    }
}

impl<'a> FromText<'a> for Place<'a> {
    const IS: &'static str = "a path below the workspace or '~/'";

    fn from_text(text: Cow<'a, str>) -> Option<Self> {
        let below = |path: &Cow<[u8]>| name::is_contained(path.strip_prefix(b"~/").unwrap_or(path));
        name::decoded(text).filter(below).map(Self)
    }
}

impl<'a> FromText<'a> for Within {
    const IS: &'static str = "a path below its tree, or '.'";

    fn from_text(text: Cow<'a, str>) -> Option<Self> {
        if text == "." { Some(Self(b".".to_vec())) } else { Below::from_text(text).map(|path| Self(path.0)) }
    }
}

impl<'a> FromText<'a> for Kind {
    const IS: &'static str = "file, blob or tree";

    fn from_text(text: Cow<'a, str>) -> Option<Self> {
        Self::from_word(text.as_bytes()).filter(|kind| matches!(kind, Self::File | Self::Blob | Self::Tree))
    }
}

impl<'a> Deserialize<'a> for Member {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        let mut fields = MemberFields::deserialize(from)?;
        Self::of(&mut fields).map_err(D::Error::custom)
    }
}

impl Member {
    fn of(fields: &mut MemberFields<'_>) -> Result<Self, String> {
        let path = fields.path.take().ok_or("a member without 'path'")?.0.0;
        let what = if let Some(Text(target)) = fields.target.take() {
            MemberKind::Link(target.0)
        } else {
            let mode = fields.mode.take().ok_or("a member without 'mode'")?.0.0;
            if fields.dir.take() == Some(true) { MemberKind::Empty(mode) } else { MemberKind::File(mode) }
        };
        fields.done()?;
        Ok(Self { path, what })
    }
}

fn list<T, U>(field: &mut Option<List<T>>, of: impl Fn(T) -> U) -> Vec<U> {
    field.take().unwrap_or_default().0.into_iter().map(of).collect()
}

fn shape(kind: Kind, line: &mut Fields<'_>) -> Result<Shape, String> {
    if kind == Kind::Tree {
        return Ok(Shape::Tree {
            sentinels: list(&mut line.sentinels, |path| path.0.0),
            files: line.files.take().unwrap_or(0),
            bytes: line.bytes.take().unwrap_or(0),
            count: line.count.take().unwrap_or_default().0,
            members: line.members.take().unwrap_or_default().0,
            git: line.git.take().map(|git| git.0.into_iter().map(|path| path.0.0).collect()),
            merkle: line.merkle.take().map(|sha| sha.0),
        });
    }
    if kind == Kind::File
        && let Some(Text(target)) = line.target.take()
    {
        return Ok(Shape::Link { target: target.0 });
    }
    let size = line.size.take().ok_or("no 'size'")?;
    let sha256 = line.sha256.take().map(|sha| sha.0);
    let mode = line.mode.take().ok_or("no 'mode'")?.0.0;
    if kind == Kind::Blob {
        return Ok(Shape::Blob { size, sha256, mode, samples: list(&mut line.samples, |sha| sha.0) });
    }
    let escrow = line.escrow.take().map(|text| text.0.0);
    Ok(Shape::File { size, sha256: sha256.ok_or("no 'sha256'")?, mode, escrow })
}

fn write_shape(shape: &Shape, o: &mut Object) {
    let octal = |mode: &u32| json::quote(&format!("{mode:04o}"));
    match shape {
        Shape::Link { target } => o.text("target", &name::encode(target)),
        Shape::File { size, sha256, mode, escrow } => {
            o.raw("size", &size.to_string());
            o.text("sha256", &sha256.hex());
            o.raw("mode", &octal(mode));
            if let Some(text) = escrow {
                o.text("escrow", text);
            }
        }
        Shape::Blob { size, sha256, mode, samples } => {
            o.raw("size", &size.to_string());
            if let Some(sha) = sha256 {
                o.text("sha256", &sha.hex());
            }
            o.raw("mode", &octal(mode));
            if !samples.is_empty() {
                o.raw("samples", &join(samples.iter().map(|s| json::quote(&s.hex()))));
            }
        }
        Shape::Tree { sentinels, files, bytes, count, members, git, merkle } => {
            o.raw("sentinels", &join(sentinels.iter().map(|s| json::quote(&name::encode(s)))));
            o.raw("files", &files.to_string());
            o.raw("bytes", &bytes.to_string());
            if !count.is_empty() {
                let mut counts = Object::new();
                for (file, n) in count {
                    counts.raw(&name::encode(file), &n.to_string());
                }
                o.raw("count", &counts.end());
            }
            if !members.is_empty() {
                o.raw("members", &join(members.iter().map(write_member)));
            }
            if let Some(git) = git {
                o.raw("git", &join(git.iter().map(|g| json::quote(&name::encode(g)))));
            }
            if let Some(root) = merkle {
                o.text("merkle", &root.hex());
            }
        }
    }
}

fn write_member(member: &Member) -> String {
    let mut o = Object::new();
    o.text("path", &name::encode(&member.path));
    match &member.what {
        MemberKind::File(mode) => o.text("mode", &format!("{mode:04o}")),
        MemberKind::Empty(mode) => {
            o.raw("dir", "true");
            o.text("mode", &format!("{mode:04o}"));
        }
        MemberKind::Link(target) => o.text("target", &name::encode(target)),
    }
    o.end()
}

fn join(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}
