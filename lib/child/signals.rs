//! Signals as data: blocked for the length of a run, read from a descriptor, given back untouched to the command.
#![allow(unsafe_code, reason = "signal masks, dispositions and signalfd have no form in std")]

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::sync::OnceLock;

use contract::origin;

/// Signals that end a run: they would kill this process and leave the tree behind.
const STOPPING: [i32; 10] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGXCPU,
    libc::SIGIO,
    libc::SIGPWR,
];

/// Signals that mean something to the command alone.
const MESSAGES: [i32; 2] = [libc::SIGUSR1, libc::SIGUSR2];

/// Dispositions changed from the first run on: CHLD so that children can be waited for, TTIN and TTOU so that
/// a message from a background group, also after the run, does not stop us.
const CHANGED: [(i32, libc::sighandler_t); 3] =
    [(libc::SIGCHLD, libc::SIG_DFL), (libc::SIGTTIN, libc::SIG_IGN), (libc::SIGTTOU, libc::SIG_IGN)];

/// What those were before.
static FOUND: OnceLock<[libc::sigaction; CHANGED.len()]> = OnceLock::new();

/// A signal this process received.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Received {
    /// A child changed state.
    Child,
    /// It ends the run; `terminal` when the terminal sent it to the whole group.
    Stop { signal: i32, terminal: bool },
    /// It is passed on to the command.
    Message(i32),
    /// The terminal asks to suspend.
    Suspend,
}

/// What a new process is to be given back; made of plain values so that it can be used between fork and exec.
#[derive(Clone, Copy)]
pub(crate) struct Inherited {
    mask: libc::sigset_t,
    actions: [libc::sigaction; CHANGED.len()],
    pipe: libc::sighandler_t,
}

/// Signals held back until dropped.
pub(crate) struct Held {
    inherited: Inherited,
    fd: OwnedFd,
    signal: i32,
}

fn empty() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the whole set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

fn add(set: &mut libc::sigset_t, signal: i32) {
    // SAFETY: `set` is an initialised set; an invalid number is refused and changes nothing.
    unsafe { libc::sigaddset(set, signal) };
}

fn action(signal: i32, new: Option<&libc::sigaction>) -> libc::sigaction {
    // SAFETY: sigaction is plain data for which all zeroes is a value; `new` is a reference or null.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, new.map_or(std::ptr::null(), std::ptr::from_ref), &raw mut old);
        old
    }
}

fn simple(handler: libc::sighandler_t) -> libc::sigaction {
    // SAFETY: as above; SIG_DFL and SIG_IGN install no code.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action
}

impl Held {
    /// Blocks what a run takes care of. A signal that we were told to ignore stays ignored. `signal` is the one
    /// sent at the bound; whoever sends it to us means the same. `suspend`: also take the terminal's Ctrl-Z.
    pub(crate) fn take(signal: i32, suspend: bool) -> io::Result<Self> {
        let mut taken = empty();
        let stopping = STOPPING.iter().chain(&MESSAGES).copied().chain([signal]);
        for s in stopping.chain(suspend.then_some(libc::SIGTSTP)) {
            if action(s, None).sa_sigaction != libc::SIG_IGN {
                add(&mut taken, s);
            }
        }
        add(&mut taken, libc::SIGCHLD);
        // SAFETY: -1 asks for a new descriptor; the set is initialised and only read.
        let fd = unsafe { libc::signalfd(-1, &raw const taken, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) };
        if fd == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just made, owned by nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut blocked = taken;
        add(&mut blocked, libc::SIGPIPE);
        let mut mask = empty();
        // SAFETY: both sets are initialised and outlive the call.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, &raw mut mask) };
        let actions = *FOUND.get_or_init(|| CHANGED.map(|(s, handler)| action(s, Some(&simple(handler)))));
        let pipe = if origin::pipe_was_ignored() { libc::SIG_IGN } else { libc::SIG_DFL };
        Ok(Self { inherited: Inherited { mask, actions, pipe }, fd, signal })
    }

    /// What the command is to be given back.
    pub(crate) fn inherited(&self) -> &Inherited {
        &self.inherited
    }

    /// The descriptor that becomes readable when a signal is there.
    pub(crate) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// The next signal, without waiting. Signals this process sent to its own group are not news.
    pub(crate) fn next(&self) -> Option<Received> {
        loop {
            let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
            let size = size_of::<libc::signalfd_siginfo>();
            // SAFETY: the buffer is writable and of the size given.
            let n = unsafe { libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), size) };
            if usize::try_from(n) != Ok(size) {
                return None;
            }
            // SAFETY: the kernel filled the whole structure.
            let info = unsafe { info.assume_init() };
            let signal = i32::try_from(info.ssi_signo).unwrap_or(0);
            if info.ssi_code <= 0 && info.ssi_pid == std::process::id() {
                continue;
            }
            return Some(match signal {
                libc::SIGCHLD => Received::Child,
                libc::SIGTSTP if self.signal != signal => Received::Suspend,
                s if MESSAGES.contains(&s) && s != self.signal => Received::Message(s),
                signal => Received::Stop { signal, terminal: info.ssi_code == libc::SI_KERNEL },
            });
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A write to a closed pipe left SIGPIPE pending: taken, or unblocking it would kill us.
        let mut pipe = empty();
        add(&mut pipe, libc::SIGPIPE);
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: initialised values that outlive the call; no information is asked for.
        while unsafe { libc::sigtimedwait(&raw const pipe, std::ptr::null_mut(), &raw const now) } > 0 {}
        self.inherited.restore_mask();
    }
}

