//! One command and its bounds, put together piece by piece.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsRawFd as _, RawFd};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use contract::home;

use crate::signals::Held;
use crate::tree::{Tree, adopt_orphans};
use crate::{Outcome, Sink, Stdin, Terminal, quiet, spawn, watch};

/// Told of each signal that is sent to the command.
pub(crate) type Told = Box<dyn FnMut(i32)>;

/// A variable and its new value, or none.
pub(crate) type Change = (OsString, Option<OsString>);

/// What to run and under which bounds.
pub struct Run {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<Change>,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) stdin: Stdin,
    pub(crate) stdout: Sink,
    pub(crate) stderr: Sink,
    pub(crate) keep: Vec<RawFd>,
    pub(crate) lock: Option<(RawFd, u32)>,
    pub(crate) terminal: Terminal,
    pub(crate) bounds: Bounds,
    pub(crate) told: Option<Told>,
}

/// When and how a run is stopped.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) limit: Duration,
    pub(crate) grace: Duration,
    pub(crate) signal: i32,
    pub(crate) idle: Option<Duration>,
    pub(crate) max_output: Option<u64>,
    pub(crate) leave: bool,
    pub(crate) patient: bool,
    pub(crate) only_leader: bool,
}

/// One run at a time: children are waited for without naming them.
static ONE: Mutex<()> = Mutex::new(());

