//! What was hashed before, by what `stat` said then: a speed-up, never a proof against an attacker.
//!
//! One record an entry: id, fingerprint, hash, wall time. The fingerprint is SHA-256 over size, mtime, ctime, inode
//! and device of every file the hash covers, so one change anywhere makes it stale. Records end after an hour.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::Path;

use contract::Fix;
use files::digest::{Hasher, Sha};
use files::open::Print;

/// Seconds a record counts.
const LIFE: u64 = 3600;
/// Seconds until a file's times can be trusted to tell the next change.
const SETTLE: i128 = 2;
const LIMIT: u64 = 8 << 20;
const HEAD: &str = "swr verify cache 1";

/// Records by entry id: those of the file stay text until they are asked for.
#[derive(Debug, Default)]
pub struct Cache {
    text: String,
    /// Where each record's line is in the text, in the order of the ids; where the order is another, some are not
    /// found.
    lines: Vec<Range<usize>>,
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

impl Cache {
    /// Reads the cache; whatever is wrong with it, it is then empty.
    pub fn load(path: &Path) -> Self {
        let text = files::records::text(path, LIMIT).ok().and_then(|text| String::from_utf8(text).ok());
        let text = text.unwrap_or_default();
        let mut at = 0;
        let mut lines = Vec::with_capacity(text.len() / 128);
        for line in text.split_terminator('\n') {
            lines.push(at..at + line.len());
            at += line.len() + 1;
        }
        let mut head = lines.drain(..lines.len().min(2)).map(|range| &text[range]);
        if head.next() != Some(HEAD) {
            return Self::default();
        }
        let host = head.next().and_then(|l| Sha::from_hex(l.strip_prefix("host ")?));
        drop(head);
        Self { text, lines, new: HashMap::new(), host, changed: false }
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
        let before = self.lines.len() + self.new.len();
        let text = &self.text;
        self.lines.retain(|range| parse(&text[range.clone()]).is_some_and(|(id, _)| keep(id)));
        self.new.retain(|id, _| keep(id));
        self.changed |= before != self.lines.len() + self.new.len();
    }

    /// Replaces the cache file in one step, if anything changed.
    pub fn save(&self, fix: &Fix, path: &Path) -> io::Result<()> {
        if !self.changed {
            return Ok(());
        }
        let old = self.lines.iter().map(|range| &self.text[range.clone()]);
        let old = old.filter(|line| parse(line).is_some_and(|(id, _)| !self.new.contains_key(id)));
        let mut lines: Vec<String> = old.map(str::to_owned).collect();
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
        if let Some(record) = self.new.get(id) {
            return Some(*record);
        }
        let line = |range: &Range<usize>| &self.text[range.clone()];
        let at = self.lines.binary_search_by(|range| id_of(line(range)).cmp(id)).ok()?;
        parse(line(&self.lines[at])).map(|(_, record)| record)
    }
}

fn id_of(line: &str) -> &str {
    // Ids are short: a search made for long text would cost more.
    line.bytes().position(|b| b == b' ').map_or(line, |end| &line[..end])
}

/// A line `ID FINGERPRINT HASH WALL`.
fn parse(line: &str) -> Option<(&str, Record)> {
    let id = id_of(line);
    let (fingerprint, rest) = line[id.len()..].strip_prefix(' ')?.split_at_checked(64)?;
    let (hash, wall) = rest.strip_prefix(' ')?.split_at_checked(64)?;
    let (fingerprint, hash) = (Sha::from_hex(fingerprint)?, Sha::from_hex(hash)?);
    let wall = wall.strip_prefix(' ')?.parse().ok()?;
    crate::entry::is_id(id).then_some((id, Record { fingerprint, hash, wall }))
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
        hasher.update(&print.size.to_le_bytes());
        hasher.update(&print.mtime_ns.to_le_bytes());
        hasher.update(&print.ctime_ns.to_le_bytes());
        hasher.update(&print.inode.to_le_bytes());
        hasher.update(&print.device.to_le_bytes());
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
        assert_eq!(Cache::load(&path).get("x", a, 1001), Some(b));
        let mut again = Cache::load(&path);
        for (id, sha) in [("y", a), ("x-", b), ("x", b)] {
            again.put(id, sha, sha, 1001);
        }
        again.retain(|id| id != "y");
        again.save(&contract::mode::by_name(), &path).unwrap();
        let read = Cache::load(&path);
        let records = ["x", "x-", "y"].map(|id| read.get(id, b, 1001));
        assert_eq!(records, [Some(b), Some(b), None], "one record an id, the newest");
        // An order of somebody else's making costs a look at the disk, and the next save puts it right.
        let mut lines: Vec<_> = std::fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
        lines[2..].reverse();
        let shuffled = lines.join("\n") + "\n";
        files::atomic::write(&contract::mode::by_name(), &path, shuffled.as_bytes(), 0o600).unwrap();
        let mut read = Cache::load(&path);
        for id in ["x", "x-"] {
            read.put(id, b, b, 1002);
        }
        read.save(&contract::mode::by_name(), &path).unwrap();
        assert_eq!(["x", "x-"].map(|id| Cache::load(&path).get(id, b, 1002)), [Some(b); 2]);
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 4);
        files::atomic::write(&contract::mode::by_name(), &path, b"\xff\n\0", 0o600).unwrap();
        assert!(Cache::load(&path).lines.is_empty());
    }
}
