//! `$SELFHEAL_HOME/state/breaker/`: reading without a trace, and changing under the directory's lock.
//!
//! Of each subject: `NAME.state` (see [`crate::record`]), `NAME.pending` (what a shell without this
//! program appended, see [`crate::pending`]), `NAME.folding` (such a file while it is counted) and `NAME.lease`
//! (locked by the one probe). Links are not followed, and what is no state file reads as nothing known.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use contract::clock::{self, Stamp};
use contract::{Error, Fix, home, log, message};
use files::lock::Lock;
use files::{atomic, lock, process_lock, tree};

use crate::content::{self, Content};
use crate::machine::{Breaker, Change, Gate, Rules};
use crate::record::{self, Record};
use crate::{TOOL, pending, room, subject, words};

/// How long the directory's lock is waited for; whoever has it needs milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// The directory.
pub(crate) struct Store {
    pub(crate) dir: PathBuf,
}

/// The files of one subject.
pub(crate) struct Paths {
    pub(crate) state: PathBuf,
    pub(crate) pending: PathBuf,
    pub(crate) folding: PathBuf,
    pub(crate) lease: PathBuf,
}

/// The one probe of a half-open breaker: kernel locks of this process and of its command, each freed when that
/// process has ended in any way.
pub(crate) struct Lease {
    pub(crate) file: File,
}

/// The byte of a lease file that this program locks.
const OURS: u32 = 0;
/// The byte that the command of a probe locks.
pub(crate) const COMMANDS: u32 = 1;

/// Whether a lease can be had.
pub(crate) enum Claim {
    Taken(Lease),
    /// Another has it.
    Held,
    /// Whoever had it was killed. Its command is killed with it, but a moment later.
    Dying,
}

/// One subject while the directory is locked.
pub(crate) struct Held<'a> {
    fix: &'a Fix,
    _lock: Lock,
    paths: Paths,
    record: Record,
    now: Stamp,
    rules: Rules,
}

impl Store {
    /// Where this user's breakers are.
    pub(crate) fn at_home() -> Result<Self, Error> {
        Ok(Self { dir: home::selfheal_home()?.join("state/breaker") })
    }

    pub(crate) fn paths(&self, subject: &[u8]) -> Paths {
        let name = subject::file_name(subject);
        let with = |suffix: &str| self.dir.join(format!("{name}.{suffix}"));
        Paths {
            state: with("state"),
            pending: with("pending"),
            folding: with("folding"),
            lease: with("lease"),
        }
    }

    /// Whether there is anything to forget about a subject.
    pub(crate) fn knows(&self, subject: &[u8]) -> bool {
        let paths = self.paths(subject);
        [paths.state, paths.pending, paths.folding].iter().any(|p| p.symlink_metadata().is_ok())
    }

    /// The breaker as it is, pending failures included; nothing is written and no lock is taken. The text says
    /// what is wrong with a state file that cannot be used.
    pub(crate) fn look(&self, subject: &[u8], rules: Rules) -> Result<(Breaker, Option<String>), Error> {
        let paths = self.paths(subject);
        let (mut record, flaw) = load(&paths.state, subject)?;
        let now = clock::now();
        for path in [&paths.folding, &paths.pending] {
            let read = pending::read(path, &now).map_err(|cause| unreadable(path, &cause))?;
            if let Some(file) = read.filter(|f| record.folded.as_ref() != Some(&f.print)) {
                file.apply(&mut record.breaker, rules);
            }
        }
        Ok((record.breaker, flaw))
    }

