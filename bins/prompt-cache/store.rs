//! `$SELFHEAL_HOME/cache/`: looking without a trace, and storing under the directory's lock.
//!
//! Each entry is a file named by its key. Beside them lie `events` (see [`crate::events`]) and `claims`, the empty
//! file in which running keys are locked. Links are not followed.

use std::fs::{File, FileTimes, Metadata};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use contract::{Error, Fix, clock, exit, home, log, message};
use files::claim::Claim;
use files::digest::Sha;
use files::lock::Lock;
use files::open::{self, Refusal};
use files::{atomic, lock, tree};

use crate::entry::{Entry, LINE};
use crate::events::{Event, Events};
use crate::room::{self, Caps};
use crate::{LARGEST, TOOL};

/// How long the directory's lock is waited for; whoever has it needs milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// The directory.
pub(crate) struct Store {
    pub(crate) dir: PathBuf,
    /// Entries that are older are none.
    pub(crate) ttl: Duration,
    /// The directory is a link: nothing is read or written through it.
    linked: bool,
}

/// What is there of a key.
pub(crate) enum Found {
    Hit(Hit),
    Absent,
    /// Too old, by so many seconds since it was made.
    Expired(u64),
    /// Something that is no entry, in words.
    Flawed(String),
}

/// A usable entry and its open file.
pub(crate) struct Hit {
    pub(crate) entry: Entry,
    pub(crate) meta: Metadata,
    file: File,
}

impl Store {
    /// Where this user's answers are.
    pub(crate) fn at_home(ttl: Duration) -> Result<Self, Error> {
        let dir = home::selfheal_home()?.join("cache");
        Ok(Self { linked: dir.is_symlink(), dir, ttl })
    }

    /// An error when the directory is a link.
    fn own(&self) -> io::Result<()> {
        if self.linked { Err(io::Error::other("the directory is a link")) } else { Ok(()) }
    }

    fn path(&self, key: &Sha) -> PathBuf {
        self.dir.join(key.hex())
    }

    pub(crate) fn events(&self) -> Events {
        Events { path: self.dir.join("events") }
    }

