//! The filter: verdict lines pass through; failures are counted, and damage that is open leaves as `open`.

use std::io::{self, IsTerminal as _, Read as _};

use contract::cli::Stop;
use contract::exit::{self, Family as _};
use contract::{Code, Error, Fix, Guard, Kind, State, Verdict, clock, message, origin, verdict};

use crate::lines::{Lines, Piece};
use crate::machine::{Gate, Rules};
use crate::store::Store;
use crate::{TOOL, subject, words};

struct Filter<'a> {
    store: Option<&'a Store>,
    /// Consent to count; taken away when the lock cannot be had.
    fix: Option<&'a Fix>,
    rules: Rules,
    json: bool,
    worst: Code,
    /// A line came.
    any: bool,
    warned: bool,
    troubled: bool,
}

/// Reads standard input to its end. Trouble with the state is said once and ends 74 or 75, but every line is
/// passed on. An input of nothing is no health: whoever should have spoken did not.
pub(crate) fn run(
    store: Result<Store, Error>,
    fix: Option<&Fix>,
    rules: Rules,
    json: bool,
) -> Result<Code, Stop> {
    if origin::was_closed(0) {
        return Err(Error::new(exit::IO, "cannot read standard input: it is closed").into());
    }
    let mut input = io::stdin().lock();
    if input.is_terminal() {
        return Err(Error::usage("standard input is a terminal, not verdict lines")
            .hint("gguf-verify | breaker")
            .into());
    }
    let (store, trouble) = match store {
        Ok(store) => (Some(store), None),
        Err(trouble) => (None, Some(trouble)),
    };
    let mut filter = Filter {
        store: store.as_ref(),
        fix,
        rules,
        json,
        worst: exit::OK,
        any: false,
        warned: false,
        troubled: false,
    };
    if let Some(trouble) = trouble {
        filter.trouble(&trouble);
    }
    let (mut lines, mut buffer) = (Lines::default(), vec![0; 64 << 10]);
    loop {
        match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => lines.feed(&buffer[..n], |piece| filter.piece(&piece))?,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => {
                let text = format!("cannot read standard input: {}", message::cause_of(&cause));
                return Err(Error::new(exit::IO, text).into());
            }
        }
    }
    lines.end(|piece| filter.piece(&piece))?;
    if !filter.any {
        message::note(TOOL, "no verdict came: nothing was looked at");
        filter.fold(Guard::code(State::Unknown, Kind::Host));
    }
    Ok(filter.worst)
}

impl Filter<'_> {
    fn piece(&mut self, piece: &Piece<'_>) -> Result<(), Error> {
        let raw = match piece {
            Piece::Line(raw) | Piece::Head(raw) => *raw,
            // A JSON object has its end already: its detail is cut.
            Piece::Rest(_) if self.json => return Ok(()),
            Piece::Rest(raw) => return verdict::print(raw),
        };
        self.any = true;
        let line = raw.strip_suffix(b"\n").unwrap_or(raw);
        let Some(mut verdict) = Verdict::parse(line) else { return self.pass_other(raw, line) };
        let was = verdict.state;
        let closed_by = self.decide(&verdict);
        if closed_by.is_some() {
            verdict.state = State::Open;
        }
        self.fold(Guard::code(verdict.state, verdict.kind));
        match closed_by {
            None if self.json => verdict::print(&verdict.json()),
            None => verdict::print(raw),
            Some(why) if self.json => {
                verdict.detail = format!("{why}; was {}: {}", was.word(), verdict.detail);
                verdict::print(&verdict.json())
            }
            Some(why) => verdict::print(&reworded(raw, was, &why)),
        }
    }

    /// A line that is no verdict passes on and counts as `unknown`: what was not understood is not healthy.
    fn pass_other(&mut self, raw: &[u8], line: &[u8]) -> Result<(), Error> {
        if !self.warned {
            self.warned = true;
            let text = "a line is not a verdict: it is passed on and counts as unknown";
            message::note(TOOL, text);
        }
        self.fold(Guard::code(State::Unknown, Kind::Host));
        if self.json {
            let text = format!("not a verdict: {}", String::from_utf8_lossy(line));
            return verdict::print(&Verdict::new(State::Unknown, Kind::Host, "-", text).json());
        }
        verdict::print(raw)
    }

    fn fold(&mut self, code: Code) {
        self.worst = Guard::worse(self.worst, code);
    }

    /// Counts what is to be counted. Gives the reason when the line is to leave as `open`.
    fn decide(&mut self, verdict: &Verdict) -> Option<String> {
        let store = self.store.filter(|_| verdict.subject.len() <= subject::LONGEST)?;
        let decided = match verdict.state {
            State::Ok | State::Healed => self.close(store, &verdict.subject).map(|()| None),
            State::Failed => self.count(store, &verdict.subject),
            State::Missing | State::Short | State::Corrupt | State::Stripped | State::Bad => {
                self.look(store, &verdict.subject)
            }
            State::Would
            | State::Open
            | State::Skipped
            | State::Degraded
            | State::Unknown
            | State::Untracked => Ok(None),
        };
        decided.unwrap_or_else(|trouble| {
            self.trouble(&trouble);
            // What cannot be counted can still be known to be open.
            (verdict.state == State::Failed).then(|| self.look(store, &verdict.subject).ok()).flatten()?
        })
    }

    fn close(&self, store: &Store, subject: &[u8]) -> Result<(), Error> {
        match self.fix.filter(|_| store.knows(subject)) {
            Some(fix) => store.hold(fix, subject, self.rules)?.succeed(),
            None => Ok(()),
        }
    }

    fn count(&self, store: &Store, subject: &[u8]) -> Result<Option<String>, Error> {
        let Some(fix) = self.fix else { return self.look(store, subject) };
        let mut held = store.hold(fix, subject, self.rules)?;
        if held.gate() == Gate::HalfOpen && held.probing()? {
            return Ok(Some(words::PROBING.to_owned()));
        }
        // The failure that opens it was an attempt, and leaves as one.
        let refused = held.refusal();
        held.fail()?;
        Ok(refused)
    }

    fn look(&self, store: &Store, subject: &[u8]) -> Result<Option<String>, Error> {
        let (breaker, _) = store.look(subject, self.rules)?;
        let now = clock::now();
        if let (Gate::HalfOpen, Some(fix)) = (breaker.gate(&now), self.fix)
            && store.hold(fix, subject, self.rules)?.probing()?
        {
            return Ok(Some(words::PROBING.to_owned()));
        }
        Ok(words::refusal(&breaker, &now))
    }

    /// Says the first trouble and lets it decide the exit status. A lock that is not to be had is not waited
    /// for again.
    fn trouble(&mut self, trouble: &Error) {
        self.fold(trouble.code);
        if trouble.code == exit::BUSY {
            self.fix = None;
        }
        if !std::mem::replace(&mut self.troubled, true) {
            words::warn(trouble);
        }
    }
}

/// The line with its state replaced and the reason in front of its detail; every other byte as it came.
fn reworded(raw: &[u8], was: State, why: &str) -> Vec<u8> {
    let mut fields = raw.splitn(4, |b| *b == b'\t').skip(1);
    let mut line = State::Open.word().as_bytes().to_vec();
    for _ in 0..2 {
        line.push(b'\t');
        line.extend_from_slice(fields.next().unwrap_or(b"-"));
    }
    line.extend_from_slice(format!("\t{why}; was {}: ", was.word()).as_bytes());
    line.extend_from_slice(fields.next().unwrap_or(b"-\n"));
    line
}