    /// Locks the directory, made when it is missing, and counts what is pending.
    pub(crate) fn hold<'a>(&self, fix: &'a Fix, subject: &[u8], rules: Rules) -> Result<Held<'a>, Error> {
        let lock = self.lock(fix)?;
        let paths = self.paths(subject);
        let (record, flaw) = load(&paths.state, subject)?;
        if let Some(flaw) = flaw {
            let name = words::name(subject);
            message::note(TOOL, &format!("the state of {name} is {flaw}: counting starts anew"));
            if paths.state.is_dir() && !paths.state.is_symlink() {
                aside(fix, &paths.state)?;
            }
        }
        let mut held = Held { fix, _lock: lock, paths, record, now: clock::now(), rules };
        held.fold()?;
        if held.record.breaker.settle(&held.now) {
            held.save()?;
        }
        Ok(held)
    }

    /// Forgets a subject, whatever its files hold; a probe that runs keeps its lease.
    pub(crate) fn forget(&self, fix: &Fix, subject: &[u8]) -> Result<(), Error> {
        let _lock = self.lock(fix)?;
        let paths = self.paths(subject);
        if !matches!(claim(&paths.lease, None), Ok(Claim::Held)) {
            clear(fix, &paths.lease)?;
        }
        for path in [&paths.pending, &paths.folding, &paths.state] {
            clear(fix, path)?;
        }
        log::event(fix, TOOL, "reset", &String::from_utf8_lossy(subject));
        Ok(())
    }

    fn lock(&self, fix: &Fix) -> Result<Lock, Error> {
        atomic::make_dir(fix, &self.dir).map_err(|cause| unwritable(&self.dir, &cause))?;
        lock::exclusive(&self.dir, PATIENCE)
    }
}

impl Held<'_> {
    /// What it lets through now. While a probe runs, half-open is as good as open.
    pub(crate) fn gate(&self) -> Gate {
        self.record.breaker.gate(&self.now)
    }

    /// Why no attempt may be made, a running probe apart; `None` when one may.
    pub(crate) fn refusal(&self) -> Option<String> {
        words::refusal(&self.record.breaker, &self.now)
    }

    /// Takes the lease of the one probe.
    pub(crate) fn claim(&self) -> Result<Claim, Error> {
        claim(&self.paths.lease, Some(self.fix))
    }

    /// Whether a probe runs.
    pub(crate) fn probing(&self) -> Result<bool, Error> {
        let path = &self.paths.lease;
        Ok(path.symlink_metadata().is_ok() && matches!(claim(path, None)?, Claim::Held))
    }

    /// Gives the lease back.
    pub(crate) fn release(&self, lease: Lease) -> Result<(), Error> {
        clear(self.fix, &self.paths.lease)?;
        drop(lease);
        Ok(())
    }

    /// Proves that a failure could be recorded: a file as long as a state file, dropped again.
    pub(crate) fn prove_writable(&self) -> Result<(), Error> {
        use std::io::Write as _;
        let written = atomic::begin(self.fix, &self.paths.state).and_then(|mut f| f.write_all(&[b'\n'; 512]));
        written.map_err(|cause| unwritable(&self.paths.state, &cause))
    }

    /// Records a failed attempt.
    pub(crate) fn fail(&mut self) -> Result<(), Error> {
        let change = self.record.breaker.fail(&self.now.clone(), self.rules);
        if change != Change::Nothing {
            self.save()?;
            self.tell(change);
        }
        Ok(())
    }

    /// Records a success: nothing is left to know.
    pub(crate) fn succeed(&mut self) -> Result<(), Error> {
        let change = self.record.breaker.succeed();
        clear(self.fix, &self.paths.pending)?;
        clear(self.fix, &self.paths.folding)?;
        self.save()?;
        self.tell(change);
        Ok(())
    }

    /// Counts what a shell appended. The file gets a private name first, so that a later append starts
    /// a new one, and its identity is recorded, so that a crash before it is removed does not count it twice.
    fn fold(&mut self) -> Result<(), Error> {
        for _ in 0..2 {
            let (from, to) = (&self.paths.pending, &self.paths.folding);
            if to.symlink_metadata().is_err() {
                if from.symlink_metadata().is_err() {
                    return Ok(());
                }
                tree::rename_new(from, to).map_err(|cause| unwritable(from, &cause))?;
            }
            let read = pending::read(to, &self.now).map_err(|cause| unreadable(to, &cause))?;
            if let Some(file) = read.filter(|f| self.record.folded.as_ref() != Some(&f.print)) {
                let change = file.apply(&mut self.record.breaker, self.rules);
                self.record.folded = Some(file.print);
                self.save()?;
                self.tell(change);
            }
            clear(self.fix, &self.paths.folding)?;
        }
        Ok(())
    }

    fn save(&self) -> Result<(), Error> {
        let path = &self.paths.state;
        let Some(text) = self.record.text() else { return clear(self.fix, path) };
        room::make(self.fix, path).map_err(|cause| unwritable(path, &cause))?;
        atomic::write(self.fix, path, text.as_bytes(), 0o600).map_err(|cause| unwritable(path, &cause))
    }

    fn tell(&self, change: Change) {
        let event = match change {
            Change::Opened => "open",
            Change::Closed => "close",
            Change::Nothing | Change::Counted => return,
        };
        log::event(self.fix, TOOL, event, &String::from_utf8_lossy(&self.record.subject));
    }
}

