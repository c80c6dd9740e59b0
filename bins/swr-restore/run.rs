//! A whole restore: lock, order, one entry after the other, what depends on a failure skipped.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use contract::message::{self, note, quoted};
use contract::{Error, Fix, Report, State, Swr, Verdict, exit};
use files::beneath::Root;
use workspace::place::Places;
use workspace::verify::{Finding, Repair};
use workspace::{Entry, Manifest, content, order};

use crate::Options;
use crate::journal::Journal;
use crate::repair::{Bench, Outcome, dry};
use crate::{native, recipe};

/// More next commands than these are not read.
const HINTS: usize = 8;

/// Restores everything that the options select.
pub(crate) fn run(
    fix: &Fix,
    manifest: &Manifest,
    home: &Path,
    options: &Options,
    report: &mut Report<Swr>,
) -> Result<(), Error> {
    let _lock = if options.dry_run { None } else { Some(files::lock::exclusive(home, options.wait)?) };
    let places = Places::open(&manifest.header)?;
    let before = Journal::unfinished(home)?;
    let digest = manifest.digest();
    if let Some(unfinished) = &before {
        note("swr-restore", "an earlier restore was interrupted");
        // A place is noted before the move, so nothing may be there.
        for (id, place) in unfinished.aside.iter().filter(|(_, place)| place.symlink_metadata().is_ok()) {
            note("swr-restore", &format!("what was at {id} is kept at {}", quoted(place.as_os_str())));
        }
    }
    let keep = before.as_ref().is_some_and(|u| !u.aside.is_empty() || options.resume);
    let journal = if options.dry_run { None } else { Some(Journal::begin(fix, home, digest, keep)) };
    let bench = Bench {
        fix,
        home: home.to_owned(),
        manifest,
        places: &places,
        journal: journal.as_ref(),
        quarantine: options.quarantine,
        deep: options.deep,
        jobs: content::jobs(),
    };
    if let Some(unfinished) = before.as_ref().filter(|_| !options.dry_run) {
        bench.put_interrupted_back(&unfinished.aside);
    }
    let resumed =
        before.filter(|u| options.resume && u.manifest == Some(digest)).map(|u| u.done).unwrap_or_default();
    let mut restore =
        Restore { manifest, options, bench, failed: Vec::new(), report, hints: Vec::new(), more: 0 };
    restore.all(&places, &resumed)?;
    for hint in &restore.hints {
        message::hint(hint);
    }
    if restore.more > 0 {
        message::hint(&format!("{} more are not shown: swr explain names all that is damaged", restore.more));
    }
    if let Some(journal) = &journal {
        journal.end();
    }
    Ok(())
}

/// What a person does about an entry that no recipe brings back.
fn by_hand(bench: &Bench, root: &Root, entry: &Entry, path: &[u8], findings: &[Finding]) -> String {
    let place = native::absolute(root, path);
    let (place, id) = (quoted(place.as_os_str()), &entry.id);
    if findings.iter().any(|f| f.state == State::Missing && f.repair == Repair::Recipe)
        && root.stat(path).is_err()
    {
        if let Some(copy) = bench.copy_aside(root, entry, path) {
            return format!("a good copy stands aside: mv {} {place}", quoted(copy.as_os_str()));
        }
        return format!("put a copy at {place}, or let go of it: swr add --remove {id}, then swr sign");
    }
    let path = quoted(OsStr::from_bytes(&entry.path));
    format!("put a good copy at {place}; if the change was meant: swr add {path}, then swr sign")
}

struct Restore<'a> {
    manifest: &'a Manifest,
    options: &'a Options,
    bench: Bench<'a>,
    /// Ids that are not healthy after their turn, sorted.
    failed: Vec<String>,
    report: &'a mut Report<Swr>,
    /// What a person can do about what this restore cannot.
    hints: Vec<String>,
    /// How many of those are not kept.
    more: usize,
}

