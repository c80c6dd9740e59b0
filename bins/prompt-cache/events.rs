//! `cache/events`: what happened, one short line each, and now and then one line that sums up all before it.
//!
//! `hit MILLISECONDS` (saved), `miss`, `evict`, and `sum HITS MISSES EVICTED MILLISECONDS`. Lines are appended without
//! a lock, so that a hit waits for nobody; one that comes in the very moment of summing up is lost, and no other.

use std::io;
use std::path::PathBuf;

use contract::Fix;
use files::{atomic, records};

/// From this size on the lines are summed up.
const LONG: u64 = 32 << 10;
/// More is not read.
const LIMIT: u64 = 1 << 20;

/// Something that is counted.
#[derive(Clone, Copy)]
pub(crate) enum Event {
    /// An answer was given that took so many milliseconds to make.
    Hit(u64),
    /// A command was run, or an answer put.
    Miss,
    /// An entry had to make room.
    Evicted,
}

/// All that was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) evicted: u64,
    /// Milliseconds that the commands behind the hits had run when their output was kept.
    pub(crate) saved: u64,
}

/// The file.
pub(crate) struct Events {
    pub(crate) path: PathBuf,
}

impl Events {
    /// Adds one; the directory is made when it is missing.
    pub(crate) fn add(&self, fix: &Fix, event: Event) -> io::Result<()> {
        let line = match event {
            Event::Hit(took) => format!("hit {took}"),
            Event::Miss => "miss".to_owned(),
            Event::Evicted => "evict".to_owned(),
        };
        match records::append(fix, &self.path, line.as_bytes()) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                atomic::make_dir(fix, self.path.parent().unwrap_or(&self.path))?;
                records::append(fix, &self.path, line.as_bytes())
            }
            done => done,
        }
    }

    /// Whether it is time to sum up.
    pub(crate) fn is_long(&self) -> bool {
        self.path.symlink_metadata().is_ok_and(|meta| meta.len() > LONG)
    }

    /// Replaces all lines by their sum. The caller holds the directory's lock.
    pub(crate) fn fold(&self, fix: &Fix) -> io::Result<()> {
        let Counts { hits, misses, evicted, saved } = self.counts();
        atomic::write(fix, &self.path, format!("sum {hits} {misses} {evicted} {saved}\n").as_bytes(), 0o600)
    }

    /// The sum of all lines; what is no line of ours counts for nothing.
    pub(crate) fn counts(&self) -> Counts {
        let lines = records::read(&self.path, LIMIT).unwrap_or_default();
        lines.iter().filter_map(|line| read(line)).fold(Counts::default(), Counts::plus)
    }
}

impl Counts {
    fn plus(self, other: Self) -> Self {
        Self {
            hits: self.hits.saturating_add(other.hits),
            misses: self.misses.saturating_add(other.misses),
            evicted: self.evicted.saturating_add(other.evicted),
            saved: self.saved.saturating_add(other.saved),
        }
    }
}

fn read(line: &[u8]) -> Option<Counts> {
    let words: Vec<_> = std::str::from_utf8(line).ok()?.split(' ').collect();
    let number = |text: &str| text.parse::<u64>().ok();
    let none = Counts::default();
    Some(match words.as_slice() {
        ["hit", took] => Counts { hits: 1, saved: number(took)?, ..none },
        ["miss"] => Counts { misses: 1, ..none },
        ["evict"] => Counts { evicted: 1, ..none },
        ["sum", hits, misses, evicted, saved] => Counts {
            hits: number(hits)?,
            misses: number(misses)?,
            evicted: number(evicted)?,
            saved: number(saved)?,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_home::Home;

    #[test]
    fn the_sum_is_that_of_its_lines_and_a_broken_line_is_nothing() {
        let fix = contract::mode::by_name();
        let home = Home::new();
        let events = Events { path: home.path("cache/events") };
        for event in [Event::Miss, Event::Hit(1500), Event::Evicted, Event::Hit(500)] {
            events.add(&fix, event).unwrap();
        }
        for broken in ["hit", "hit x", "hit -1", "hit 1 2", "sum 1 2 3", "miss 1", "\u{fffd}", "hit 1\t"] {
            records::append(&fix, &events.path, broken.as_bytes()).unwrap();
        }
        let counts = Counts { hits: 2, misses: 1, evicted: 1, saved: 2000 };
        assert_eq!(events.counts(), counts);
        events.fold(&fix).unwrap();
        assert_eq!(events.counts(), counts);
        events.add(&fix, Event::Hit(u64::MAX)).unwrap();
        assert_eq!(events.counts(), Counts { hits: 3, saved: u64::MAX, ..counts });
    }
}