/// The record of a state file, and what is wrong when there is one that cannot be used.
fn load(path: &Path, subject: &[u8]) -> Result<(Record, Option<String>), Error> {
    let fresh = Record { subject: subject.to_vec(), ..Record::default() };
    let flaw = match content::read(path, record::LIMIT).map_err(|cause| unreadable(path, &cause))? {
        Content::Missing => return Ok((fresh, None)),
        Content::File(bytes, _) => match Record::parse(&bytes) {
            Some(record) if record.subject == subject => return Ok((record, None)),
            Some(_) => "the state of another subject",
            None => "not a state file",
        },
        Content::Odd(what) => what,
    };
    Ok((fresh, Some(flaw.to_owned())))
}

/// Locks a lease file, made when there is consent. The lock of the directory makes one step of this.
fn claim(path: &Path, fix: Option<&Fix>) -> Result<Claim, Error> {
    let open = |new: bool| {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        OpenOptions::new().read(true).write(new).create_new(new).mode(0o600).custom_flags(flags).open(path)
    };
    let file = match open(false) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound && fix.is_some() => open(true),
        other => other,
    };
    let file = file.map_err(|cause| unreadable(path, &cause))?;
    let failed = |cause| Error::io("lock", path.as_os_str(), &cause);
    if process_lock::is_held(&file, OURS).map_err(failed)? {
        return Ok(Claim::Held);
    }
    if process_lock::is_held(&file, COMMANDS).map_err(failed)? {
        return Ok(Claim::Dying);
    }
    process_lock::share(&file, OURS).map_err(failed)?;
    Ok(Claim::Taken(Lease { file }))
}

/// Removes a file of ours; a directory in its place is moved aside.
fn clear(fix: &Fix, path: &Path) -> Result<(), Error> {
    if path.symlink_metadata().is_ok_and(|m| m.is_dir()) {
        return aside(fix, path);
    }
    tree::remove_own_file(fix, path).map_err(|cause| unwritable(path, &cause))
}

fn aside(fix: &Fix, path: &Path) -> Result<(), Error> {
    let place = atomic::move_aside(fix, path).map_err(|cause| unwritable(path, &cause))?;
    let name = message::quoted(place.as_os_str());
    message::note(TOOL, &format!("moved what stood in the way to {name}"));
    Ok(())
}

fn unreadable(path: &Path, cause: &io::Error) -> Error {
    Error::io("read", path.as_os_str(), cause).hint("breaker reset SUBJECT forgets what is recorded")
}

fn unwritable(path: &Path, cause: &io::Error) -> Error {
    Error::io("write", path.as_os_str(), cause)
        .hint("set SELFHEAL_HOME to a directory that can be written; SELFHEAL_MODE=check does not count")
}