impl Run {
    /// A program, searched on `PATH` unless its name has a slash; 60 s, nothing to read, output passed on.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            dir: None,
            stdin: Stdin::Null,
            stdout: Sink::Inherit,
            stderr: Sink::Inherit,
            keep: Vec::new(),
            lock: None,
            terminal: Terminal::Detached,
            bounds: Bounds {
                limit: Duration::from_secs(60),
                grace: Duration::from_secs(5),
                signal: libc::SIGTERM,
                idle: None,
                max_output: None,
                leave: false,
                patient: false,
                only_leader: false,
            },
            told: None,
        }
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the command's environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), Some(value.into())));
        self
    }

    /// Takes a variable out of the command's environment.
    #[must_use]
    pub fn env_remove(mut self, name: impl Into<OsString>) -> Self {
        self.env.push((name.into(), None));
        self
    }

    /// The environment under which programs fail instead of asking, see [`crate::QUIET`].
    #[must_use]
    pub fn quiet_env(mut self) -> Self {
        let undone = home::environment().into_iter().filter(|(name, _)| quiet::undoes(name));
        self.env.extend(undone.map(|(name, _)| (name, None)));
        self.env.extend(crate::QUIET.iter().map(|(name, value)| (name.into(), Some(value.into()))));
        self
    }

    /// The directory the command starts in.
    #[must_use]
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// What the command reads; nothing unless set.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Where standard output goes.
    #[must_use]
    pub fn stdout(mut self, sink: Sink) -> Self {
        self.stdout = sink;
        self
    }

    /// Where standard error goes.
    #[must_use]
    pub fn stderr(mut self, sink: Sink) -> Self {
        self.stderr = sink;
        self
    }

    /// A file the command keeps open under the same descriptor number; it must live until the run is over.
    #[must_use]
    pub fn inherit(mut self, file: &File) -> Self {
        self.keep.push(file.as_raw_fd());
        self
    }

    /// As [`Run::inherit`], and the command itself, not what it starts, holds a shared lock (fcntl) on that byte of
    /// the file from before it executes until it has ended: it can be seen to run even when this process is killed.
    #[must_use]
    pub fn lock(mut self, file: &File, byte: u32) -> Self {
        self.lock = Some((file.as_raw_fd(), byte));
        self.inherit(file)
    }

    /// The bound: after it the signal is sent. Zero means no bound, as GNU `timeout` has it.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.bounds.limit = limit;
        self
    }

    /// Time between the signal and KILL, 5 s unless set.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.bounds.grace = grace;
        self
    }

    /// The signal sent at the bound, TERM unless set.
    #[must_use]
    pub fn signal(mut self, signal: i32) -> Self {
        self.bounds.signal = signal;
        self
    }

    /// Stops the command when it has written nothing for so long.
    #[must_use]
    pub fn idle(mut self, idle: Duration) -> Self {
        self.bounds.idle = Some(idle);
        self
    }

    /// Stops the command when its two streams together hold more than so many bytes; exactly so many are
    /// passed on.
    #[must_use]
    pub fn max_output(mut self, bytes: u64) -> Self {
        self.bounds.max_output = Some(bytes);
        self
    }

    /// Leaves alone what a command that ended by itself left running.
    #[must_use]
    pub fn leave(mut self, leave: bool) -> Self {
        self.bounds.leave = leave;
        self
    }

    /// How the command stands to the terminal; a session of its own unless set.
    #[must_use]
    pub fn terminal(mut self, terminal: Terminal) -> Self {
        self.terminal = terminal;
        self
    }

    /// A signal received is passed on, but does not start the grace: KILL comes after the bound only.
    #[must_use]
    pub fn patient(mut self, patient: bool) -> Self {
        self.bounds.patient = patient;
        self
    }

    /// Signals go to the command alone and what it started is left, as GNU `timeout --foreground` does.
    #[must_use]
    pub fn only_leader(mut self, only: bool) -> Self {
        self.bounds.only_leader = only;
        self
    }

    /// Called with each signal just before it is sent to the command.
    #[must_use]
    pub fn told(mut self, told: impl FnMut(i32) + 'static) -> Self {
        self.told = Some(Box::new(told));
        self
    }

    /// Runs it to its end. Never fails: a command that could not be started is a cause.
    ///
    /// One run at a time in a process; a second caller waits for the first. Children from before are not
    /// killed, those started meanwhile by other means are. In a process with several threads a signal may find
    /// a thread that has not blocked it.
    pub fn run(self) -> Outcome {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        let detached = self.terminal == Terminal::Detached;
        let bounds = self.bounds;
        let held = match Held::take(bounds.signal, detached) {
            Ok(held) => held,
            Err(cause) => return watch::not_started(began, crate::NotStarted::NotRunnable(cause)),
        };
        let mut tree = Tree::before(self.terminal);
        let adopted = adopt_orphans(true);
        let outcome = match spawn::start(self, &held) {
            Ok(started) => {
                tree.set_leader(started.pid);
                watch::Watch::new(began, bounds, &held, tree, started).finish()
            }
            Err(cause) => watch::not_started(began, cause),
        };
        adopt_orphans(adopted);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, NotStarted};

    fn sh(script: &str) -> Run {
        Run::new("sh").args(["-c", script]).stdout(Sink::Head(1 << 20)).stderr(Sink::Tail(10))
    }

    #[test]
    fn both_streams_are_captured_within_their_bounds() {
        let outcome = sh("echo out; echo 0123456789abcdef >&2; exit 3").run();
        assert!(matches!(outcome.cause, Cause::Exited(3)), "{outcome:?}");
        assert_eq!((outcome.stdout, outcome.stderr), (b"out\n".to_vec(), b"789abcdef\n".to_vec()));
        assert_eq!((outcome.status, outcome.bytes), (Some(3), 21));
        assert_eq!(sh("yes | head -c 300000").stdout(Sink::Head(7)).run().stdout, b"y\ny\ny\ny");
    }

    #[test]
    fn what_is_passed_on_can_be_seen_on_its_way() {
        let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let copy = std::rc::Rc::clone(&seen);
        let shown = Sink::Shown(Box::new(move |piece| copy.borrow_mut().extend_from_slice(piece)));
        let outcome = sh("printf 'a\\nb'").stdout(shown).run();
        assert!(outcome.success() && outcome.stdout.is_empty() && outcome.bytes == 3, "{outcome:?}");
        assert_eq!(*seen.borrow(), b"a\nb");
    }

    #[test]
    fn the_quiet_environment_reaches_the_command_and_gives_way_to_its_own() {
        let print = "printf '%s %s %s' \"$GIT_TERMINAL_PROMPT\" \"$PAGER\" \"${HOME-none}\"";
        let outcome = sh(print).quiet_env().env("PAGER", "mine").env_remove("HOME").run();
        assert_eq!(outcome.stdout, b"0 mine none", "{outcome:?}");
        let found = Run::new("only-here").env("PATH", "/no/such:").current_dir("/").run();
        assert!(matches!(found.cause, Cause::NotStarted(NotStarted::NotFound)));
    }

    #[test]
    fn a_holder_of_the_pipe_is_not_waited_for() {
        let outcome = sh("setsid sleep 60 & echo hi").run();
        assert_eq!(outcome.stdout, b"hi\n");
        assert!(outcome.success() && outcome.wall < Duration::from_secs(20), "{outcome:?}");
    }

    #[test]
    fn what_is_not_there_is_told_from_what_cannot_be_run() {
        assert!(matches!(Run::new("no-such-program").run().cause, Cause::NotStarted(NotStarted::NotFound)));
        assert!(matches!(Run::new("/").run().cause, Cause::NotStarted(NotStarted::NotRunnable(_))));
        let elsewhere = Run::new("true").current_dir("/no/such/directory").run();
        assert!(matches!(elsewhere.cause, Cause::NotStarted(NotStarted::NotRunnable(_))), "{elsewhere:?}");
    }

    #[test]
    fn every_bound_ends_the_run_and_names_itself() {
        let ms = Duration::from_millis;
        let expired = sh("sleep 60").limit(ms(50)).run();
        assert!(matches!(expired.cause, Cause::Expired) && expired.status == Some(143), "{expired:?}");
        let idle = sh("echo a; sleep 60").idle(ms(200)).run();
        assert!(matches!(idle.cause, Cause::Idle) && idle.stdout == b"a\n", "{idle:?}");
        let cut = sh("yes").max_output(100_001).run();
        assert!(matches!(cut.cause, Cause::OutputCap), "{:?}", cut.cause);
        assert_eq!((cut.stdout.len(), cut.bytes), (100_001, 100_001));
        let killed = sh("trap '' TERM; while :; do sleep 1; done").limit(ms(50)).grace(ms(50)).run();
        assert!(killed.killed && killed.status == Some(137), "{killed:?}");
    }

    #[test]
    fn a_command_holds_its_lock_and_what_it_leaves_running_does_not() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        // In /proc/locks: `1: POSIX  ADVISORY  READ 4711 08:01:1234 7 7`.
        let inode = std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap());
        let script = format!("grep -c ' READ .*:{inode} 7 7' /proc/locks; sleep 9 >/dev/null 2>&1 & exit 0");
        let outcome = sh(&script).lock(&file, 7).leave(true).run();
        assert_eq!(outcome.stdout, b"1\n", "{outcome:?}");
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        assert!(!locks.contains(&format!(":{inode} 7 7")), "{locks}");
    }

    #[test]
    fn a_command_that_dies_of_a_signal_is_told_from_one_that_exits() {
        assert!(matches!(sh("kill -9 $$").run().cause, Cause::Signalled(9)));
        assert!(matches!(sh("exit 137").run().cause, Cause::Exited(137)));
    }
}
