//! `--get`, `--put`, `stats`, `list` and `purge`.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use contract::exit::{self, guard};
use contract::{
    Code, Error, Fix, Guard, Kind, Report, State, Verdict, clock, log, message, mode, origin, verdict,
};
use files::digest::Sha;

use crate::prefix::give;
use crate::room::Caps;
use crate::store::{Found, Store, last_used};
use crate::{LARGEST, TOOL};

/// Standard input must have ended by then.
const PATIENCE: Duration = Duration::from_secs(60);

/// What to remove.
pub(crate) enum Which {
    Keys(Vec<Sha>),
    All,
    /// What was made longer ago.
    Older(Duration),
    /// What is expired or damaged.
    Useless,
}

/// Prints the answer of a key, or nothing and 5.
pub(crate) fn get(store: &Store, fix: Option<&Fix>, key: &Sha) -> Result<Code, Error> {
    match store.hit(key) {
        Some(hit) => give(store, fix, key, &hit),
        None => Ok(guard::DEGRADED),
    }
}

/// Keeps standard input under a key; in check mode says so.
pub(crate) fn put(store: &Store, fix: Option<&Fix>, key: &Sha, caps: Caps) -> Result<Code, Error> {
    let body = standard_input()?;
    if let Some(why) = Store::unfit(&body, caps) {
        return say(State::Skipped, key, &format!("not kept: {why}"));
    }
    let Some(fix) = fix else {
        mode::would(&format!("keep {} bytes under {}", body.len(), key.hex()));
        return say(State::Would, key, &format!("would keep {} bytes", body.len()));
    };
    match store.put(fix, key, Duration::ZERO, &body, caps)? {
        None => say(State::Ok, key, &format!("{} bytes kept", body.len())),
        Some(why) => say(State::Skipped, key, &format!("not kept: {why}")),
    }
}

fn say(state: State, key: &Sha, detail: &str) -> Result<Code, Error> {
    let mut report = Report::<Guard>::new(false);
    report.say(&Verdict::new(state, Kind::Cache, key.hex(), detail))?;
    Ok(report.code())
}

fn standard_input() -> Result<Vec<u8>, Error> {
    let failed = |why: &str| Error::new(exit::IO, format!("cannot read standard input: {why}"));
    if origin::was_closed(0) {
        return Err(failed("it is closed"));
    }
    if io::stdin().is_terminal() {
        return Err(
            Error::usage("standard input is a terminal, not an answer").hint("prompt-cache --put KEY < FILE")
        );
    }
    let owned: io::Result<OwnedFd> = io::stdin().as_fd().try_clone_to_owned();
    let read = owned.and_then(|fd| files::bounded::read(&mut File::from(fd), LARGEST + 1, PATIENCE));
    read.map_err(|cause| match cause.kind() {
        io::ErrorKind::TimedOut => failed("it did not end within 60 s"),
        _ => failed(&message::cause_of(&cause)),
    })
}

/// Counts and sizes, one `NAME<TAB>VALUE` a line or one JSON object.
pub(crate) fn stats(store: &Store, json: bool) -> Result<Code, Error> {
    let (mut entries, mut bytes) = (0_u64, 0);
    for key in store.keys()? {
        if let Ok(meta) = store.dir.join(key.hex()).symlink_metadata() {
            (entries, bytes) = (entries + 1, bytes + meta.len());
        }
    }
    let counts = store.events().counts();
    let saved = format!("{}.{:03}", counts.saved / 1000, counts.saved % 1000);
    let rows = [
        ("hits", counts.hits.to_string()),
        ("misses", counts.misses.to_string()),
        ("evicted", counts.evicted.to_string()),
        ("entries", entries.to_string()),
        ("bytes", bytes.to_string()),
        ("seconds_saved", saved),
    ];
    let text = if json {
        format!("{{{}}}\n", rows.map(|(name, value)| format!("\"{name}\":{value}")).join(","))
    } else {
        rows.map(|(name, value)| format!("{name}\t{value}\n")).concat()
    };
    verdict::print(text.as_bytes())?;
    Ok(exit::OK)
}

/// One verdict an entry.
pub(crate) fn list(store: &Store, json: bool) -> Result<Code, Error> {
    let mut report = Report::<Guard>::new(json);
    for key in store.keys()? {
        let (state, detail) = match store.look(&key) {
            Found::Hit(hit) => {
                let now = clock::wall();
                let age = now.saturating_sub(hit.entry.created);
                let used = now.saturating_sub(last_used(&hit.meta));
                let bytes = hit.entry.body().len();
                let took = hit.entry.took;
                let took = format!("{}.{:03} s", took / 1000, took % 1000);
                (State::Ok, format!("{bytes} bytes that took {took}, {age} s old, used {used} s ago"))
            }
            Found::Expired(age) => (State::Skipped, format!("expired, {age} s old")),
            Found::Flawed(flaw) => (State::Corrupt, flaw),
            Found::Absent => continue,
        };
        report.say(&Verdict::new(state, Kind::Cache, key.hex(), detail))?;
    }
    Ok(report.code())
}

/// Removes entries, one verdict each; in check mode says which.
pub(crate) fn purge(store: &Store, fix: Option<&Fix>, which: &Which, json: bool) -> Result<Code, Error> {
    let mut report = Report::<Guard>::new(json);
    let there = store.keys()?;
    let chosen: Vec<_> = match which {
        Which::Keys(keys) => keys.iter().map(|key| (*key, there.contains(key))).collect(),
        Which::All => there.into_iter().map(|key| (key, true)).collect(),
        _ => there.into_iter().filter(|key| goes(store, key, which)).map(|key| (key, true)).collect(),
    };
    let _lock = match fix {
        Some(fix) if !chosen.is_empty() => Some(store.lock(fix)?),
        _ => None,
    };
    for (key, there) in chosen {
        let name = key.hex();
        let (state, detail) = match fix {
            _ if !there => (State::Ok, "not there".to_owned()),
            None => {
                mode::would(&format!("remove {name}"));
                (State::Would, "would be removed".to_owned())
            }
            Some(fix) => match store.remove(fix, &key) {
                Ok(()) => {
                    log::event(fix, TOOL, "purge", &name);
                    (State::Ok, "removed".to_owned())
                }
                Err(trouble) => (State::Failed, trouble.message),
            },
        };
        report.say(&Verdict::new(state, Kind::Cache, name, detail))?;
    }
    Ok(report.code())
}

fn goes(store: &Store, key: &Sha, which: &Which) -> bool {
    match (store.look(key), which) {
        (Found::Hit(hit), Which::Older(age)) => {
            clock::wall().saturating_sub(hit.entry.created) > age.as_secs()
        }
        (Found::Expired(age), Which::Older(least)) => age > least.as_secs(),
        (Found::Expired(_) | Found::Flawed(_), Which::Useless) => true,
        _ => false,
    }
}
