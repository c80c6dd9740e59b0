//! Which source is built: a pinned archive's tree, the user's checkout, or a fresh clone at the manifest's tag.

use std::path::{Path, PathBuf};
use std::time::Duration;

use child::{Cause, Sink};
use contract::clock::Deadline;
use contract::{Fix, State, home, message};
use files::{atomic, tree as renames};
use models::{Archive, Manifest};

use crate::halt::{Halt, io, say};
use crate::remote::{self, Distrust};
use crate::tree::Tree;
use crate::{archive, machine, tree};

/// A source tree that is proven and whole.
pub(crate) struct Source {
    /// Its directory.
    pub(crate) dir: PathBuf,
    /// What it is: a git commit, or the tree that an archive holds.
    pub(crate) tree: String,
}

/// What has to be done to have a source.
pub(crate) enum Plan {
    /// It is there.
    Use(Source),
    /// The archive is to be unpacked.
    Unpack(PathBuf, Archive),
    /// The manifest's tag is to be cloned; the words say what is wrong with the tree that is there.
    Clone {
        /// Where to.
        dir: PathBuf,
        /// Why: `X is gutted: ... missing`, or that it is not there.
        why: String,
    },
}

impl Plan {
    /// In words, for `would ...`.
    pub(crate) fn words(&self, manifest: &Manifest) -> String {
        match self {
            Self::Use(source) => format!("{} ({})", quoted(&source.dir), source.tree),
            Self::Unpack(file, archive) => format!("{} ({})", quoted(file), archive.tree),
            Self::Clone { dir, why } => {
                let engine = &manifest.engine;
                format!(
                    "{} at {}, cloned into {}, because {why}",
                    remote::shown(&engine.remote),
                    engine.tag,
                    quoted(dir)
                )
            }
        }
    }
}

fn quoted(path: &Path) -> String {
    message::quoted(path.as_os_str())
}

/// Decides, without writing. A tree that is there and not trusted is refused, never replaced.
pub(crate) fn plan(from_archive: Option<&Path>, manifest: &Manifest) -> Result<Plan, Halt> {
    if let Some(file) = from_archive {
        let archive = archive::pinned(file, manifest)?;
        return Ok(match archive::proven(archive)? {
            Some(dir) => Plan::Use(Source { dir, tree: archive.tree.clone() }),
            None => Plan::Unpack(file.to_owned(), archive.clone()),
        });
    }
    let dir = home::llama_dir()?;
    let why = match tree::look(&dir)? {
        Tree::Whole => {
            remote::require_trusted(&dir)?;
            let tree = commit(&dir)?;
            report_drift(&dir, &tree, &manifest.engine.tag)?;
            return Ok(Plan::Use(Source { dir, tree }));
        }
        Tree::Foreign => {
            return Err(Halt::new(
                State::Bad,
                format!("{} holds something else than a source tree of the engine", quoted(&dir)),
            )
            .hint("SELFHEAL_LLAMA_DIR=DIR names another directory"));
        }
        Tree::Absent => format!("{} is missing", quoted(&dir)),
        Tree::Gutted(lost) => {
            // A fork with work in it is not replaced by something else. An emptied configuration names no fork.
            if dir.join(".git/config").metadata().is_ok_and(|m| m.len() > 0) {
                remote::require_trusted(&dir)?;
            }
            format!("{} is gutted: {} missing or empty", quoted(&dir), lost.join(" "))
        }
    };
    // Without a checkout, a tree unpacked earlier serves: it needs no network.
    for archive in &manifest.engine.archives {
        if let Some(unpacked) = archive::proven(archive)? {
            say(&format!("{why}; using the source unpacked from {}", archive.file));
            return Ok(Plan::Use(Source { dir: unpacked, tree: archive.tree.clone() }));
        }
    }
    require_clonable(manifest)?;
    Ok(Plan::Clone { dir, why })
}

/// Refuses a manifest, or a rewriting rule of git, that would clone from somewhere else.
fn require_clonable(manifest: &Manifest) -> Result<(), Halt> {
    let remote = &manifest.engine.remote;
    let effective = remote::effective(remote)?;
    for url in [remote, &effective] {
        if let Err(why) = remote::judge(url)
            && !home::any_remote()
        {
            // The former name redirects and the transport is named as it is; neither is cloned from unasked.
            let why = if why == Distrust::Former { Distrust::Elsewhere } else { why };
            return Err(remote::distrusted(url, why, "the remote to clone from,"));
        }
    }
    let tag = &manifest.engine.tag;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    if tag.is_empty() || tag.starts_with('-') || !tag.bytes().all(plain) {
        return Err(Halt::new(State::Bad, format!("the manifest's tag '{tag}' is not a tag")));
    }
    Ok(())
}

