//! New entries: from paths given, and from the models of this installation.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use contract::message::{hint, note, quoted};
use contract::{Error, exit, home};
use models::Manifest as Models;
use workspace::capture::{self, As, TreeOptions};
use workspace::entry::is_id;
use workspace::place::{Places, root_path};
use workspace::{Entry, Manifest, Shape, content, name, verify, wipe};

use crate::{Options, no_id};

/// Captures each path and puts it into the manifest.
pub(crate) fn paths(manifest: &mut Manifest, options: &Options, operands: &[Vec<u8>]) -> Result<(), Error> {
    for operand in operands {
        let path = entry_path(manifest, operand)?;
        let id = options.id.clone().unwrap_or_else(|| free_id(manifest, &path));
        if !is_id(&id) {
            return Err(no_id(&id));
        }
        let entry = capture_entry(manifest, options, id, path)?;
        // Captured as it stands already: the signature still fits.
        if manifest.entry(&entry.id) == Some(&entry) {
            continue;
        }
        // One path, one entry: under a new id the old one would be damaged and repaired a second time.
        manifest.lines.retain(|l| l.entry.path != entry.path || l.entry.id == entry.id);
        manifest.put(entry);
    }
    Ok(())
}

pub(crate) fn capture_entry(
    manifest: &Manifest,
    options: &Options,
    id: String,
    path: Vec<u8>,
) -> Result<Entry<'static>, Error> {
    let at_path = manifest.lines.iter().map(|l| &l.entry).find(|e| e.path == path);
    let old = at_path.or_else(|| manifest.entry(&id)).cloned();
    let places = Places::open(&manifest.header)?;
    let blank = Entry {
        id: id.into(),
        path: path.into(),
        tier: 0,
        shape: Shape::Link { target: Vec::new() },
        needs: Vec::new(),
        restore: None,
        timeout_s: None,
        notes: None,
    };
    let (root, below) = places.of(&blank)?;
    if let Some(kept) = old.as_ref().filter(|e| e.path == blank.path && changes_words_alone(options))
        && root.stat(below).is_err_and(|cause| verify::is_absent(&cause))
    {
        let path = quoted(OsStr::from_bytes(&blank.path));
        note("swr-add", &format!("{path} is absent: its words are changed, what was captured of it stays"));
        return Ok(worded(Entry { id: blank.id, ..kept.clone() }, options));
    }
    let keep = old.as_ref().map(|e| tree_options(&e.shape)).unwrap_or_default();
    let or = |given: &Vec<Vec<u8>>, kept: Vec<Vec<u8>>| if given.is_empty() { kept } else { given.clone() };
    let tree = TreeOptions {
        sentinels: or(&options.sentinels, keep.sentinels),
        count: or(&options.count, keep.count),
        hash: options.hash || keep.hash,
        jobs: content::jobs(),
    };
    if let Some(kind) = options.kind
        && let Some(what) = capture::misfit(root, below, kind)
    {
        let path = quoted(OsStr::from_bytes(&blank.path));
        return Err(Error::usage(format!("{path} is {what}: --kind {} does not fit", kind_word(kind)))
            .hint("without --kind it becomes what fits"));
    }
    let kind = options.kind.or(old.as_ref().map(|e| kind_of(&e.shape))).unwrap_or(As::Fitting);
    let mut shape = capture::shape(root, below, kind, &tree).map_err(|why| {
        let at = quoted(root.path().as_os_str());
        Error::new(exit::IO, why).hint(match root.stat(below) {
            Err(_) => format!("name what is there, below {at} or by its absolute path"),
            Ok(_) if !tree.sentinels.is_empty() => {
                "make it whole first, or name by --sentinel files of it that are there and not empty".into()
            }
            Ok(_) => "make it whole and readable first: what is captured is what comes back".into(),
        })
    })?;
    let for_trees = options.hash || !options.sentinels.is_empty() || !options.count.is_empty();
    if for_trees && !matches!(shape, Shape::Tree { .. }) {
        return Err(Error::usage("--sentinel, --count-name and --hash are for a directory"));
    }
    if let (Shape::File { escrow, sha256, .. }, Some(Shape::File { escrow: text, sha256: before, .. })) =
        (&mut shape, old.as_ref().map(|e| &e.shape))
        && *sha256 == *before
    {
        escrow.clone_from(text);
    }
    let (id, path) = (blank.id.clone(), blank.path.clone());
    let base = old.unwrap_or_else(|| Entry { tier: tier_of(&blank.path, &shape), ..blank });
    Ok(worded(Entry { id, path, shape, ..base }, options))
}

