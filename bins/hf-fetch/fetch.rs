//! The way of one file: is it there, may it be written, who writes it, where it comes from, what came.

use contract::clock::Deadline;
use contract::message::{self, cause_of, quoted};
use contract::{Error, Fix, Kind, State, Verdict, exit, log, mode};
use files::digest::{Hasher, Sha};
use files::open::Print;
use files::partial::Partial;
use models::{Pin, pins};
use net::{Bounds, Cause, Client, Failure, Retry, Url};

use crate::ask::{self, Offer, short};
use crate::download::{self, Source};
use crate::held::Held;
use crate::present::{self, Present};
use crate::progress::amount;
use crate::wanted::{self, Wanted};
use crate::{Options, segments};

/// Name, connection and handshake.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(15);

/// Brings one file, or says why not. An error is a bound on waiting for another process, or wrong usage.
pub(crate) fn run(wanted: Wanted, options: &Options, fix: Option<&Fix>) -> Result<Verdict, Error> {
    let subject = wanted.subject.clone();
    let verdict = |state, detail: String| Verdict::new(state, Kind::Model, subject.clone(), detail);
    let known = match present::look(&wanted.target, wanted.bytes, wanted.sha.as_ref(), None) {
        Present::Right => return Ok(verdict(State::Ok, right(&wanted))),
        Present::Blocked(what) => return Ok(verdict(State::Failed, format!("occupied: {what}"))),
        Present::Unreadable(what) => return Ok(verdict(State::Unknown, what)),
        Present::Other(print) => print,
    };
    if wanted.sha.is_none() && !options.learn {
        hint("hf-fetch --learn fetches it from huggingface.co and writes down what it measured");
        return Ok(verdict(State::Bad, "no pin: nobody published its sha256".into()));
    }
    if wanted.sources.is_empty() {
        return Ok(verdict(State::Bad, format!("no source: {}", wanted.nowhere)));
    }
    let Some(fix) = fix else {
        // What would be refused without asking anybody is not what would be done.
        return Ok(match reachable(&wanted, options)? {
            Ok(from) => {
                let size = wanted.bytes.map_or("a file of unknown size".into(), amount);
                mode::would(&format!("fetch {subject}, {size}, from {from}"));
                verdict(State::Would, format!("fetch {size} from {}", from.origin))
            }
            Err(failure) => {
                hint_for(failure.cause);
                verdict(State::Failed, failure.to_string())
            }
        });
    };
    let mut job = Job { wanted, options, fix, total: Deadline::after(options.limit), known };
    match job.fetch() {
        Ok((state, detail)) => {
            if state == State::Healed {
                log::event(fix, "hf-fetch", state.word(), &subject);
            }
            Ok(verdict(state, detail))
        }
        Err(Ending::Error(error)) => Err(error),
        Err(Ending::Failure(failure)) => {
            let state = if failure.cause.permanent() { State::Bad } else { State::Failed };
            log::event(fix, "hf-fetch", state.word(), &format!("{subject} {}", failure.cause.words()));
            hint_for(failure.cause);
            Ok(verdict(state, failure.to_string()))
        }
    }
}

/// The first source that may be asked under the settings as they are, found without asking; else why the first may not.
fn reachable<'a>(wanted: &'a Wanted, options: &Options) -> Result<Result<&'a Url, Failure>, Error> {
    let client = match client(wanted, options, Deadline::after(options.limit))? {
        Ok(client) => client,
        Err(failure) => return Ok(Err(failure)),
    };
    let mut first = Err(Failure::new(Cause::Unreachable, "no source"));
    for url in wanted.sources.iter().rev() {
        match client.may_ask(url) {
            Ok(()) => first = Ok(url),
            Err(failure) if first.is_err() => first = Err(failure),
            Err(_) => (),
        }
    }
    Ok(first)
}