/// Carries a plan out.
pub(crate) fn bring(fix: &Fix, plan: Plan, manifest: &Manifest, deadline: Deadline) -> Result<Source, Halt> {
    match plan {
        Plan::Use(source) => Ok(source),
        Plan::Unpack(file, archive) => {
            let dir = archive::unpack(fix, &file, &archive, deadline)?;
            Ok(Source { dir, tree: archive.tree })
        }
        Plan::Clone { dir, why } => clone(fix, &dir, &why, manifest, deadline),
    }
}

/// Clones the manifest's tag beside `dir` and takes it there only when it is whole; what was there is moved aside.
fn clone(fix: &Fix, dir: &Path, why: &str, manifest: &Manifest, deadline: Deadline) -> Result<Source, Halt> {
    let (url, tag) = (&manifest.engine.remote, &manifest.engine.tag);
    say(&format!("{why}; cloning {} at {tag}", remote::shown(url)));
    let parent = dir.parent().unwrap_or(dir);
    atomic::make_dir(fix, parent).map_err(io("make", parent))?;
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let temporary = dir.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    crate::install::sweep(fix, parent, &format!(".{name}."));
    let outcome = machine::git()?
        .env("GIT_LFS_SKIP_SMUDGE", "1")
        .args(["clone", "--quiet", "--template=", "--depth", "1", "--single-branch", "--branch", tag, "--"])
        .arg(url)
        .arg(&temporary)
        .stdout(Sink::Null)
        .stderr(Sink::Tail(8 << 10))
        .limit(deadline.left().min(Duration::from_secs(1200)))
        .run();
    let result = match outcome.cause {
        Cause::Exited(0) => whole_and_trusted(&temporary),
        Cause::Interrupted(signal) => Err(machine::stopped(signal)),
        cause => {
            let said = remote::redacted(&String::from_utf8_lossy(&outcome.stderr));
            let said = said.lines().rfind(|l| !l.trim().is_empty()).unwrap_or(cause.word()).to_owned();
            Err(Halt::new(State::Failed, format!("{why}, and it cannot be cloned: {said}"))
                .hint("llama-rebuild --from-archive FILE needs no network"))
        }
    };
    let result = result.and_then(|tree| {
        if dir.symlink_metadata().is_ok() {
            let aside = atomic::move_aside(fix, dir).map_err(io("move aside", dir))?;
            say(&format!("the old tree is now {}", quoted(&aside)));
        }
        renames::rename_new(&temporary, dir).map_err(io("move", &temporary))?;
        Ok(Source { dir: dir.to_owned(), tree })
    });
    if result.is_err() {
        let _ = renames::remove_own(fix, &temporary);
    }
    result
}

fn whole_and_trusted(dir: &Path) -> Result<String, Halt> {
    match tree::look(dir)? {
        Tree::Whole => {}
        Tree::Gutted(lost) => {
            let words = format!("the clone is no whole tree: {} missing", lost.join(" "));
            return Err(Halt::new(State::Bad, words));
        }
        Tree::Absent | Tree::Foreign => {
            return Err(Halt::new(State::Bad, "what was cloned is no source tree of the engine"));
        }
    }
    remote::require_trusted(dir)?;
    commit(dir)
}

/// The commit that is checked out.
fn commit(dir: &Path) -> Result<String, Halt> {
    if !tree::is_checkout(dir) {
        return Ok("unknown".into());
    }
    let text = ask(dir, &["rev-parse", "--verify", "--quiet", "HEAD"])?;
    let text = text.trim();
    let hex = text.len() >= 40 && text.bytes().all(|b| b.is_ascii_hexdigit());
    Ok(if hex { text.to_owned() } else { "unknown".into() })
}

/// Says when a checkout is not at the manifest's tag. It is built as it is: the user may want it so.
fn report_drift(dir: &Path, commit: &str, tag: &str) -> Result<(), Halt> {
    if !ask(dir, &["tag", "--points-at", "HEAD"])?.lines().any(|line| line == tag) {
        say(&format!("{} is at {commit}, not at the manifest's tag {tag}", quoted(dir)));
    }
    Ok(())
}

/// What git answers about a tree; nothing when it fails.
fn ask(dir: &Path, args: &[&str]) -> Result<String, Halt> {
    let asked = machine::git_in(dir)?
        .args(args)
        .stdout(Sink::Head(64 << 10))
        .stderr(Sink::Null)
        .limit(Duration::from_secs(20));
    let outcome = machine::run(asked)?;
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    Ok(if outcome.success() { text } else { String::new() })
}
