//! What was hashed before, by what `stat` said then: a speed-up, never a proof against an attacker.
//!
//! One record an entry: id, fingerprint, hash, wall time. The fingerprint is SHA-256 over size, mtime, ctime, inode
//! and device of every file the hash covers, so one change anywhere makes it stale. Records end after an hour.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use contract::Fix;
use files::digest::{Hasher, Sha};
use files::open::Print;

/// Seconds a record counts.
const LIFE: u64 = 3600;
/// Seconds until a file's times can be trusted to tell the next change.
const SETTLE: i128 = 2;
const LIMIT: u64 = 8 << 20;
/// Bytes of a short record.
const SHORT: usize = 140;
const HEAD: &str = "swr verify cache 1";

/// Records by entry id: those of the file stay text until they are asked for.
#[derive(Debug, Default)]
pub struct Cache<'t> {
    /// By id: the rest of the record's line.
    old: HashMap<&'t str, &'t str>,
    new: HashMap<String, Record>,
    host: Option<Sha>,
    changed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Record {
    fingerprint: Sha,
    hash: Sha,
    wall: u64,
}

/// The text of a cache file; whatever is wrong with it, it is then empty.
pub fn text(path: &Path) -> String {
    let text = files::records::text(path, LIMIT).ok();
    text.and_then(|text| String::from_utf8(text).ok()).unwrap_or_default()
}

impl<'t> Cache<'t> {
    /// The records in a cache file's text; none of text that is something else.
    pub fn of(text: &'t str) -> Self {
        let mut ends = memchr::memchr_iter(b'\n', text.as_bytes());
        let mut at = 0;
        let mut lines = std::iter::from_fn(|| {
            let end = ends.next()?;
            Some(&text[std::mem::replace(&mut at, end + 1)..end])
        });
        if lines.next() != Some(HEAD) {
            return Self::default();
        }
        let host = lines.next().and_then(|l| Sha::from_hex(l.strip_prefix("host ")?));
        let mut old = HashMap::with_capacity(text.len() / SHORT);
        old.extend(lines.filter_map(|line| line.split_once(' ')));
        Self { old, new: HashMap::new(), host, changed: false }
    }

    /// The machine that wrote this cache.
    pub fn host(&self) -> Option<Sha> {
        self.host
    }

    /// Names the machine that writes it.
    pub fn set_host(&mut self, host: Sha) {
        self.changed |= self.host.replace(host) != Some(host);
    }

    /// The hash recorded for this fingerprint, if it is younger than an hour and not from the future.
    pub fn get(&self, id: &str, fingerprint: Sha, now: u64) -> Option<Sha> {
        let record = self.record(id)?;
        let fresh = now.checked_sub(record.wall).is_some_and(|age| age < LIFE);
        (fresh && record.fingerprint == fingerprint).then_some(record.hash)
    }

    /// Records a hash just computed.
    pub fn put(&mut self, id: &str, fingerprint: Sha, hash: Sha, now: u64) {
        let record = Record { fingerprint, hash, wall: now };
        if self.record(id) != Some(record) {
            self.new.insert(id.to_owned(), record);
            self.changed = true;
        }
    }

    /// Forgets entries that `keep` does not name.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        let before = self.old.len() + self.new.len();
        self.old.retain(|id, _| keep(id));
        self.new.retain(|id, _| keep(id));
        self.changed |= before != self.old.len() + self.new.len();
    }

    /// Replaces the cache file in one step, if anything changed.
    pub fn save(&self, fix: &Fix, path: &Path) -> io::Result<()> {
        if !self.changed {
            return Ok(());
        }
        let old = self.old.iter().filter(|(id, rest)| !self.new.contains_key(**id) && parse(rest).is_some());
        let mut lines: Vec<String> = old.map(|(id, rest)| format!("{id} {rest}")).collect();
        let text =
            |(id, r): (&String, &Record)| format!("{id} {} {} {}", r.fingerprint.hex(), r.hash.hex(), r.wall);
        lines.extend(self.new.iter().map(text));
        lines.sort_unstable();
        let host = self.host.map_or_else(String::new, |h| h.hex());
        lines.insert(0, format!("{HEAD}\nhost {host}"));
        let text = lines.join("\n") + "\n";
        files::atomic::write(fix, path, text.as_bytes(), 0o600)
    }

    fn record(&self, id: &str) -> Option<Record> {
        self.new.get(id).copied().or_else(|| parse(self.old.get(id)?))
    }
}

/// A line's `FINGERPRINT HASH WALL`.
fn parse(rest: &str) -> Option<Record> {
    let (fingerprint, rest) = rest.split_at_checked(64)?;
    let (hash, wall) = rest.strip_prefix(' ')?.split_at_checked(64)?;
    let (fingerprint, hash) = (Sha::from_hex(fingerprint)?, Sha::from_hex(hash)?);
    let wall = wall.strip_prefix(' ')?.parse().ok()?;
    Some(Record { fingerprint, hash, wall })
}

/// Whether every file changed last long enough ago for the next change to have another time: clocks of filesystems
/// are coarse (4 ms and more, 2 s at worst), and a change within one tick of the hashing would go unseen for an hour.
pub fn is_settled<'a>(mut prints: impl Iterator<Item = &'a Print>, now: u64) -> bool {
    prints.all(|p| p.ctime_ns.max(p.mtime_ns) < (i128::from(now) - SETTLE) * 1_000_000_000)
}

/// The fingerprint of files in a fixed order.
pub fn fingerprint<'a>(prints: impl Iterator<Item = &'a Print>) -> Sha {
    let mut hasher = Hasher::default();
    for print in prints {
        let mut bytes = [0; 56];
        bytes[..8].copy_from_slice(&print.size.to_le_bytes());
        bytes[8..24].copy_from_slice(&print.mtime_ns.to_le_bytes());
        bytes[24..40].copy_from_slice(&print.ctime_ns.to_le_bytes());
        bytes[40..48].copy_from_slice(&print.inode.to_le_bytes());
        bytes[48..].copy_from_slice(&print.device.to_le_bytes());
        hasher.update(&bytes);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_home::Home;

    #[test]
    fn a_record_counts_for_one_hour_and_one_fingerprint() {
        let (a, b) = (Sha([1; 32]), Sha([2; 32]));
        let mut cache = Cache::default();
        cache.put("x", a, b, 1000);
        assert_eq!(cache.get("x", a, 1000), Some(b));
        assert_eq!(cache.get("x", a, 1000 + LIFE), None);
        assert_eq!(cache.get("x", a, 999), None, "a record from the future");
        assert_eq!(cache.get("x", b, 1000), None);
        let home = Home::new();
        let path = home.path("cache");
        cache.save(&contract::mode::by_name(), &path).unwrap();
        let saved = text(&path);
        assert_eq!(Cache::of(&saved).get("x", a, 1001), Some(b));
        let mut again = Cache::of(&saved);
        for (id, sha) in [("y", a), ("x-", b), ("x", b)] {
            again.put(id, sha, sha, 1001);
        }
        again.retain(|id| id != "y");
        again.save(&contract::mode::by_name(), &path).unwrap();
        let saved = text(&path);
        let read = Cache::of(&saved);
        let records = ["x", "x-", "y"].map(|id| read.get(id, b, 1001));
        assert_eq!(records, [Some(b), Some(b), None], "one record an id, the newest");
        files::atomic::write(&contract::mode::by_name(), &path, b"\xff\n\0", 0o600).unwrap();
        assert_eq!(text(&path), "");
        assert!(Cache::of(&saved[5..]).old.is_empty());
    }
}