/// An entry with what the options say of it beyond its capture.
fn worded(entry: Entry<'static>, options: &Options) -> Entry<'static> {
    Entry {
        tier: options.tier.unwrap_or(entry.tier),
        needs: match &options.needs {
            None => entry.needs,
            Some(needs) => needs.iter().cloned().map(Cow::Owned).collect(),
        },
        restore: options.restore.clone().map(Cow::Owned).or(entry.restore),
        timeout_s: options.timeout_s.or(entry.timeout_s),
        notes: options.notes.clone().map(Cow::Owned).or(entry.notes),
        ..entry
    }
}

/// Whether nothing that the options say needs a look at the disk, and they say something.
fn changes_words_alone(options: &Options) -> bool {
    let has_words = options.restore.is_some() || options.needs.is_some() || options.tier.is_some();
    let of_the_disk = options.kind.is_some() || options.hash;
    (has_words || options.timeout_s.is_some() || options.notes.is_some())
        && !(of_the_disk || !options.sentinels.is_empty() || !options.count.is_empty())
}

/// What a tree entry records beyond its bounds, to record it again.
pub(crate) fn tree_options(shape: &Shape) -> TreeOptions {
    match shape {
        Shape::Tree { sentinels, count, merkle, .. } => TreeOptions {
            sentinels: sentinels.clone(),
            count: count.iter().map(|(file, _)| file.clone()).collect(),
            hash: merkle.is_some(),
            jobs: content::jobs(),
        },
        _ => TreeOptions::default(),
    }
}

/// The kind to capture an entry as again.
pub(crate) fn kind_of(shape: &Shape) -> As {
    match shape {
        Shape::File { .. } => As::File,
        Shape::Blob { .. } => As::Blob,
        _ => As::Fitting,
    }
}

fn kind_word(kind: As) -> &'static str {
    match kind {
        As::Tree => "tree",
        As::Blob => "blob",
        As::File | As::Fitting => "file",
    }
}

/// The manifest's form of a path: below the root, else `~/` below the home.
fn entry_path(manifest: &Manifest, operand: &[u8]) -> Result<Vec<u8>, Error> {
    let given = Path::new(OsStr::from_bytes(operand));
    let root = root_path(&manifest.header)?;
    let home = home::user_home().ok();
    let absolute = match (operand.strip_prefix(b"~/"), &home) {
        (Some(below), Some(home)) => home.join(OsStr::from_bytes(below)),
        _ if given.is_absolute() => given.to_owned(),
        _ => root.join(given),
    };
    let clean = without_dots(&absolute)
        .ok_or_else(|| Error::usage(format!("{} leaves the workspace", quoted(given.as_os_str()))))?;
    if given.is_relative() && !operand.starts_with(b"~/") {
        say_which(given, &clean);
    }
    if clean != root && Some(&clean) != home.as_ref() {
        refuse_own(given, &clean)?;
    }
    if let Ok(below) = clean.strip_prefix(&root) {
        return checked(below.as_os_str().as_bytes().to_vec(), given);
    }
    match home.as_ref().and_then(|h| clean.strip_prefix(h).ok()) {
        Some(below) => checked([b"~/", below.as_os_str().as_bytes()].concat(), given),
        None => Err(Error::usage(format!(
            "{} is neither below {} nor below the home",
            quoted(given.as_os_str()),
            quoted(root.as_os_str())
        ))),
    }
}

/// Says which of two is meant where a relative path names one below the workspace and another one here.
fn say_which(given: &Path, meant: &Path) {
    let place = |path: &Path| path.symlink_metadata().ok().map(|m| (m.dev(), m.ino()));
    if let (Some(here), Some(there)) = (place(given), place(meant))
        && here != there
    {
        let (given, meant) = (quoted(given.as_os_str()), quoted(meant.as_os_str()));
        note("swr-add", &format!("{given} is {meant} in the workspace, not the one in this directory"));
        hint("the absolute path names the other");
    }
}

