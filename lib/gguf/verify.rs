//! One file against its pin and its own header: the finding of a verdict line.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::Path;

use contract::State;
use contract::message::{cause_of, quoted};
use files::digest::Sha;
use files::open::{self, Print, Refusal};

use crate::flaw::{Bytes, Flaw};
use crate::hash::{self, Hashed};
use crate::header::{Structure, examine};
use crate::source::Opened;
use crate::split;

/// What somebody published about a file.
#[derive(Clone, Copy, Default, Debug)]
pub struct Pin {
    /// Exact size in bytes.
    pub bytes: Option<u64>,
    /// SHA-256 of the whole file.
    pub sha256: Option<Sha>,
}

/// What is so of a file: the first and the last field of a verdict line.
#[derive(Debug)]
pub struct Finding {
    /// `ok`, `degraded`, or the state of a flaw.
    pub state: State,
    /// The cause first.
    pub detail: String,
}

/// Checks a file and, when it is a part of a split model, the parts beside it. With `deep` all of the file is
/// read and hashed. Nothing is written.
pub fn verify(path: &Path, pin: &Pin, deep: bool) -> Finding {
    let (file, size, before) = match open_model(path) {
        Ok(opened) => opened,
        Err(flaw) => return finding(flaw.state, flaw.cause),
    };
    let structure = examine(&Opened { file: &file, size });
    let parts = structure.as_ref().map_or(Ok(Vec::new()), |own| split::check(path, own, look));
    // A hash can only confirm: without a pin it is worth its time only when the structure is sound.
    let worth = pin.bytes.is_none_or(|bytes| bytes == size) && (structure.is_ok() || pin.sha256.is_some());
    let hashed = (deep && worth).then(|| hash::of(&file)).transpose();
    if let Some(finding) = changed(&before, &file, size) {
        return finding;
    }
    match hashed {
        Ok(hashed) => with_parts(conclude(structure, size, pin, hashed.as_ref()), parts),
        Err(cause) => unreadable(&cause),
    }
}

/// Puts size, hash and structure together: the size decides, then the hash, then the structure.
fn conclude(structure: Result<Structure, Flaw>, size: u64, pin: &Pin, hashed: Option<&Hashed>) -> Finding {
    if let Some(bytes) = pin.bytes.filter(|bytes| *bytes != size) {
        return wrong_size(structure, size, bytes);
    }
    match (pin.sha256, hashed) {
        (Some(expected), Some(hashed)) if hashed.sha == expected => confirmed(structure, size, hashed),
        (Some(expected), Some(hashed)) => contradicted(structure.err(), size, expected, hashed),
        _ => match structure {
            Err(flaw) => unconfirmed(&flaw, size, pin),
            Ok(structure) => unhashed(&structure, size, pin, hashed),
        },
    }
}

/// The size is not the pinned one.
fn wrong_size(structure: Result<Structure, Flaw>, size: u64, bytes: u64) -> Finding {
    let state = if size < bytes { State::Short } else { State::Corrupt };
    let (state, cause) = match structure {
        Ok(sound) if sound.weak.is_empty() => (State::Corrupt, "another file, sound in itself".to_owned()),
        Ok(sound) => (state, sound.weak.join("; ")),
        Err(flaw) if flaw.state == State::Bad => (State::Corrupt, flaw.cause),
        Err(flaw) => (flaw.state, flaw.cause),
    };
    finding(state, format!("{cause}; {}, pinned are {bytes}", Bytes(size)))
}

/// The hash is the pinned one, so the bytes are what was published, whatever the structure says.
fn confirmed(structure: Result<Structure, Flaw>, size: u64, hashed: &Hashed) -> Finding {
    let verified = format!("verified: sha256 {} as pinned; {}", hashed.sha.hex(), Bytes(size));
    match structure {
        Ok(sound) if sound.weak.is_empty() => finding(State::Ok, format!("{verified}; structure ok")),
        Ok(sound) => finding(State::Ok, format!("{verified}; {}", sound.weak.join("; "))),
        Err(flaw) if flaw.newer => {
            finding(State::Ok, format!("{verified}; structure not checked: {}", flaw.cause))
        }
        Err(flaw) if flaw.state == State::Unknown => finding(flaw.state, flaw.cause),
        Err(flaw) => {
            finding(State::Bad, format!("the pin itself is of a file that is no model: {}", flaw.cause))
        }
    }
}