/// What sends the requests. An error is a token that no header can carry.
fn client(wanted: &Wanted, options: &Options, total: Deadline) -> Result<Result<Client, Failure>, Error> {
    let bounds = Bounds { connect: CONNECT, stall: options.stall, total };
    Ok(Client::new(wanted.allow.clone(), wanted::token()?, bounds))
}

fn right(wanted: &Wanted) -> String {
    let sha = wanted.sha.as_ref().map(short).unwrap_or_default();
    format!("{} bytes, sha256 {sha}... verified", wanted.bytes.unwrap_or(0))
}

/// How a fetch that brings nothing ends.
enum Ending {
    Failure(Failure),
    Error(Error),
}

impl From<Failure> for Ending {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<Error> for Ending {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

struct Job<'a> {
    wanted: Wanted,
    options: &'a Options,
    fix: &'a Fix,
    total: Deadline,
    /// The file under the final name that is known not to be right.
    known: Option<Print>,
}

impl Job<'_> {
    fn fetch(&mut self) -> Result<(State, String), Ending> {
        let client = client(&self.wanted, self.options, self.total)??;
        if self.wanted.revision.is_none() && self.wanted.repository.is_some() {
            self.note("no revision is pinned, asking for main");
        }
        let mut offer = None;
        if self.wanted.sha.is_none() {
            let told = self.ask(&client, &self.wanted.sources[0])?;
            self.wanted.bytes = self.wanted.bytes.or(told.bytes);
            if let (Some(sha), Some(bytes)) = (told.sha, self.wanted.bytes)
                && present::look(&self.wanted.target, Some(bytes), Some(&sha), None) == Present::Right
            {
                self.learn(&sha, bytes, told.commit.as_deref())?;
                self.wanted.sha = Some(sha);
                return Ok((State::Ok, right(&self.wanted)));
            }
            offer = Some(told);
        }
        let partial = self.partial(offer.as_ref())?;
        // While this process waited, or before it held the partial file, another one may have finished.
        wanted::learned(&mut self.wanted);
        let sha = self.wanted.sha.as_ref();
        let now = present::look(&self.wanted.target, self.wanted.bytes, sha, self.known.as_ref());
        if now == Present::Right {
            if partial.length() == 0 {
                let _ = partial.discard();
            }
            return Ok((State::Ok, format!("{}, fetched by another process", right(&self.wanted))));
        }
        let mut held = Held::resume(partial, self.wanted.bytes)?;
        if held.length() > 0 {
            self.note(&format!("continuing behind {}", amount(held.length())));
        }
        match self.bring(&client, &mut held, offer) {
            Ok((sha, bytes, source)) => {
                let detail = match source {
                    Some(url) => format!("{} of {bytes} bytes from {}", held.received, url.origin),
                    None => format!("{bytes} bytes were there"),
                };
                self.make_way(bytes)?;
                held.promote()?;
                Ok((State::Healed, format!("{detail}, sha256 {}... verified", short(&sha))))
            }
            Err(failure) => {
                let kept = held.keep();
                if kept > 0 {
                    self.note(&format!("{} kept, the next run continues behind them", amount(kept)));
                }
                Err(failure.into())
            }
        }
    }

