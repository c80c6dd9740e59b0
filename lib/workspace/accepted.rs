//! What this box accepted before: the highest seq of each signing key, and the digests that were approved.

use std::path::{Path, PathBuf};

use contract::Error;
use files::digest::Sha;

use crate::json::{self, Json};

/// More of the file is not read.
const LIMIT: u64 = 1 << 20;

/// The content of `accepted.jsonl`, which `swr-restore` writes.
#[derive(Default)]
pub struct Accepted {
    highest: Vec<(String, u64)>,
    approved: Vec<Sha>,
}

impl Accepted {
    /// What was accepted in a home; where there is no file, nothing. A line that cannot be read is skipped: forgetting an
    /// approval is safe, and the highest seq has one line each.
    pub fn of(home: &Path) -> Result<Self, Error> {
        let path = path(home);
        let lines = files::records::read(&path, LIMIT);
        let mut accepted = Self::default();
        let lines = lines.map_err(|cause| {
            let hint = "make it a file that you can read; without it, older manifests are accepted again";
            Error::io("read", path.as_os_str(), &cause).hint(hint)
        })?;
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

    /// The highest seq that was accepted of a key.
    pub fn highest(&self, key: &str) -> Option<u64> {
        self.highest.iter().filter(|(k, _)| k == key).map(|(_, n)| *n).max()
    }

    /// Whether the manifest whose body has this digest was approved.
    pub fn approves(&self, digest: Sha) -> bool {
        self.approved.contains(&digest)
    }
}

/// Where it is.
pub fn path(home: &Path) -> PathBuf {
    home.join("accepted.jsonl")
}

/// Why a manifest of this seq is refused where `highest` was accepted before.
pub fn old(seq: u64, highest: u64) -> String {
    format!("the manifest is old: seq {seq}, and {highest} was accepted before")
}