/// The hash is not the pinned one.
fn contradicted(flaw: Option<Flaw>, size: u64, expected: Sha, hashed: &Hashed) -> Finding {
    let cause = flaw.map_or("content differs".to_owned(), |flaw| flaw.cause);
    let zeros = hashed.zeros().map_or(String::new(), |zeros| format!("; {zeros}"));
    let (is, should) = (hashed.sha.hex(), expected.hex());
    finding(State::Corrupt, format!("{cause}; sha256 is {is}, pinned is {should}; {}{zeros}", Bytes(size)))
}

/// A flaw that no hash confirms or contradicts.
fn unconfirmed(flaw: &Flaw, size: u64, pin: &Pin) -> Finding {
    let exact = pin.bytes == Some(size);
    // A file of exactly the right size was not cut: its header was changed.
    let state = if exact && flaw.state == State::Short { State::Corrupt } else { flaw.state };
    finding(state, format!("{}; {}{}", flaw.cause, Bytes(size), if exact { " as pinned" } else { "" }))
}

/// A sound structure, and no pinned hash to compare with, or no hash at all.
fn unhashed(structure: &Structure, size: u64, pin: &Pin, hashed: Option<&Hashed>) -> Finding {
    let (state, cause) = if structure.weak.is_empty() {
        (State::Ok, "structure ok".to_owned())
    } else {
        (State::Degraded, structure.weak.join("; "))
    };
    let mut detail = format!("{cause}; {}", Bytes(size));
    detail += if pin.bytes.is_some() { " as pinned" } else { "" };
    if let Some(hashed) = hashed {
        let _ = write!(detail, "; sha256 {}, no pin to compare it with", hashed.sha.hex());
        detail.extend(hashed.zeros().map(|zeros| format!("; {zeros}")));
    } else {
        detail += if pin.bytes.is_some() { "; not hashed" } else { "; not hashed, no pin" };
    }
    finding(state, detail)
}

/// What is so of a part, made worse by what is so of the parts beside it.
fn with_parts(own: Finding, parts: Result<Vec<String>, Flaw>) -> Finding {
    match parts {
        Err(flaw) if matches!(own.state, State::Ok | State::Degraded) => finding(flaw.state, flaw.cause),
        Ok(weak) if own.state == State::Ok && !weak.is_empty() => {
            finding(State::Degraded, format!("{}; {}", weak.join("; "), own.detail))
        }
        _ => own,
    }
}

fn finding(state: State, detail: String) -> Finding {
    Finding { state, detail }
}

fn unreadable(cause: &io::Error) -> Finding {
    let flaw = Flaw::unreadable(cause);
    finding(flaw.state, flaw.cause)
}

/// A finding when the file is not the same any more.
fn changed(before: &Print, file: &File, size: u64) -> Option<Finding> {
    match file.metadata() {
        Ok(meta) if Print::of(&meta) == *before => None,
        Ok(meta) => {
            let (was, is) = (Bytes(size), meta.len());
            Some(finding(State::Unknown, format!("changed while it was read: {was} at first, then {is}")))
        }
        Err(cause) => Some(unreadable(&cause)),
    }
}

/// Opens a model file, or says what is in its place.
fn open_model(path: &Path) -> Result<(File, u64, Print), Flaw> {
    let cause = match open::regular(path) {
        Ok((file, meta)) => return Ok((file, meta.len(), Print::of(&meta))),
        Err(Refusal::NotAFile(what)) => {
            return Err(Flaw::corrupt(format!("{} instead of a model", what.words())));
        }
        Err(Refusal::Io(cause)) => cause,
    };
    let name = quoted(path.as_os_str());
    Err(match cause.kind() {
        io::ErrorKind::NotFound if path.is_symlink() => {
            let target = path.read_link().unwrap_or_default();
            Flaw::missing(format!("{name} is a link to {}, which does not exist", quoted(target.as_os_str())))
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Flaw::missing(format!("{}: {name}", cause_of(&cause)))
        }
        _ => Flaw::unreadable(&cause),
    })
}

/// The structure of another part.
fn look(path: &Path) -> Result<Structure, Flaw> {
    let (file, size, _) = open_model(path)?;
    examine(&Opened { file: &file, size })
}