    /// Looks a key up. Nothing is written.
    pub(crate) fn look(&self, key: &Sha) -> Found {
        if self.linked {
            return Found::Absent;
        }
        let (file, meta) = match open::no_link(&self.path(key)) {
            Ok(opened) => opened,
            Err(Refusal::NotAFile(what)) => return Found::Flawed(what.words().to_owned()),
            Err(Refusal::Io(cause)) if cause.kind() == io::ErrorKind::NotFound => return Found::Absent,
            Err(Refusal::Io(cause)) => return Found::Flawed(message::cause_of(&cause)),
        };
        let most = (LARGEST + LINE) as u64;
        if meta.len() > most {
            return Found::Flawed("larger than any entry".to_owned());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0) + 1);
        if let Err(cause) = (&file).take(most).read_to_end(&mut bytes) {
            return Found::Flawed(message::cause_of(&cause));
        }
        match Entry::read(key, bytes) {
            Err(flaw) => Found::Flawed(flaw.to_owned()),
            // A time in the future counts as now.
            Ok(entry) => match clock::wall().saturating_sub(entry.created) {
                age if age > self.ttl.as_secs() => Found::Expired(age),
                _ => Found::Hit(Hit { entry, meta, file }),
            },
        }
    }

    /// The usable entry of a key; what is wrong with an unusable one is said.
    pub(crate) fn hit(&self, key: &Sha) -> Option<Hit> {
        match self.look(key) {
            Found::Hit(hit) => return Some(hit),
            Found::Flawed(flaw) => {
                message::note(TOOL, &format!("entry {} counts as a miss: {flaw}", key.hex()));
            }
            Found::Absent | Found::Expired(_) => {}
        }
        None
    }

    /// Notes that an entry was used. A failure is of no consequence for the answer, and not said.
    pub(crate) fn used(&self, fix: &Fix, key: &Sha, hit: &Hit) {
        files::space::survive_size_limit();
        let now = clock::wall();
        let _ = set_used(&hit.file, now);
        let _ = self.events().add(fix, Event::Hit(hit.entry.took));
        if self.events().is_long()
            && let Ok(_lock) = lock::exclusive(&self.dir, Duration::ZERO)
        {
            let _ = self.events().fold(fix);
        }
        if hit.entry.created > now {
            // Made under a clock that was ahead: from now on it ages.
            let entry = Entry::new(key, now, hit.entry.took, hit.entry.body());
            let _ = lock::exclusive(&self.dir, Duration::ZERO)
                .map(|_lock| atomic::write(fix, &self.path(key), entry.file(), 0o600));
        }
    }

    /// Why an answer is not to be kept, if so.
    pub(crate) fn unfit(body: &[u8], caps: Caps) -> Option<String> {
        if body.is_empty() {
            return Some("it is empty".to_owned());
        }
        if body.len() > LARGEST {
            return Some(format!("it is larger than {LARGEST} bytes"));
        }
        let file = (body.len() + LINE) as u64;
        (file > caps.bytes).then(|| format!("it does not fit into {} bytes", caps.bytes))
    }

    /// Keeps an answer. One that is unfit evicts nothing: `Ok` with the reason.
    pub(crate) fn put(
        &self,
        fix: &Fix,
        key: &Sha,
        took: Duration,
        body: &[u8],
        caps: Caps,
    ) -> Result<Option<String>, Error> {
        if let Some(why) = Self::unfit(body, caps) {
            return Ok(Some(why));
        }
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let now = clock::wall();
        let entry = Entry::new(key, now, took, body);
        let size = entry.file().len() as u64;
        let path = self.path(key);
        let failed = |cause: &io::Error| Error::io("write", path.as_os_str(), cause);
        files::space::survive_size_limit();
        let _lock = self.lock(fix)?;
        let flawed = matches!(self.look(key), Found::Flawed(_));
        for evicted in room::make(fix, &self.dir, &path, size, caps).map_err(|cause| failed(&cause))? {
            log::event(fix, TOOL, "evict", &evicted);
            let _ = self.events().add(fix, Event::Evicted);
        }
        atomic::write(fix, &path, entry.file(), 0o600).map_err(|cause| failed(&cause))?;
        let _ = File::open(&path).and_then(|file| set_used(&file, now));
        log::event(fix, TOOL, if flawed { "replace" } else { "store" }, &key.hex());
        let _ = self.events().add(fix, Event::Miss);
        let _ = if self.events().is_long() { self.events().fold(fix) } else { Ok(()) };
        Ok(None)
    }

    /// Counts a command that was run and whose output was not kept.
    pub(crate) fn missed(&self, fix: &Fix) {
        files::space::survive_size_limit();
        let _ = self.own().and_then(|()| self.events().add(fix, Event::Miss));
    }

    /// Opens the file in which this key is claimed while its command runs.
    pub(crate) fn claim(&self, fix: &Fix, key: &Sha) -> io::Result<Claim> {
        self.own()?;
        atomic::make_dir(fix, &self.dir)?;
        let number = key.0.iter().fold(0_u64, |n, b| n.rotate_left(8) ^ u64::from(*b));
        Claim::of(fix, &self.dir.join("claims"), number)
    }

    /// The keys for which there is a file, in order.
    pub(crate) fn keys(&self) -> Result<Vec<Sha>, Error> {
        let unreadable = |cause: io::Error| Error::io("read", self.dir.as_os_str(), &cause);
        self.own().map_err(unreadable)?;
        let entries = match std::fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(unreadable(cause)),
        };
        let mut keys = Vec::new();
        for entry in entries {
            keys.extend(key_of(&entry.map_err(unreadable)?.path()));
        }
        keys.sort_unstable_by_key(|key: &Sha| key.0);
        Ok(keys)
    }

    /// Removes what is there of a key.
    pub(crate) fn remove(&self, fix: &Fix, key: &Sha) -> Result<(), Error> {
        let path = self.path(key);
        tree::remove_own_file(fix, &path).map_err(|cause| Error::io("remove", path.as_os_str(), &cause))
    }

    /// Takes the directory's lock; the directory is made when it is missing.
    pub(crate) fn lock(&self, fix: &Fix) -> Result<Lock, Error> {
        let made = self.own().and_then(|()| atomic::make_dir(fix, &self.dir));
        made.map_err(|cause| Error::io("use", self.dir.as_os_str(), &cause))?;
        lock::exclusive(&self.dir, PATIENCE)
    }
}

/// The key whose file this would be: its name as [`Sha::hex`] writes it.
pub(crate) fn key_of(path: &Path) -> Option<Sha> {
    let name = std::str::from_utf8(path.file_name()?.as_bytes()).ok()?;
    Sha::from_hex(name).filter(|key| key.hex() == name)
}

/// When an entry was last used is the time of its last change: nothing but us changes it, and reading it does not.
pub(crate) fn set_used(file: &File, wall: u64) -> io::Result<()> {
    file.set_times(FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(wall)))
}

/// When an entry was last used, in seconds since 1970.
pub(crate) fn last_used(meta: &Metadata) -> u64 {
    let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    meta.modified().map_or(0, since)
}

/// A key from the command line: 64 hexadecimal digits, never a path.
pub(crate) fn parse_key(text: &std::ffi::OsStr) -> Result<Sha, Error> {
    text.to_str().and_then(Sha::from_hex).ok_or_else(|| {
        Error::new(exit::USAGE, format!("{} is not a key of 64 hexadecimal digits", message::quoted(text)))
            .hint("run-guarded --key PROMPT ROLE N prints one")
    })
}
