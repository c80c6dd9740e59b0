//! `breaker status` and `breaker reset`: what is known, and forgetting it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use contract::{Code, Error, Fix, Guard, Kind, Report, State, Verdict, clock, mode};

use crate::content::{self, Content};
use crate::machine::{Breaker, Gate, Rules};
use crate::record::{self, Record};
use crate::store::Store;
use crate::{subject, words};

/// One verdict a subject, sorted by name; of one subject alone when it is named. Nothing is written.
pub(crate) fn status(store: &Store, one: Option<&[u8]>, rules: Rules, json: bool) -> Result<Code, Error> {
    let mut report = Report::<Guard>::new(json);
    let subjects = match one {
        Some(subject) => vec![subject.to_vec()],
        None => known(&store.dir)?,
    };
    for subject in subjects {
        report.say(&verdict(store, subject, rules))?;
    }
    Ok(report.code())
}

fn verdict(store: &Store, subject: Vec<u8>, rules: Rules) -> Verdict {
    let (word, detail) = match store.look(&subject, rules) {
        Ok((_, Some(flaw))) => (State::Corrupt, format!("its state is {flaw}: it counts as closed")),
        Ok((breaker, None)) => (state(&breaker), words::story(&breaker, &clock::now())),
        Err(trouble) => (State::Unknown, trouble.message),
    };
    Verdict::new(word, Kind::Host, subject, detail)
}

fn state(breaker: &Breaker) -> State {
    match breaker.gate(&clock::now()) {
        Gate::Closed => State::Ok,
        Gate::Open { .. } => State::Open,
        Gate::HalfOpen => State::Degraded,
    }
}

/// Every subject with a file, in order.
fn known(dir: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let unreadable = |cause: io::Error| Error::io("read", dir.as_os_str(), &cause);
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(unreadable(cause)),
    };
    let mut subjects = Vec::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_stem().and_then(OsStr::to_str).unwrap_or("");
        match path.extension().map(OsStr::as_bytes) {
            Some(b"state" | b"pending" | b"folding") if !name.starts_with('.') => {
                let subject = subject::unescaped(name).unwrap_or_else(|| recorded(dir, name));
                // At most a few thousand: inserting in order is a tenth of the code of a sort.
                if let Err(place) = subjects.binary_search(&subject) {
                    subjects.insert(place, subject);
                }
            }
            _ => {}
        }
    }
    Ok(subjects)
}

/// The subject of a name that is too long to hold it, from its state file; the name itself when that is gone.
fn recorded(dir: &Path, name: &str) -> Vec<u8> {
    match content::read(&dir.join(format!("{name}.state")), record::LIMIT) {
        Ok(Content::File(bytes, _)) => Record::parse(&bytes).map(|r| r.subject),
        _ => None,
    }
    .unwrap_or_else(|| name.as_bytes().to_vec())
}

/// Forgets one subject; in check mode says what would be forgotten.
pub(crate) fn reset(
    store: &Store,
    fix: Option<&Fix>,
    subject: &[u8],
    rules: Rules,
    json: bool,
) -> Result<Code, Error> {
    let mut report = Report::<Guard>::new(json);
    let was = verdict(store, subject.to_vec(), rules).detail;
    let (state, detail) = match fix {
        _ if !store.knows(subject) => (State::Ok, was),
        None => {
            mode::would(&format!("reset the breaker of {}", words::name(subject)));
            (State::Would, format!("would be reset: {was}"))
        }
        Some(fix) => {
            store.forget(fix, subject)?;
            (State::Healed, format!("reset; was {was}"))
        }
    };
    report.say(&Verdict::new(state, Kind::Host, subject, detail))?;
    Ok(report.code())
}
