//! The gate: recipes are code, so only a manifest this box signed, or one approved by its digest, is run.

use std::path::{Path, PathBuf};

use contract::{Error, Fix, Report, Swr};
use files::digest::Sha;
use seal::{Access, Standing};
use workspace::json::{self, Json};
use workspace::{Manifest, read};

const LIMIT: u64 = 1 << 20;

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
            .map_err(|cause| Error::io("write", self.path.as_os_str(), &cause))
    }
}

/// What was accepted before, from `accepted.jsonl`.
#[derive(Default)]
struct Accepted {
    highest: Vec<(String, u64)>,
    approved: Vec<Sha>,
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
    let record = home.join("accepted.jsonl");
    let before = Accepted::load(&record)?;
    let approved = before.approved.contains(&digest);
    if trust.is_some_and(|t| t != digest) {
        let why = format!("the manifest's digest is {}, not the one given with --trust", digest.hex());
        return Ok(Gate::Closed { why, hint: "look at what changed before approving another digest".into() });
    }
    if approved || trust.is_some() {
        let line = format!("{{\"approved\":{}}}", json::quote(&digest.hex()));
        let accepted = (!approved).then_some(Acceptance { path: record, line });
        return Ok(Gate::Open { manifest, accepted, access: Access::Closed });
    }
    let approve = format!("read it, then swr sign; or approve this one content: --trust {}", digest.hex());
    let (id, access) = match Standing::of(home, &manifest)? {
        Standing::Signed { key, access } => (key, access),
        Standing::Refused { why, hint } => return Ok(Gate::Closed { why, hint: hint.unwrap_or(approve) }),
    };
    let seq = manifest.header.seq;
    let highest = before.highest.iter().filter(|(k, _)| *k == id).map(|(_, n)| *n).max();
    match highest {
        Some(highest) if seq < highest => {
            let why = format!("the manifest is old: seq {seq}, and {highest} was accepted before");
            Ok(Gate::Closed { why, hint: approve })
        }
        Some(highest) if seq == highest => Ok(Gate::Open { manifest, accepted: None, access }),
        _ => {
            let line = format!("{{\"key\":{},\"seq\":{seq}}}", json::quote(&id));
            let accepted = Some(Acceptance { path: record, line });
            Ok(Gate::Open { manifest, accepted, access })
        }
    }
}

impl Accepted {
    /// A line that cannot be read is skipped: forgetting an approval is safe, and the highest seq has one line each.
    fn load(path: &Path) -> Result<Self, Error> {
        let lines =
            files::records::read(path, LIMIT).map_err(|cause| Error::io("read", path.as_os_str(), &cause))?;
        let mut accepted = Self::default();
        for line in lines {
            let Ok(Json::Object(pairs)) = json::parse(&line) else { continue };
            let get = |key: &str| pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v);
            match (get("key"), get("seq"), get("approved")) {
                (Some(Json::Text(key)), Some(Json::Number(seq)), None) => {
                    accepted.highest.push((key.clone().into_owned(), *seq));
                }
                (None, None, Some(Json::Text(hex))) => accepted.approved.extend(Sha::from_hex(hex)),
                _ => {}
            }
        }
        Ok(accepted)
    }
}
