//! The gate: recipes are code, so only a manifest this box signed, or one approved by its digest, is run.

use std::path::{Path, PathBuf};

use contract::{Error, Fix, Report, Swr};
use files::digest::Sha;
use seal::{Access, Standing};
use workspace::accepted::{self, Accepted};
use workspace::{Manifest, json, read};

/// Whether the manifest may run.
pub(crate) enum Gate {
    /// It may.
    Open {
        /// Parsed from the very bytes that were checked.
        manifest: Manifest,
        /// What has to be remembered before anything is run.
        accepted: Option<Acceptance>,
        /// Who else may read the key that it was checked with.
        access: Access,
    },
    /// It may not.
    Closed {
        /// The cause.
        why: String,
        /// The next command.
        hint: String,
    },
}

/// A line for `accepted.jsonl`: without it a manifest that is older, or another, could be put in this one's place later.
pub(crate) struct Acceptance {
    path: PathBuf,
    line: String,
}

impl Acceptance {
    /// Writes it.
    pub(crate) fn remember(&self, fix: &Fix) -> Result<(), Error> {
        files::records::append(fix, &self.path, self.line.as_bytes())
            .map_err(|cause| read::unwritable(&self.path, &cause))
    }
}

/// Reads the manifest once, and decides over those bytes.
pub(crate) fn open(
    path: &Path,
    home: &Path,
    trust: Option<Sha>,
    report: &mut Report<Swr>,
) -> Result<Gate, Error> {
    let manifest = read::manifest(read::file(path), report)?;
    let digest = manifest.digest();
    let (record, before) = (accepted::path(home), Accepted::of(home)?);
    let approved = before.approves(digest);
    if trust.is_some_and(|t| t != digest) {
        let why = format!("the manifest's digest is {}, not the one given with --trust", digest.hex());
        return Ok(Gate::Closed { why, hint: "look at what changed before approving another digest".into() });
    }
    if approved || trust.is_some() {
        let line = format!("{{\"approved\":{}}}", json::quote(&digest.hex()));
        let accepted = (!approved).then_some(Acceptance { path: record, line });
        return Ok(Gate::Open { manifest, accepted, access: Access::Closed });
    }
    let (id, access) = match Standing::of(home, &before, manifest.signed())? {
        Standing::Signed { key, access } => (key, access),
        Standing::Refused { why, hint } => {
            let hint = format!("{hint}; or approve this one content: swr restore --trust {}", digest.hex());
            return Ok(Gate::Closed { why, hint });
        }
    };
    let seq = manifest.header.seq;
    let line = format!("{{\"key\":{},\"seq\":{seq}}}", json::quote(&id));
    let accepted = (before.highest(&id) != Some(seq)).then_some(Acceptance { path: record, line });
    Ok(Gate::Open { manifest, accepted, access })
}
