//! What is said about a breaker, to a person.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;

use contract::clock::{self, Stamp};
use contract::{Error, message};

use crate::TOOL;
use crate::machine::{Breaker, Gate};

/// While another process makes the one attempt.
pub(crate) const PROBING: &str = "open while one attempt is being made";

/// A subject in quotes, on one line.
pub(crate) fn name(subject: &[u8]) -> String {
    message::quoted(OsStr::from_bytes(subject))
}

/// Why an attempt is not made now: `open for 30 min more after 3 failures`; `None` when it may be.
pub(crate) fn refusal(breaker: &Breaker, now: &Stamp) -> Option<String> {
    match (breaker, breaker.gate(now)) {
        (Breaker::Tripped { failures: n, .. }, Gate::Open { left }) => {
            Some(format!("open for {} more after {}", span(u64::from(left)), failures(*n)))
        }
        _ => None,
    }
}

/// The whole story of a breaker.
pub(crate) fn story(breaker: &Breaker, now: &Stamp) -> String {
    match breaker {
        Breaker::Closed => "closed, nothing failed".to_owned(),
        Breaker::Failing { failures: n, last } => {
            format!("closed after {}, the last at {}", failures(*n), clock::utc(last.wall))
        }
        Breaker::Tripped { failures: n, .. } => refusal(breaker, now)
            .unwrap_or_else(|| format!("half-open after {}: the next attempt decides", failures(*n))),
    }
}

/// Says an error that does not end the program; a closed stderr is no reason to stop.
pub(crate) fn warn(error: &Error) {
    let _ = io::stderr().write_all(error.render(TOOL).as_bytes());
}

/// Seconds in words, rounded up: `50 s`, `30 min`, `7 h`.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3600)),
    }
}

fn failures(count: u32) -> String {
    format!("{count} failure{}", if count == 1 { "" } else { "s" })
}
