//! Whether this box signed a manifest: by the key's signature, and where others may have read the key by the record of
//! what was signed here.
//!
//! A snapshot that resets permissions opens the key to everybody. Where nobody else can get to it, that means nothing.
//! Elsewhere a good signature proves only that somebody had the key; but a content that `swr-sign` has noted as signed is
//! what this box signed, whoever read the key since, as long as nobody else could write to that record.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use contract::{Error, Fix, exit, message};
use files::digest::Sha;
use workspace::Signed;
use workspace::accepted::{self, Accepted};
use workspace::json::{self, Json};

use crate::signing::{Access, Refusal, SigningKey};

/// Contents remembered as signed.
const REMEMBERED: usize = 64;
const LIMIT: u64 = 64 << 10;
const SIGN: &str = "read it, then swr sign";

/// What a manifest is to this box.
pub enum Standing {
    /// This box signed it.
    Signed {
        /// Which key.
        key: String,
        /// Who else may read it.
        access: Access,
    },
    /// It is not known to have.
    Refused {
        /// The cause.
        why: String,
        /// The next command.
        hint: String,
    },
}

impl Standing {
    /// Judges a manifest with the key in `home` and what was accepted before, without writing anything.
    pub fn of(home: &Path, accepted: &Accepted, signed: Signed) -> Result<Self, Error> {
        let refused = |why: String, hint: &str| Ok(Self::Refused { why, hint: hint.to_owned() });
        let path = key_path(home);
        let (key, access) = match SigningKey::read(&path) {
            Ok(Some(found)) => found,
            Ok(None) => return refused(Refusal::NoKey.words().to_owned(), SIGN),
            Err(unfit) if unfit.code == exit::swr::MANIFEST => {
                return refused(unfit.message, unfit.hint.as_deref().unwrap_or(SIGN));
            }
            Err(trouble) => return Err(trouble),
        };
        if let Err(refusal) = key.check(signed) {
            return refused(refusal.words().to_owned(), SIGN);
        }
        if let Access::Open(mode) = access
            && !is_recorded(home, signed.digest())
        {
            let why =
                format!("{}, and this content is not recorded as signed here", access_words(&path, mode));
            return refused(why, &close_hint(home));
        }
        let key = key.id();
        match accepted.highest(&key).filter(|highest| signed.seq < *highest) {
            // Its signature is good, so signing alone would leave it as it is.
            Some(highest) => refused(accepted::old(signed.seq, highest), "read it, then swr sign --again"),
            None => Ok(Self::Signed { key, access }),
        }
    }
}

/// What would keep `swr-restore` from running, and the next command; `None` when nothing would.
pub fn refusal(home: &Path, signed: Signed) -> Result<Option<(String, String)>, Error> {
    let accepted = Accepted::of(home)?;
    Ok(match Standing::of(home, &accepted, signed)? {
        Standing::Refused { why, hint } if !accepted.approves(signed.digest()) => Some((why, hint)),
        _ => None,
    })
}

/// Where the key is.
pub fn key_path(home: &Path) -> PathBuf {
    home.join("signing.key")
}

/// Says of a key that is not closed what it means, and closes it where that is safe; `fix` is `None` when nothing may be
/// written. A key that others may have read stays as it is: closed, nothing would tell any more that they could.
pub fn tend(tool: &str, fix: Option<&Fix>, home: &Path, access: Access) {
    let path = key_path(home);
    match (access, fix) {
        (Access::Closed, _) | (Access::OutOfReach(_), None) => {}
        (Access::OutOfReach(mode), Some(fix)) => {
            let name = message::quoted(path.as_os_str());
            let closed = SigningKey::close(fix, &path).map_or_else(
                |cause| Error::io("set the mode of", path.as_os_str(), &cause).message,
                |()| {
                    format!(
                        "set {name} to mode 0600 again (was {mode:04o}, where nobody else could get to it)"
                    )
                },
            );
            message::note(tool, &closed);
        }
        (Access::Open(mode), _) => {
            let words = access_words(&path, mode);
            message::note(tool, &format!("{words}: only what is recorded as signed here is accepted"));
            message::hint(&close_hint(home));
        }
    }
}

fn access_words(path: &Path, mode: u32) -> String {
    format!("the signing key {} is open to others, mode {mode:04o}", message::quoted(path.as_os_str()))
}

fn close_hint(home: &Path) -> String {
    let (home, key) = (message::quoted(home.as_os_str()), key_path(home));
    let key = message::quoted(key.as_os_str());
    format!(
        "chmod 700 {home}; chmod 600 {key}, if nobody else can have read it; else move it aside and swr sign makes another"
    )
}

/// Notes a content as signed here.
pub fn record(fix: &Fix, home: &Path, digest: Sha) -> Result<(), Error> {
    let path = record_path(home);
    let mut all = recorded(&path);
    if all.last() == Some(&digest) {
        return Ok(());
    }
    all.retain(|d| *d != digest);
    all.push(digest);
    let from = all.len().saturating_sub(REMEMBERED);
    let lines: Vec<_> =
        all[from..].iter().map(|d| format!("{{\"signed\":{}}}\n", json::quote(&d.hex()))).collect();
    files::atomic::write(fix, &path, lines.concat().as_bytes(), 0o600)
        .map_err(|cause| Error::io("write", path.as_os_str(), &cause))
}

/// Whether a content is noted, in a record that nobody else could have written.
pub fn is_recorded(home: &Path, digest: Sha) -> bool {
    let path = record_path(home);
    let ours = |path: &Path| {
        let me = rustix::process::geteuid().as_raw();
        path.symlink_metadata().is_ok_and(|m| !m.is_symlink() && m.uid() == me && m.mode() & 0o022 == 0)
    };
    home.canonicalize().is_ok_and(|home| ours(&home)) && ours(&path) && recorded(&path).contains(&digest)
}

fn record_path(home: &Path) -> PathBuf {
    home.join("signed.jsonl")
}

/// Oldest first. What cannot be read is not remembered, which is safe.
fn recorded(path: &Path) -> Vec<Sha> {
    let lines = files::records::read(path, LIMIT).unwrap_or_default();
    let digest = |line: &Vec<u8>| match json::parse(line) {
        Ok(Json::Object(pairs)) => match pairs.as_slice() {
            [(key, Json::Text(hex))] if key == "signed" => Sha::from_hex(hex),
            _ => None,
        },
        _ => None,
    };
    lines.iter().filter_map(digest).collect()
}