    /// Moves a sound model of another size aside: it is no damaged copy, somebody put it there. Whatever else has
    /// the name is replaced.
    fn make_way(&self, bytes: u64) -> Result<(), Failure> {
        let target = &self.wanted.target;
        let other = target.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() != bytes)
            && gguf::verify(target, &gguf::Pin::default(), false).state == State::Ok;
        if other {
            let moved = files::atomic::move_aside(self.fix, target);
            let place = moved.map_err(|cause| {
                let text = format!("cannot move {} aside: {}", quoted(target.as_os_str()), cause_of(&cause));
                Failure::new(Cause::Disk, text)
            })?;
            self.note(&format!("another model had its name, which is now {}", quoted(place.as_os_str())));
        }
        Ok(())
    }

    fn note(&self, text: &str) {
        message::note("hf-fetch", &format!("{}: {text}", self.wanted.subject));
    }

    /// The partial file, alone. Its key binds it to the content: the pin, else what the server says it has.
    fn partial(&self, offer: Option<&Offer>) -> Result<Partial, Ending> {
        let target = &self.wanted.target;
        let content = self.wanted.sha.or_else(|| offer?.sha).unwrap_or_else(|| {
            let commit = offer.and_then(|o| o.commit.as_deref()).unwrap_or("main");
            let mut hasher = Hasher::default();
            hasher.update(format!("{}@{commit} {:?}", self.wanted.subject, self.wanted.bytes).as_bytes());
            hasher.finish()
        });
        let dir = target.parent().unwrap_or(target);
        let open = |until| {
            files::atomic::make_dir(self.fix, dir)?;
            Partial::open(self.fix, target, &content.hex()[..12], until)
        };
        let mut opened = open(Deadline::after(std::time::Duration::ZERO));
        if matches!(opened, Ok(None)) {
            self.note("waiting for another process that fetches it");
            opened = open(self.total);
        }
        match opened {
            Ok(Some(partial)) => Ok(partial),
            Ok(None) => {
                let text = format!("{} is being fetched by another process", self.wanted.subject);
                let error = Error::new(exit::BUSY, text).hint("wait for it to end, then run this again");
                Err(error.into())
            }
            Err(cause) => {
                let text = format!("cannot write in {}: {}", quoted(dir.as_os_str()), cause_of(&cause));
                Err(Failure::new(Cause::Disk, text).into())
            }
        }
    }

    /// Asks one source until it answers.
    fn ask(&self, client: &Client, url: &Url) -> Result<Offer, Failure> {
        let mut retry = Retry::until(self.total);
        loop {
            match ask::ask(client, url, &self.wanted) {
                Ok(offer) => return Ok(offer),
                Err(failure) => self.pause(&mut retry, failure, 0)?,
            }
        }
    }

    fn pause(&self, retry: &mut Retry, failure: Failure, progress: u64) -> Result<(), Failure> {
        retry.pause(failure, progress, |failure, pause| {
            self.note(&format!("{failure}; trying again in {} s", pause.as_secs_f32().ceil()));
        })
    }

    /// Fills the partial file from the first source that can: digest, size and that source. None was asked when
    /// the whole file was there already.
    fn bring(
        &self,
        client: &Client,
        held: &mut Held,
        mut offer: Option<Offer>,
    ) -> Result<(Sha, u64, Option<&Url>), Failure> {
        if let Some(bytes) = self.wanted.bytes
            && held.length() == bytes
        {
            if self.wanted.sha.is_some_and(|pin| pin == held.sha()) {
                return Ok((held.sha(), bytes, None));
            }
            held.restart()?;
        }
        let mut failed = None;
        for url in &self.wanted.sources {
            let told = offer.take().map_or_else(|| self.ask(client, url), Ok);
            match told.and_then(|offer| self.bring_from(client, url, &offer, held)) {
                Ok((sha, bytes)) => return Ok((sha, bytes, Some(url))),
                // The disk is the same whoever is asked, and so is the clock.
                Err(failure) if matches!(failure.cause, Cause::Disk | Cause::Expired) => return Err(failure),
                Err(failure) => {
                    if self.wanted.sources.len() > 1 {
                        self.note(&failure.to_string());
                    }
                    failed = Some(less_final(failed, failure));
                }
            }
        }
        Err(failed.unwrap_or_else(|| Failure::new(Cause::Unreachable, "no source")))
    }

    fn bring_from(
        &self,
        client: &Client,
        url: &Url,
        offer: &Offer,
        held: &mut Held,
    ) -> Result<(Sha, u64), Failure> {
        let bytes = self.wanted.bytes.or(offer.bytes);
        if let Some(bytes) = bytes {
            held.room(bytes)?;
        }
        let mut source = Source::default();
        let mut retry = Retry::until(self.total);
        let mut highest = held.length();
        loop {
            let subject = &self.wanted.subject;
            let count = self.options.segments;
            let streamed = match bytes {
                Some(bytes) if count > 1 && offer.ranges && !source.whole => {
                    segments::stream((client, url), &mut source, held, bytes, count, subject)
                }
                _ => download::stream((client, url), &mut source, held, bytes, subject),
            };
            match streamed {
                Ok(bytes) => {
                    if let Some(sha) = self.judge(held, bytes, offer)? {
                        return Ok((sha, bytes));
                    }
                    // One answer from its first byte to its last is judged once and for all.
                    source.whole = true;
                    self.note("what came in pieces is not the pinned file, starting again");
                }
                Err(failure) => {
                    let progress = held.length().saturating_sub(highest);
                    highest = highest.max(held.length());
                    self.pause(&mut retry, failure, progress)?;
                }
            }
        }
    }

    /// The digest when what is held is the file; `None` when it came in pieces, of which one may be wrong.
    fn judge(&self, held: &mut Held, bytes: u64, offer: &Offer) -> Result<Option<Sha>, Failure> {
        let sha = held.sha();
        let pin = self.wanted.sha.or(offer.sha).unwrap_or(sha);
        if sha == pin {
            if self.wanted.sha.is_none() {
                self.learn(&sha, bytes, offer.commit.as_deref())?;
            }
            return Ok(Some(sha));
        }
        let mixed = held.mixed;
        held.restart()?;
        if mixed {
            return Ok(None);
        }
        // A server that promised the pinned file did not change it: it was damaged on the way.
        let cause = if offer.sha == Some(pin) { Cause::Corrupt } else { Cause::Changed };
        let detail = format!("sha256 of what came is {}..., pinned is {}...", short(&sha), short(&pin));
        Err(Failure::new(cause, detail))
    }

    /// Writes down what was measured, before the file gets its name.
    fn learn(&self, sha: &Sha, bytes: u64, commit: Option<&str>) -> Result<(), Failure> {
        let repository = self.wanted.repository.clone().unwrap_or_default();
        let revision = self.wanted.revision.clone().or(commit.map(str::to_owned));
        let pin = Pin { repository, file: self.wanted.file.clone(), revision, bytes, sha256: *sha };
        self.note(&format!("learned sha256 {}", sha.hex()));
        pins::append(self.fix, &pin).map_err(|cause| {
            Failure::new(Cause::Disk, format!("cannot write pins.jsonl: {}", cause_of(&cause)))
        })
    }
}

