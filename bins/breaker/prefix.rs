//! The prefix: runs a command unless its breaker is open, and counts how it went.

use std::cell::RefCell;
use std::ffi::OsString;
use std::rc::Rc;
use std::time::Duration;

use child::{Cause, Outcome, Run, Sink, Stdin};
use contract::clock::Deadline;
use contract::exit::{self, guard};
use contract::{Code, Error, Fix, State, Verdict, clock, message, origin};

use crate::lines::{Lines, Piece};
use crate::machine::{Gate, Rules};
use crate::store::{self, Claim, Lease, Store};
use crate::{TOOL, words};

/// How long the command of a killed probe is given to end; it needs milliseconds.
const DYING: Duration = Duration::from_secs(5);

/// What the caller asked for.
pub(crate) struct Ask {
    pub(crate) subject: Vec<u8>,
    /// The program and its arguments; never empty.
    pub(crate) command: Vec<OsString>,
    pub(crate) rules: Rules,
    /// The command's own verdict lines decide.
    pub(crate) verdicts: bool,
    pub(crate) limit: Duration,
}

/// Whether an attempt may be made.
enum Admission {
    Free,
    /// It may, as the one probe.
    Probe(Lease),
    Refused(String),
}

/// How an attempt went.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Success,
    Failure,
    /// It says nothing about the next attempt.
    Neither,
}

/// What a command said in verdict lines.
#[derive(Default)]
struct Said {
    lines: Lines,
    /// Anything, of whatever subject.
    any: bool,
    /// The last state of the subject.
    last: Option<State>,
}

/// Runs the command and ends with its status, or refuses with 5. In check mode nothing is counted.
pub(crate) fn run(store: &Store, fix: Option<&Fix>, ask: &Ask) -> Result<Code, Error> {
    if ask.verdicts && origin::was_closed(1) {
        return Err(Error::new(exit::IO, "cannot write to standard output: it is closed"));
    }
    let lease = match admit(store, fix, ask)? {
        Admission::Free => None,
        Admission::Probe(lease) => Some(lease),
        Admission::Refused(why) => {
            let name = words::name(&ask.subject);
            return Err(Error::new(guard::DEGRADED, format!("{name} is {why}")));
        }
    };
    let (outcome, said) = attempt(ask, lease.as_ref());
    let ending = judge(&outcome, said.as_ref());
    if let Some(fix) = fix
        && let Err(trouble) = record(store, fix, ask, ending, lease)
    {
        words::warn(&trouble);
    }
    let by_itself = matches!(outcome.cause, Cause::Exited(_));
    if by_itself && said.is_some_and(|said| said.any && said.last.is_none()) {
        let name = words::name(&ask.subject);
        message::note(TOOL, &format!("the command gave no verdict of {name}: nothing is counted"));
    }
    outcome.passed_on(TOOL, &ask.command[0], ask.limit)
}

fn admit(store: &Store, fix: Option<&Fix>, ask: &Ask) -> Result<Admission, Error> {
    let Some(fix) = fix else {
        let (breaker, flaw) = store.look(&ask.subject, ask.rules)?;
        if let Some(flaw) = flaw {
            let name = words::name(&ask.subject);
            message::note(TOOL, &format!("the state of {name} is {flaw}: it counts as closed"));
        }
        return Ok(words::refusal(&breaker, &clock::now()).map_or(Admission::Free, Admission::Refused));
    };
    let deadline = Deadline::after(DYING);
    loop {
        let held = store.hold(fix, &ask.subject, ask.rules)?;
        if let Some(why) = held.refusal() {
            return Ok(Admission::Refused(why));
        }
        // An attempt whose failure could not be counted would be made again and again.
        held.prove_writable()?;
        if held.gate() == Gate::Closed {
            return Ok(Admission::Free);
        }
        match held.claim()? {
            Claim::Taken(lease) => return Ok(Admission::Probe(lease)),
            Claim::Dying if !deadline.over() => {}
            Claim::Dying | Claim::Held => return Ok(Admission::Refused(words::PROBING.to_owned())),
        }
        drop(held);
        deadline.pause(Duration::from_millis(10));
    }
}

