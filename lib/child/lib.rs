//! Starts, bounds, signals and reaps processes: the only place that does.
//!
//! [`Run`] describes one command and its bounds; [`Run::run`] starts it, watches it and returns an [`Outcome`].
//! What was started does not outlive the call (unless [`Run::leave`] says so): the process becomes the
//! sub-reaper of the tree, so that whoever calls setsid or forks twice comes back as a direct child, is signalled,
//! killed and reaped. Out of reach, and so a limit: a process in uninterruptible sleep, one that became another
//! user, and work handed to a daemon that was there before.

mod exec;
mod passed_on;
mod pump;
mod quiet;
mod run;
mod signals;
mod spawn;
mod tree;
mod watch;

use std::fs::File;
use std::io;
use std::time::Duration;

pub use quiet::QUIET;
pub use run::Run;
pub use signals::{die_of, signal_name, signal_number};

/// What the command reads from descriptor 0.
#[derive(Debug, Default)]
pub enum Stdin {
    /// `/dev/null`: whatever it asks, the answer is end of input.
    #[default]
    Null,
    /// Our own standard input.
    Inherit,
    /// An open file, from its current position.
    File(File),
}

/// Called with each piece of output.
pub type Each = Box<dyn FnMut(&[u8])>;

/// Where an output stream of the command goes.
#[derive(Default)]
pub enum Sink {
    /// Our own stream of the same number; passed on directly unless output is bounded.
    #[default]
    Inherit,
    /// Nowhere.
    Null,
    /// The first so many bytes are returned in the [`Outcome`], the rest is read and dropped.
    Head(usize),
    /// The last so many bytes are returned in the [`Outcome`].
    Tail(usize),
    /// Each piece as it is read; pieces do not end at line ends.
    Each(Each),
    /// An open file.
    File(File),
    /// As [`Sink::Inherit`], and each piece is shown on its way.
    Shown(Each),
}

/// How the command stands to the terminal and to our process group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Terminal {
    /// In a group of its own without a controlling terminal: opening `/dev/tty` fails, so nothing can ask.
    /// (Not a session of its own: Linux schedules each session as one group, and a new one waits its turn.)
    #[default]
    Detached,
    /// In our group, which becomes a background group of its own: what GNU `timeout` does.
    Group,
    /// In our group, which stays the caller's: the command may use the terminal.
    Foreground,
}

/// Why a run ended.
#[derive(Debug)]
pub enum Cause {
    /// The command ended by itself with this status.
    Exited(u8),
    /// The command died of this signal, not sent by us.
    Signalled(i32),
    /// The bound was reached.
    Expired,
    /// There was no output for too long.
    Idle,
    /// There was more output than allowed.
    OutputCap,
    /// Nothing was started.
    NotStarted(NotStarted),
    /// This process received the signal and passed it on.
    Interrupted(i32),
}

impl Cause {
    /// The cause as the word of a report.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Exited(_) => "exited",
            Self::Signalled(_) => "signalled",
            Self::Expired => "expired",
            Self::Idle => "idle",
            Self::OutputCap => "output-cap",
            Self::NotStarted(_) => "not-started",
            Self::Interrupted(_) => "interrupted",
        }
    }
}

/// Why nothing was started.
#[derive(Debug)]
pub enum NotStarted {
    /// There is no such program (or the interpreter it names is missing).
    NotFound,
    /// There is one and it cannot be run.
    NotRunnable(io::Error),
}

/// What a run left.
#[derive(Debug)]
pub struct Outcome {
    /// Why it ended.
    pub cause: Cause,
    /// The command's status as a shell has it (128 + N after signal N); `None` when it did not start or could
    /// not be killed.
    pub status: Option<u8>,
    /// The signal the command died of, whoever sent it.
    pub died_of: Option<i32>,
    /// Time from start to end on the monotonic clock.
    pub wall: Duration,
    /// CPU time in user mode of everything reaped.
    pub user: Duration,
    /// CPU time in the kernel of everything reaped.
    pub sys: Duration,
    /// Largest resident set of any single process reaped, in bytes.
    pub peak_rss: u64,
    /// Bytes of output that went through this process; 0 where streams were passed on directly.
    pub bytes: u64,
    /// Captured standard output.
    pub stdout: Vec<u8>,
    /// Captured standard error.
    pub stderr: Vec<u8>,
    /// Why output could not be written to our own stream or a file, other than a closed pipe.
    pub write_error: Option<io::Error>,
    /// Whether KILL was sent to the command itself.
    pub killed: bool,
    /// Whether output was left behind: its reader went away, or was too slow.
    pub lost: bool,
}

impl Outcome {
    /// Whether the command ended by itself with status 0.
    pub fn success(&self) -> bool {
        matches!(self.cause, Cause::Exited(0))
    }
}
