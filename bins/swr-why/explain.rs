//! The words for a person: what an entry is, what is wrong with it, what hangs on it, what to do.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use contract::message::one_line;
use contract::{State, Verdict};
use workspace::history::Survival;
use workspace::place::root_path;
use workspace::{Entry, Manifest, Shape, name, wipe};

/// One entry, with what was found of it.
pub(crate) fn entry(manifest: &Manifest, entry: &Entry, past: &[Survival], found: &[Verdict]) -> String {
    let mut text = format!("{} ({}, tier {}, {})\n", entry.id, what(entry), entry.tier, path(entry));
    for verdict in found {
        let _ = writeln!(text, "  cause:      {}: {}", verdict.state.word(), verdict.detail);
    }
    let _ = writeln!(text, "  risk:       {}{}", risk(entry), record(entry, past));
    let dependents: Vec<_> =
        manifest.lines.iter().filter(|l| l.entry.needs.contains(&entry.id)).map(|l| &*l.entry.id).collect();
    if !dependents.is_empty() {
        let _ =
            writeln!(text, "  dependents: {} (not repaired while this is damaged)", dependents.join(", "));
    }
    if !entry.needs.is_empty() {
        let _ = writeln!(text, "  needs:      {}", entry.needs.join(", "));
    }
    if let Some(notes) = &entry.notes {
        let _ = writeln!(text, "  notes:      {}", one_line(notes));
    }
    let _ = writeln!(text, "  fix:        {}\n", fix(manifest, entry, found));
    text
}

fn path(entry: &Entry) -> String {
    one_line(&name::encode(&entry.path))
}

fn what(entry: &Entry) -> String {
    match &entry.shape {
        Shape::Link { target } => format!("link to {}", one_line(&name::encode(target))),
        Shape::File { size, .. } => format!("file of {size} bytes"),
        Shape::Blob { size, .. } => format!("blob of {size} bytes"),
        Shape::Tree { files, bytes, .. } => format!("tree of at least {files} files and {bytes} bytes"),
    }
}

/// Why a platform loses such a thing.
fn risk(entry: &Entry) -> &'static str {
    match &entry.shape {
        _ if wipe::is_volatile(&entry.path) => {
            "below a directory that platforms sweep: rebuild it, never store in it"
        }
        Shape::Blob { .. } => "large: the first to go when a snapshot has a size cap",
        Shape::File { mode, .. } if mode & 0o111 != 0 => "execute bits are lost far more often than content",
        Shape::Link { .. } => "a snapshot that copies files may replace a link by what it points at",
        Shape::Tree { .. } => "a directory can survive while it is emptied",
        Shape::File { .. } if entry.tier == 0 => "what everything else needs first",
        Shape::File { .. } => "small: seldom lost alone",
    }
}

/// What was seen of it here, where anything was.
fn record(entry: &Entry, past: &[Survival]) -> String {
    match past.iter().find(|s| s.id == entry.id) {
        Some(Survival { observations, survived, .. }) if *observations > 0 => {
            format!("; lost in {} of {observations} turns here", observations - survived)
        }
        _ => String::new(),
    }
}

fn fix(manifest: &Manifest, entry: &Entry, found: &[Verdict]) -> String {
    if found.iter().any(|v| v.state == State::Unknown) {
        let at = root_path(&manifest.header).map(|root| root.join(OsStr::from_bytes(&entry.path)));
        let at = at.ok().filter(|_| !entry.path.starts_with(b"~/"));
        let at = at.map_or_else(|| operand(entry), |at| word(&name::encode(at.as_os_str().as_bytes())));
        return format!(
            "it could not be checked, and nothing is repaired: ls -ld {at} shows whether a mount or permissions are missing, then swr check --only {}",
            entry.id
        );
    }
    // What it needs has to be healthy first, and costs nothing where it is.
    let only = needs(manifest, entry).iter().fold("swr restore".to_owned(), |all, id| all + " --only " + id);
    if !found.is_empty() && found.iter().all(|v| v.state == State::Stripped) {
        return format!("{only} (sets the mode, runs no recipe)");
    }
    match (&entry.shape, &entry.restore) {
        (Shape::File { escrow: Some(_), .. }, _) => format!("{only} (its content is in the manifest)"),
        (Shape::Link { .. }, _) => format!("{only} (makes the link anew)"),
        (_, Some(recipe)) => format!("{only} (runs: {})", one_line(recipe)),
        (Shape::File { size, .. }, None) if *size <= workspace::escrow::FILE => {
            format!("it has no recipe: bring it back by hand, then swr escrow {} keeps a copy", entry.id)
        }
        (_, None) => {
            format!(
                "it has no recipe: bring it back by hand, then swr add {} --restore '...'",
                operand(entry)
            )
        }
    }
}

/// The ids of all that an entry needs, and its own at the end; swr restore sorts them itself.
fn needs<'a>(manifest: &'a Manifest, entry: &'a Entry) -> Vec<&'a str> {
    let mut ids: Vec<&str> = vec![&entry.id];
    let mut at = 0;
    while let Some(id) = ids.get(at) {
        let more = manifest.entry(id).map_or(&[][..], |e| &e.needs);
        for need in more {
            if !ids.contains(&&**need) && manifest.entry(need).is_some() {
                ids.push(need);
            }
        }
        at += 1;
    }
    ids.reverse();
    ids
}

/// The entry's path as a word of a command line; `swr add` takes it as below the workspace root from anywhere.
fn operand(entry: &Entry) -> String {
    word(&path(entry))
}

fn word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%~".contains(c);
    let front = if text.starts_with('-') { "./" } else { "" };
    if text.chars().all(plain) {
        format!("{front}{text}")
    } else {
        format!("'{front}{}'", text.replace('\'', "'\\''"))
    }
}

/// A wipe signature.
pub(crate) fn signature(subject: &str, detail: &str) -> String {
    let meaning = match subject {
        "cold-start" => "the box is new or was reset: everything has to come back, in tier order",
        "size-cap-eviction" => {
            "the platform's snapshot has a size cap: keep large things out of it and refetch them"
        }
        "exclusion-sweep" => "the platform drops build and cache directories: they are rebuilt, never stored",
        "permission-reset" => "the snapshot does not keep modes: bits are set again, content is whole",
        "credential-loss" => {
            "secrets and shims went, nothing else: bring them back first, the rest may fail without"
        }
        "local-corruption" => {
            "content changed on this box: a half download, an edit or a bad disk, not a snapshot"
        }
        "moved-host" => "this is another machine: what was built for the old CPU has to be built again",
        "needs" => {
            "what needs each other in a circle cannot come back, and a need on nothing holds nothing up"
        }
        "signature" => "recipes are code: none is run until the manifest is signed",
        _ => "no habit of a platform that has a name",
    };
    format!("{subject}: {}\n  meaning:    {meaning}\n\n", one_line(detail))
}
