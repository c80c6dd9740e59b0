//! One manifest entry: what a path of the healthy workspace must look like, and how it comes back.

use std::borrow::Cow;

use files::digest::Sha;

use crate::fields::{Keys, Object, to_sha};
use crate::json::{self, Json};
use crate::name;

/// Longest id, in bytes.
const ID: usize = 64;
/// Highest tier.
const TIERS: u64 = 4;
/// Longest recipe bound: a day.
const LONGEST_S: u64 = 86_400;

/// What one path must look like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its name in the manifest: letters, digits, `.`, `_`, `-`.
    pub id: String,
    /// Where it is: below the workspace root, or below the home when it begins with `~/`. Any bytes.
    pub path: Vec<u8>,
    /// 0 is restored first, 4 last.
    pub tier: u8,
    /// What must be so of it.
    pub shape: Shape,
    /// Ids that must be healthy before its recipe runs.
    pub needs: Vec<String>,
    /// Shell text that brings it back.
    pub restore: Option<String>,
    /// Seconds its recipe may take.
    pub timeout_s: Option<u64>,
    /// For a person.
    pub notes: Option<String>,
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
    /// Relative to the tree, any bytes.
    pub path: Vec<u8>,
    /// What it is.
    pub what: MemberKind,
}

/// What a recorded member is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberKind {
    /// A regular file with these permission bits.
    File(u32),
    /// A directory with these permission bits, recorded because it is empty.
    Empty(u32),
    /// A symbolic link to this target.
    Link(Vec<u8>),
}

impl Entry {
    /// `file`, `blob` or `tree`.
    pub fn kind(&self) -> contract::Kind {
        match self.shape {
            Shape::Link { .. } | Shape::File { .. } => contract::Kind::File,
            Shape::Blob { .. } => contract::Kind::Blob,
            Shape::Tree { .. } => contract::Kind::Tree,
        }
    }

    /// Reads an entry; any key that is unknown or does not fit its kind is an error.
    pub fn from_json(value: Json<'_>) -> Result<Self, String> {
        let mut keys = Keys::of(value)?;
        let id = keys.owned("id")?.ok_or("no 'id'")?;
        if !is_id(&id) {
            return Err(format!("{} is not an id", json::quote(&id)));
        }
        let path = keys.path("path")?.ok_or("no 'path'")?;
        if !name::is_contained(path.strip_prefix(b"~/").unwrap_or(&path)) {
            return Err("'path' is not below the workspace".into());
        }
        let kind = keys.text("kind")?.ok_or("no 'kind'")?;
        let tier = keys.number("tier")?.filter(|t| *t <= TIERS).ok_or("'tier' is not 0 to 4")?;
        let shape = shape(&kind, &mut keys)?;
        let needs = keys.list("needs")?.into_iter().map(|n| match n {
            Json::Text(n) if is_id(&n) => Ok(n.into_owned()),
            _ => Err("'needs' is not a list of ids".to_owned()),
        });
        let entry = Self {
            id,
            path,
            tier: u8::try_from(tier).map_err(|e| e.to_string())?,
            shape,
            needs: needs.collect::<Result<_, _>>()?,
            restore: keys.owned("restore")?,
            timeout_s: keys.number("timeout_s")?,
            notes: keys.owned("notes")?,
        };
        keys.done()?;
        if entry.timeout_s.is_some_and(|s| s == 0 || s > LONGEST_S) {
            return Err("'timeout_s' is not 1 to 86400".into());
        }
        Ok(entry)
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
            o.raw("needs", &list(self.needs.iter().map(|n| json::quote(n))));
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

fn shape(kind: &str, keys: &mut Keys<'_>) -> Result<Shape, String> {
    let size = |keys: &mut Keys<'_>| keys.number("size")?.ok_or("no 'size'".to_owned());
    match kind {
        "file" => {
            if let Some(target) = keys.path("target")? {
                return Ok(Shape::Link { target });
            }
            Ok(Shape::File {
                size: size(keys)?,
                sha256: keys.sha("sha256")?.ok_or("no 'sha256'")?,
                mode: keys.mode("mode")?.ok_or("no 'mode'")?,
                escrow: keys.long_text("escrow")?.map(Cow::into_owned),
            })
        }
        "blob" => Ok(Shape::Blob {
            size: size(keys)?,
            sha256: keys.sha("sha256")?,
            mode: keys.mode("mode")?.ok_or("no 'mode'")?,
            samples: keys.list("samples")?.iter().map(to_sha).collect::<Result<_, _>>()?,
        }),
        "tree" => Ok(Shape::Tree {
            sentinels: keys.list("sentinels")?.iter().map(contained).collect::<Result<_, _>>()?,
            files: keys.number("files")?.unwrap_or(0),
            bytes: keys.number("bytes")?.unwrap_or(0),
            count: keys.counts("count")?,
            members: keys.list("members")?.into_iter().map(member).collect::<Result<_, _>>()?,
            git: repositories(keys)?,
            merkle: keys.sha("merkle")?,
        }),
        other => Err(format!("{} is not a kind", json::quote(other))),
    }
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
                o.raw("samples", &list(samples.iter().map(|s| json::quote(&s.hex()))));
            }
        }
        Shape::Tree { sentinels, files, bytes, count, members, git, merkle } => {
            o.raw("sentinels", &list(sentinels.iter().map(|s| json::quote(&name::encode(s)))));
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
                o.raw("members", &list(members.iter().map(write_member)));
            }
            if let Some(git) = git {
                o.raw("git", &list(git.iter().map(|g| json::quote(&name::encode(g)))));
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

fn member(value: Json<'_>) -> Result<Member, String> {
    let mut keys = Keys::of(value)?;
    let path = keys
        .path("path")?
        .filter(|p| name::is_contained(p))
        .ok_or("a member's 'path' is not below its tree")?;
    let what = if let Some(target) = keys.path("target")? {
        MemberKind::Link(target)
    } else {
        let mode = keys.mode("mode")?.ok_or("a member without 'mode'")?;
        if keys.flag("dir")? { MemberKind::Empty(mode) } else { MemberKind::File(mode) }
    };
    keys.done()?;
    Ok(Member { path, what })
}

fn repositories(keys: &mut Keys<'_>) -> Result<Option<Vec<Vec<u8>>>, String> {
    if !keys.has("git") {
        return Ok(None);
    }
    let paths = keys.list("git")?;
    let paths =
        paths.iter().map(|p| contained(p).map_err(|_| "'git' is not a list of paths below the tree".into()));
    Ok(Some(paths.collect::<Result<_, String>>()?))
}

fn contained(value: &Json<'_>) -> Result<Vec<u8>, String> {
    match value {
        Json::Text(text) => name::decode(text).filter(|p| name::is_contained(p)),
        _ => None,
    }
    .ok_or("a sentinel is not a path below its tree".into())
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}