impl Restore<'_> {
    fn all(&mut self, places: &Places, resumed: &[String]) -> Result<(), Error> {
        let entries: Vec<&Entry> = self.manifest.lines.iter().map(|l| &l.entry).collect();
        let order = order::order(&entries);
        let faults = order.faults(&entries);
        for fault in faults.iter().filter(|f| f.concerns(&self.options.only)) {
            self.report.say(&fault.verdict())?;
            self.hint(fault.way_out());
        }
        for cycle in &order.cycles {
            let words = order::cycle_words(&entries, cycle);
            for n in cycle {
                self.unordered(places, entries[*n], State::Failed, &format!("cycle of needs: {words}"))?;
            }
        }
        for n in &order.behind_cycles {
            self.unordered(places, entries[*n], State::Skipped, "what it needs is in a cycle of needs")?;
        }
        for n in order.sequence {
            // What an interrupted run had finished is only looked at: it is healthy or was reported.
            let entry = entries[n];
            self.entry(places, entry, resumed.iter().any(|id| *id == entry.id))?;
        }
        Ok(())
    }

    /// An entry that has no place in the order: said only if it is damaged.
    fn unordered(&mut self, places: &Places, entry: &Entry, state: State, why: &str) -> Result<(), Error> {
        let (root, path) = places.of(entry)?;
        let found = self.bench.look(root, entry, path, false);
        let Some(first) = found.first().filter(|_| self.selected(&entry.id)) else { return Ok(()) };
        self.mark_failed(entry);
        let detail = format!("{}; not attempted: {why}", first.detail);
        self.report.say(&Verdict::new(state, entry.kind(), &*entry.id, detail))
    }

    fn hint(&mut self, hint: String) {
        if self.hints.contains(&hint) {
            return;
        }
        if self.hints.len() < HINTS {
            self.hints.push(hint);
        } else {
            self.more += 1;
        }
    }

    fn mark_failed(&mut self, entry: &Entry) {
        if let Err(at) = self.failed.binary_search_by(|f| f.as_str().cmp(&entry.id)) {
            self.failed.insert(at, entry.id.to_string());
        }
    }

    fn selected(&self, id: &str) -> bool {
        self.options.only.is_empty() || self.options.only.iter().any(|only| only == id)
    }

    fn entry(&mut self, places: &Places, entry: &Entry, resumed: bool) -> Result<(), Error> {
        let (root, path) = places.of(entry)?;
        let findings = self.bench.look(root, entry, path, false);
        if findings.is_empty() {
            return Ok(());
        }
        if !self.selected(&entry.id) || resumed && findings.iter().all(|f| f.state == State::Unknown) {
            // Not ours to repair now, but what needs it must know.
            self.mark_failed(entry);
            return Ok(());
        }
        if let Some(needed) =
            entry.needs.iter().find(|n| self.failed.binary_search_by(|f| f.as_str().cmp(n)).is_ok())
        {
            self.mark_failed(entry);
            let detail = format!("{}; not attempted: it needs '{needed}'", findings[0].detail);
            self.hint(if self.selected(needed) {
                format!("first what the others need: swr explain {needed}")
            } else {
                format!("swr doctor --only {needed} --only {}", entry.id)
            });
            return self.report.say(&Verdict::new(State::Skipped, entry.kind(), &*entry.id, detail));
        }
        if entry.restore.is_none() && findings.iter().any(|f| f.repair == Repair::Recipe) {
            // A look into the quarantine for each of thousands would take long, and not be read.
            if self.hints.len() < HINTS {
                self.hint(by_hand(&self.bench, root, entry, path, &findings));
            } else {
                self.more += 1;
            }
        }
        let outcome = if self.options.dry_run {
            dry(entry, &findings)
        } else {
            note("swr-restore", &format!("{}: {}", entry.id, findings[0].detail));
            self.bench.repair(root, entry, path)
        };
        let place = native::absolute(root, path);
        self.say(entry, &quoted(place.as_os_str()), outcome)
    }

    fn say(&mut self, entry: &Entry, place: &str, outcome: Outcome) -> Result<(), Error> {
        let (state, detail) = match outcome {
            Outcome::Healthy => (State::Ok, "came back by itself".to_owned()),
            Outcome::Healed(detail) => (State::Healed, detail),
            Outcome::Would(detail) => (State::Would, detail),
            Outcome::Failed(detail, hint) => {
                if let Some(hint) = hint {
                    self.hint(hint);
                }
                (State::Failed, detail)
            }
            Outcome::Unknown(detail) => {
                self.hint(format!(
                    "see that {place} and all above it can be read and is no link, then swr doctor"
                ));
                (State::Unknown, detail)
            }
            Outcome::Still(left, aside) => return self.still(entry, &left, aside.first()),
            Outcome::Stopped(signal) => {
                let status = u8::try_from(128 + signal).unwrap_or(u8::MAX);
                return Err(Error::new(contract::Code::transparent(status), "told to stop")
                    .hint("swr restore --resume goes on where this ended"));
            }
        };
        if !matches!(state, State::Ok | State::Healed | State::Would) {
            self.mark_failed(entry);
        }
        // Said before it is noted: a disk that is full now takes no verdict away.
        self.report.say(&Verdict::new(state, entry.kind(), &*entry.id, detail))?;
        self.done(entry);
        Ok(())
    }

    fn done(&self, entry: &Entry) {
        if let Some(journal) = self.bench.journal {
            journal.done(&entry.id);
        }
    }

    fn still(&mut self, entry: &Entry, left: &[Finding], aside: Option<&PathBuf>) -> Result<(), Error> {
        self.mark_failed(entry);
        self.report.fold(exit::swr::STILL_DAMAGED);
        for finding in left {
            let detail = format!("still damaged after its repair: {}", finding.detail);
            self.report.say(&Verdict::new(finding.state, entry.kind(), &*entry.id, detail))?;
        }
        if entry.restore.is_some() {
            let log = recipe::log(&self.bench.home, &entry.id);
            let (path, log) = (quoted(OsStr::from_bytes(&entry.path)), quoted(log.as_os_str()));
            let aside = aside.map(|a| format!("what was there is in {}; ", quoted(a.as_os_str())));
            let aside = aside.unwrap_or_default();
            self.hint(format!(
                "{aside}see {log}; if what is there now is right: swr add {path}, then swr sign; if the recipe is wrong: \
                 move that away, swr add {path} --restore '...', then swr sign"
            ));
        }
        self.done(entry);
        Ok(())
    }
}