impl Inherited {
    fn restore_mask(&self) {
        // SAFETY: the set was filled by the kernel; null asks for no copy of the old one.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, std::ptr::null_mut()) };
    }

    /// Gives the new process the dispositions and the mask that this one was started with. Only calls that are
    /// allowed between fork and exec.
    pub(crate) fn restore_in_child(&self) {
        action(libc::SIGPIPE, Some(&simple(self.pipe)));
        for ((signal, _), found) in CHANGED.iter().zip(&self.actions) {
            action(*signal, Some(found));
        }
        self.restore_mask();
    }
}

/// Does what the terminal asked for: stops this process, where stopping means anything, until CONT.
pub(crate) fn suspend() {
    let mut set = empty();
    add(&mut set, libc::SIGTSTP);
    // SAFETY: an initialised set that outlives the calls; the signal goes to this thread.
    unsafe {
        libc::raise(libc::SIGTSTP);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Ends this process by a signal, as the command ended, without a core file of our own. Returns only when the
/// signal does not kill.
pub fn die_of(signal: i32) {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let mut set = empty();
    add(&mut set, signal);
    action(signal, Some(&simple(libc::SIG_DFL)));
    // SAFETY: plain values that outlive the calls; the limit and the mask are this process's own.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
}

/// Names of the standard signals without `SIG` (signal(7)); the first of a number is the one printed.
const NAMES: [(&str, i32); 36] = [
    ("EXIT", 0),
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("ILL", libc::SIGILL),
    ("TRAP", libc::SIGTRAP),
    ("ABRT", libc::SIGABRT),
    ("BUS", libc::SIGBUS),
    ("FPE", libc::SIGFPE),
    ("KILL", libc::SIGKILL),
    ("USR1", libc::SIGUSR1),
    ("SEGV", libc::SIGSEGV),
    ("USR2", libc::SIGUSR2),
    ("PIPE", libc::SIGPIPE),
    ("ALRM", libc::SIGALRM),
    ("TERM", libc::SIGTERM),
    ("STKFLT", libc::SIGSTKFLT),
    ("CHLD", libc::SIGCHLD),
    ("CONT", libc::SIGCONT),
    ("STOP", libc::SIGSTOP),
    ("TSTP", libc::SIGTSTP),
    ("TTIN", libc::SIGTTIN),
    ("TTOU", libc::SIGTTOU),
    ("URG", libc::SIGURG),
    ("XCPU", libc::SIGXCPU),
    ("XFSZ", libc::SIGXFSZ),
    ("VTALRM", libc::SIGVTALRM),
    ("PROF", libc::SIGPROF),
    ("WINCH", libc::SIGWINCH),
    ("POLL", libc::SIGPOLL),
    ("PWR", libc::SIGPWR),
    ("SYS", libc::SIGSYS),
    ("IOT", libc::SIGABRT),
    ("CLD", libc::SIGCHLD),
    ("IO", libc::SIGIO),
    ("UNUSED", libc::SIGSYS),
];

/// The real-time signals the C library leaves to programs, as glibc counts them.
const REAL_TIME: (i32, i32) = (34, 64);

/// The number of a signal given as a number (0 to 64), a name (`TERM`, `SIGTERM`, any case), `RTMIN+N`
/// or `RTMAX-N`.
pub fn signal_number(text: &str) -> Option<i32> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok().filter(|n| *n <= REAL_TIME.1);
    }
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    if let Some((_, number)) = NAMES.iter().find(|(n, _)| *n == name) {
        return Some(*number);
    }
    let offset = |rest: &str, sign: char| match rest {
        "" => Some(0),
        rest => rest.strip_prefix(sign)?.parse::<i32>().ok().filter(|n| (0..=30).contains(n)),
    };
    match (name.strip_prefix("RTMIN"), name.strip_prefix("RTMAX")) {
        (Some(rest), _) => Some(REAL_TIME.0 + offset(rest, '+')?),
        (_, Some(rest)) => Some(REAL_TIME.1 - offset(rest, '-')?),
        _ => None,
    }
}

/// The name of a signal, or its number where it has none.
pub fn signal_name(signal: i32) -> String {
    NAMES
        .iter()
        .find(|(_, n)| *n == signal)
        .map_or_else(|| signal.to_string(), |(name, _)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_read_by_name_and_number() {
        for (text, number) in
            [("TERM", 15), ("sigkill", 9), ("9", 9), ("0", 0), ("RTMIN+1", 35), ("RTMAX", 64), ("CLD", 17)]
        {
            assert_eq!(signal_number(text), Some(number), "{text}");
        }
        for wrong in ["", "65", "-9", "TERMX", "RTMIN-1", "RTMAX-99", "+9", "SIG"] {
            assert_eq!(signal_number(wrong), None, "{wrong:?}");
        }
        assert_eq!(signal_name(15), "TERM");
        assert_eq!(signal_name(40), "40");
    }
}