/// Of two sources' failures the one that may pass; of two alike the first.
fn less_final(first: Option<Failure>, next: Failure) -> Failure {
    match first {
        Some(first) if !first.cause.permanent() || next.cause.permanent() => first,
        _ => next,
    }
}

fn hint(text: &str) {
    use std::io::Write as _;
    let _ = std::io::stderr().write_all(format!("hint: {text}\n").as_bytes());
}

/// The next command to try.
fn hint_for(cause: Cause) {
    hint(match cause {
        Cause::NotFound => "compare repository, revision and file in manifest.json with the hub",
        Cause::Forbidden => "export HF_TOKEN when the repository is gated or private",
        Cause::Changed => {
            "the pin in manifest.json decides: set revision to a commit that has the pinned file"
        }
        Cause::Tls => "export SSL_CERT_FILE when the network has a certificate authority of its own",
        Cause::Proxy => "look at HTTPS_PROXY, ALL_PROXY and NO_PROXY",
        Cause::Disk => {
            "make room, raise the limit, or set SELFHEAL_MODELS_DIR to a directory that can be written; then run this again"
        }
        Cause::Refused => {
            "only huggingface.co, its file servers, HF_ENDPOINT and the manifest's mirrors are asked"
        }
        Cause::Expired => "--limit sets how long all of it may take; run this again: it continues",
        Cause::Page | Cause::Protocol | Cause::Corrupt => {
            "something between here and the hub answers in its place: proxy, login page"
        }
        Cause::Busy | Cause::Server | Cause::Stalled | Cause::Lost | Cause::Unreachable => {
            "run this again later: it continues"
        }
    });
}
