//! The state file of one subject: a few `key value` lines that a shell can read.
//!
//! ```text
//! breaker 1
//! subject npm-ci
//! state open
//! failures 3
//! since 1796000000 1234560 6b2f0a4e-...
//! cooldown 1800
//! end
//! ```
//!
//! `since` is the opening, or the last failure while `state` is `closed`: seconds since 1970,
//! milliseconds since boot, boot id. `folded` may stand before `end`: which file of pending failures is counted already.

use std::fmt::Write as _;

use contract::clock::Stamp;

use crate::machine::Breaker;
use crate::subject;

/// More bytes than a state file ever has.
pub(crate) const LIMIT: u64 = 16 << 10;

/// A week: what a cooldown may be at most, whoever wrote it.
pub(crate) const LONGEST_COOLDOWN: u32 = 604_800;

/// What a state file says.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Record {
    pub(crate) subject: Vec<u8>,
    pub(crate) breaker: Breaker,
    /// The identity of the pending failures that are in `breaker` already.
    pub(crate) folded: Option<String>,
}

impl Record {
    /// The file's text; `None` when there is nothing to keep.
    pub(crate) fn text(&self) -> Option<String> {
        let (state, failures, stamp, cooldown) = match &self.breaker {
            Breaker::Closed => return None,
            Breaker::Failing { failures, last } => ("closed", failures, last, 0),
            Breaker::Tripped { failures, since, cooldown } => ("open", failures, since, *cooldown),
        };
        let boot: String = stamp.boot.chars().filter(char::is_ascii_graphic).take(64).collect();
        let boot = if boot.is_empty() { "-" } else { &boot };
        let mut text = format!(
            "breaker 1\nsubject {}\nstate {state}\nfailures {failures}\nsince {} {} {boot}\ncooldown {cooldown}\n",
            subject::escaped(&self.subject),
            stamp.wall,
            stamp.mono,
        );
        if let Some(folded) = &self.folded {
            let _ = writeln!(text, "folded {folded}");
        }
        text.push_str("end\n");
        Some(text)
    }

    /// Reads a whole file; `None` when any of it is not as [`Record::text`] writes it.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?.strip_suffix("\nend\n")?;
        let mut lines = text.split('\n');
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
        (value("breaker")? == "1").then_some(())?;
        let subject = subject::unescaped(value("subject")?)?;
        let state = value("state")?;
        let failures = number(value("failures")?)?;
        let stamp = stamp(value("since")?)?;
        let cooldown = number(value("cooldown")?)?;
        let folded = match lines.next() {
            None => None,
            Some(line) => Some(line.strip_prefix("folded ")?.to_owned()),
        };
        if lines.next().is_some() || failures == 0 || cooldown > LONGEST_COOLDOWN {
            return None;
        }
        let breaker = match state {
            "closed" => Breaker::Failing { failures, last: stamp },
            "open" => Breaker::Tripped { failures, since: stamp, cooldown },
            _ => return None,
        };
        Some(Self { subject, breaker, folded })
    }
}

fn number(text: &str) -> Option<u32> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

fn stamp(text: &str) -> Option<Stamp> {
    let mut parts = text.split(' ');
    let wall = parts.next().filter(|t| t.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()?;
    let mono = parts.next().filter(|t| !t.starts_with('+'))?.parse().ok()?;
    let boot = parts.next().filter(|b| !b.is_empty())?;
    let boot = if boot == "-" { "" } else { boot };
    parts.next().is_none().then(|| Stamp { wall, mono, boot: boot.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_file_cut_anywhere_is_not_read() {
        let since = Stamp { wall: 1_796_000_000, mono: -12_500, boot: "b-1".into() };
        let breaker = Breaker::Tripped { failures: 4, since, cooldown: 1800 };
        let record = Record { subject: b"a/b\n".to_vec(), breaker, folded: Some("1-2-3".into()) };
        let text = record.text().unwrap();
        assert_eq!(Record::parse(text.as_bytes()), Some(record));
        for end in 0..text.len() {
            assert_eq!(Record::parse(&text.as_bytes()[..end]), None, "{end}");
        }
        for (from, to) in [
            ("open", "ajar"),
            ("failures 4", "failures 0"),
            ("failures 4", "failures +4"),
            ("failures 4", "failures 4\nfailures 5"),
            ("cooldown 1800", "cooldown 99999999"),
            ("-12500", "nan"),
            ("-12500", "+12500"),
            ("-12500", "12.5"),
            ("b-1", "b-1 x"),
            ("breaker 1", "breaker 2"),
            ("a%2Fb", "a/b"),
        ] {
            assert_eq!(Record::parse(text.replace(from, to).as_bytes()), None, "{to}");
        }
        assert_eq!(Record::default().text(), None);
    }
}
