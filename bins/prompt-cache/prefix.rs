//! The prefix: gives the kept answer, or runs the command, passes its output on, and keeps it when it ended 0.

use std::cell::RefCell;
use std::ffi::OsString;
use std::rc::Rc;
use std::time::Duration;

use child::{Cause, Outcome, Run, Sink, Stdin};
use contract::exit;
use contract::{Code, Error, Fix, message, origin, verdict};
use files::digest::Sha;

use crate::flight::{self, Turn};
use crate::room::Caps;
use crate::store::{Hit, Store};
use crate::{LARGEST, TOOL};

/// What the caller asked for.
pub(crate) struct Ask {
    pub(crate) key: Sha,
    /// The program and its arguments; never empty.
    pub(crate) command: Vec<OsString>,
    pub(crate) caps: Caps,
    /// How long another's answer to the same key is waited for.
    pub(crate) wait: Duration,
    /// How long the command may run.
    pub(crate) limit: Duration,
}

/// Gives the answer of the key. Trouble with the cache is said and never changes answer or status.
pub(crate) fn run(store: &Store, fix: Option<&Fix>, ask: &Ask) -> Result<Code, Error> {
    // An answer that nobody can receive is not worth minutes.
    if origin::was_closed(1) {
        return Err(Error::new(exit::IO, "cannot write to standard output: it is closed"));
    }
    if let Some(hit) = store.hit(&ask.key) {
        return give(store, fix, &ask.key, &hit);
    }
    let turn = match fix {
        Some(fix) => flight::turn(store, fix, &ask.key, ask.wait),
        None => Turn::Ours { _claim: None },
    };
    if let Turn::Theirs(hit) = turn {
        return give(store, fix, &ask.key, &hit);
    }
    let (outcome, output) = attempt(ask);
    if let Some(fix) = fix {
        keep(store, fix, ask, &outcome, &output);
    }
    drop(turn);
    outcome.passed_on(TOOL, &ask.command[0], ask.limit)
}

/// Prints a kept answer, and notes its use where that is allowed.
pub(crate) fn give(store: &Store, fix: Option<&Fix>, key: &Sha, hit: &Hit) -> Result<Code, Error> {
    verdict::print(hit.entry.body())?;
    if let Some(fix) = fix {
        store.used(fix, key, hit);
    }
    Ok(exit::OK)
}

/// Runs the command; its output goes on as it comes, and so much of it as an entry may have, and a byte, is returned.
fn attempt(ask: &Ask) -> (Outcome, Vec<u8>) {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let copy = Rc::clone(&seen);
    let see = move |piece: &[u8]| {
        let mut kept = copy.borrow_mut();
        let room = (LARGEST + 1).saturating_sub(kept.len());
        kept.extend_from_slice(&piece[..piece.len().min(room)]);
    };
    let outcome = Run::new(&ask.command[0])
        .args(&ask.command[1..])
        .stdin(Stdin::Inherit)
        .stdout(Sink::Shown(Box::new(see)))
        .limit(ask.limit)
        .leave(true)
        .run();
    (outcome, seen.take())
}

/// Keeps the output of a command that ended 0, the whole of it.
fn keep(store: &Store, fix: &Fix, ask: &Ask, outcome: &Outcome, output: &[u8]) {
    if !outcome.success() || outcome.lost {
        if !matches!(outcome.cause, Cause::NotStarted(_)) {
            store.missed(fix);
        }
        return;
    }
    let trouble = match store.put(fix, &ask.key, outcome.wall, output, ask.caps) {
        Ok(None) => return,
        Ok(Some(why)) => {
            store.missed(fix);
            why
        }
        Err(trouble) => trouble.message,
    };
    message::note(TOOL, &format!("the answer is not kept: {trouble}"));
}
