//! How far it is: a bar that redraws itself on a terminal, elsewhere one line per tenth.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use contract::message;

const REDRAW: Duration = Duration::from_millis(250);

/// Progress of one file, on standard error.
pub(crate) struct Progress {
    subject: String,
    total: u64,
    /// Bytes that were there before, and since when others come.
    start: (u64, Instant),
    terminal: bool,
    drawn: Option<Instant>,
    tenth: u64,
}

impl Progress {
    /// Starts at `done` of `total` bytes.
    pub(crate) fn new(subject: &str, total: u64, done: u64) -> Self {
        Self {
            subject: message::one_line(subject),
            total,
            start: (done, Instant::now()),
            terminal: io::stderr().is_terminal(),
            drawn: None,
            tenth: portion(done, total, 10),
        }
    }

    /// `done` bytes are there now. A closed stderr is no reason to stop.
    pub(crate) fn at(&mut self, done: u64) {
        if self.terminal {
            if done == self.total || self.drawn.is_none_or(|at| at.elapsed() >= REDRAW) {
                self.drawn = Some(Instant::now());
                let _ = io::stderr().write_all(format!("\r{}\x1b[K", self.bar(done)).as_bytes());
            }
        } else if portion(done, self.total, 10) > self.tenth {
            self.tenth = portion(done, self.total, 10);
            let text = format!("{} {} %, {}", self.subject, self.tenth * 10, self.of_total(done));
            message::note("hf-fetch", &text);
        }
    }

    /// Leaves the bar's line, so that a message can follow.
    pub(crate) fn pause(&mut self) {
        if self.drawn.take().is_some() {
            let _ = io::stderr().write_all(b"\n");
        }
    }

    fn bar(&self, done: u64) -> String {
        const WIDTH: u64 = 30;
        let filled = usize::try_from(portion(done, self.total, WIDTH)).unwrap_or(0);
        let millis = u64::try_from(self.start.1.elapsed().as_millis()).unwrap_or(u64::MAX);
        let speed = portion(done.saturating_sub(self.start.0), millis, 1000);
        let bar = format!("{:<30}", "#".repeat(filled));
        format!("{} [{bar}] {}, {}/s", self.subject, self.of_total(done), amount(speed))
    }

    fn of_total(&self, done: u64) -> String {
        format!("{} of {}", amount(done), amount(self.total))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.pause();
    }
}

/// How many of `parts` equal parts of `total` are done; a server may claim any size.
fn portion(done: u64, total: u64, parts: u64) -> u64 {
    u64::try_from(u128::from(done) * u128::from(parts) / u128::from(total.max(1))).unwrap_or(u64::MAX)
}

/// Bytes for a person, in powers of 1000.
pub(crate) fn amount(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_drawn_for_every_amount_without_overflow() {
        for (done, total) in [(0, 0), (0, 10), (10, 10), (u64::MAX / 100, u64::MAX / 50)] {
            assert!(Progress::new("x", total, 0).bar(done).starts_with("x ["), "{done} of {total}");
        }
    }
}