/// What swr keeps changes with every turn: as an entry it would be damaged for ever.
fn refuse_own(given: &Path, clean: &Path) -> Result<(), Error> {
    let Ok(own) = home::swr_home() else { return Ok(()) };
    let (name, at) = (quoted(given.as_os_str()), quoted(own.as_os_str()));
    if clean.starts_with(&own) {
        Err(Error::usage(format!("{name} is of what swr keeps in {at}, which changes by itself"))
            .hint("keep a copy of that directory elsewhere"))
    } else if own.starts_with(clean) {
        Err(Error::usage(format!("{name} holds what swr keeps in {at}, which changes by itself"))
            .hint(format!("name what is in {name} instead, without {at}")))
    } else {
        Ok(())
    }
}

fn checked(path: Vec<u8>, given: &Path) -> Result<Vec<u8>, Error> {
    if name::is_contained(path.strip_prefix(b"~/").unwrap_or(&path)) {
        Ok(path)
    } else {
        Err(Error::usage(format!("{} is the workspace itself", quoted(given.as_os_str()))))
    }
}

/// An absolute path without `.`; `None` with a `..`, which would have to be resolved through links.
fn without_dots(path: &Path) -> Option<PathBuf> {
    let parts = path.components();
    parts.map(|c| if c == Component::ParentDir { None } else { Some(c) }).collect()
}

/// The id that the path's entry has, else one made from the path that no other entry has.
fn free_id(manifest: &Manifest, path: &[u8]) -> String {
    if let Some(line) = manifest.lines.iter().find(|l| l.entry.path == path) {
        return line.entry.id.to_string();
    }
    let made = id_of(path);
    let first = if made.is_empty() { "entry".to_owned() } else { made };
    let mut id = first.clone();
    let mut n = 1_usize;
    while manifest.entry(&id).is_some() {
        n += 1;
        let suffix = format!("-{n}");
        let end = first.len().min(64 - suffix.len());
        id = format!("{}{suffix}", &first[..end]);
    }
    id
}

/// An id made from a path: what is no id character becomes `-`.
pub(crate) fn id_of(path: &[u8]) -> String {
    let text: String = path
        .iter()
        .map(|b| if b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_') { char::from(*b) } else { '-' })
        .collect();
    let text = text.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    text.chars()
        .rev()
        .take(64)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect::<String>()
        .trim_start_matches(['-', '.', '_'])
        .to_owned()
}

/// The tier that fits what a path is.
fn tier_of(path: &[u8], shape: &Shape) -> u8 {
    let text = String::from_utf8_lossy(path).to_lowercase();
    let is_secret = wipe::is_secret(path)
        || [".shim/", "token", "credential", ".ssh/", ".netrc"].iter().any(|t| text.contains(t));
    match shape {
        _ if is_secret => 0,
        _ if wipe::is_volatile(path) => 4,
        Shape::Link { .. } | Shape::File { .. } => 1,
        Shape::Tree { .. } => 2,
        Shape::Blob { .. } => 3,
    }
}

/// An entry for each pinned model whose file is here, with the pin's hash, restored by `hf-fetch`.
pub(crate) fn models(manifest: &mut Manifest) -> Result<(), Error> {
    let list = Models::load()?;
    let mut added = 0;
    for model in list.everyday() {
        let path = model.path()?;
        let Ok(meta) = path.metadata() else { continue };
        if meta.len() != model.bytes {
            note("swr-add", &format!("{} is not whole, not added", quoted(path.as_os_str())));
            continue;
        }
        let options = Options {
            id: Some(format!("model-{}", model.role)),
            // A link to a model is protected as a link.
            kind: path.symlink_metadata().is_ok_and(|m| m.is_file()).then_some(As::Blob),
            tier: Some(3),
            restore: Some(format!("hf-fetch {}", model.role)),
            timeout_s: Some(3600),
            ..Options::default()
        };
        paths(manifest, &options, &[path.as_os_str().as_bytes().to_vec()])?;
        let id = format!("model-{}", model.role);
        let found = manifest.entry(&id).map(|e| &e.shape);
        if let (Some(Shape::Blob { sha256, .. }), Some(pin)) = (found, model.sha256)
            && *sha256 != Some(pin)
        {
            return Err(Error::new(
                exit::IO,
                format!("{} is not the pinned model", quoted(path.as_os_str())),
            )
            .hint(format!("gguf-verify --deep {}, then hf-fetch {}", model.role, model.role)));
        }
        added += 1;
    }
    if added == 0 {
        note("swr-add", "no pinned model is here");
    }
    Ok(())
}