fn attempt(ask: &Ask, lease: Option<&Lease>) -> (Outcome, Option<Said>) {
    let mut run =
        Run::new(&ask.command[0]).args(&ask.command[1..]).stdin(Stdin::Inherit).limit(ask.limit).leave(true);
    if let Some(lease) = lease {
        run = run.lock(&lease.file, store::COMMANDS);
    }
    if !ask.verdicts {
        return (run.run(), None);
    }
    let said = Rc::new(RefCell::new(Said::default()));
    let hearing = Rc::clone(&said);
    let subject = ask.subject.clone();
    let hear = move |bytes: &[u8]| hearing.borrow_mut().hear(bytes, &subject);
    let outcome = run.stdout(Sink::Shown(Box::new(hear))).run();
    let mut said = said.take();
    said.end(&ask.subject);
    (outcome, Some(said))
}

impl Said {
    fn hear(&mut self, bytes: &[u8], subject: &[u8]) {
        let mut lines = std::mem::take(&mut self.lines);
        let Ok(()) = lines.feed(bytes, |piece| self.take(&piece, subject));
        self.lines = lines;
    }

    fn end(&mut self, subject: &[u8]) {
        let Ok(()) = std::mem::take(&mut self.lines).end(|piece| self.take(&piece, subject));
    }

    #[expect(clippy::unnecessary_wraps, reason = "the shape that lines ask for")]
    fn take(&mut self, piece: &Piece<'_>, subject: &[u8]) -> Result<(), std::convert::Infallible> {
        if let Piece::Line(raw) | Piece::Head(raw) = piece
            && let Some(verdict) = Verdict::parse(raw.strip_suffix(b"\n").unwrap_or(raw))
        {
            self.any = true;
            if verdict.subject == subject {
                self.last = Some(verdict.state);
            }
        }
        Ok(())
    }
}

/// Verdicts of the subject decide, the last one; a command that gave no verdict at all, or was killed before it
/// could, is judged by its status.
fn judge(outcome: &Outcome, said: Option<&Said>) -> Ending {
    let own_end = match outcome.cause {
        // Not started, stopped by the caller, or its reader went away: no attempt that failed.
        Cause::NotStarted(_) | Cause::Interrupted(_) | Cause::Signalled(libc::SIGPIPE) => {
            return Ending::Neither;
        }
        Cause::Exited(status) => Some(Code::transparent(status)),
        Cause::Signalled(_) | Cause::Expired | Cause::Idle | Cause::OutputCap => None,
    };
    match said {
        Some(Said { last: Some(State::Failed), .. }) => return Ending::Failure,
        Some(Said { last: Some(State::Ok | State::Healed), .. }) => return Ending::Success,
        Some(Said { last: Some(_), .. }) => return Ending::Neither,
        Some(Said { any: true, .. }) if own_end.is_some() => return Ending::Neither,
        _ => {}
    }
    match own_end {
        Some(exit::OK) => Ending::Success,
        Some(guard::DEGRADED | exit::USAGE | exit::PROGRAM_MISSING | exit::BUG | exit::IO | exit::BUSY) => {
            Ending::Neither
        }
        _ => Ending::Failure,
    }
}

fn record(store: &Store, fix: &Fix, ask: &Ask, ending: Ending, lease: Option<Lease>) -> Result<(), Error> {
    let nothing_to_do = match ending {
        Ending::Success => !store.knows(&ask.subject),
        Ending::Failure => false,
        Ending::Neither => true,
    };
    if nothing_to_do && lease.is_none() {
        return Ok(());
    }
    let mut held = store.hold(fix, &ask.subject, ask.rules)?;
    match ending {
        Ending::Success => held.succeed()?,
        Ending::Failure => held.fail()?,
        Ending::Neither => {}
    }
    lease.map_or(Ok(()), |lease| held.release(lease))
}
