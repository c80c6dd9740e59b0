//! What the process was given before Rust's runtime changed it: closed streams and SIGPIPE.
//!
//! The runtime opens /dev/null on a closed descriptor 0, 1 or 2 and ignores SIGPIPE. A prefix command must
//! hand on what it was given, and a closed stdout must be noticed, so both are recorded by a constructor
//! that runs before `main`.
#![allow(unsafe_code, reason = "reads descriptors and one signal disposition before the runtime starts")]

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

static CLOSED: AtomicU8 = AtomicU8::new(0);
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

extern "C" fn record() {
    for fd in 0..3_u8 {
        // SAFETY: F_GETFD reads a flag of a descriptor number and touches no memory.
        if unsafe { libc::fcntl(i32::from(fd), libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << fd, Ordering::Relaxed);
        }
    }
    // SAFETY: sigaction with a null new action only fills `old`, which lives on this stack.
    let ignored = unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), &raw mut old) == 0
            && old.sa_sigaction == libc::SIG_IGN
    };
    PIPE_IGNORED.store(ignored, Ordering::Relaxed);
}

#[used]
// SAFETY: .init_array holds pointers to functions that the C runtime calls once, before main, single-threaded.
#[unsafe(link_section = ".init_array")]
static RECORD: extern "C" fn() = record;

/// Whether descriptor `fd` (0, 1 or 2) was closed when the process started.
pub fn was_closed(fd: u8) -> bool {
    CLOSED.load(Ordering::Relaxed) & (1 << fd) != 0
}

/// Whether SIGPIPE was ignored when the process started.
pub fn pipe_was_ignored() -> bool {
    PIPE_IGNORED.load(Ordering::Relaxed)
}

/// Gives SIGPIPE back the disposition the process started with.
pub fn restore_pipe() {
    if !pipe_was_ignored() {
        // SAFETY: SIG_DFL installs no handler; the call touches no memory of ours.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
}
