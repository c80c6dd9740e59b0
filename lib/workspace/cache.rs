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
const HEAD: &[u8] = b"swr verify cache 1";

/// Records by entry id.
#[derive(Debug, Default)]
pub struct Cache {
    records: HashMap<String, Record>,
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
        let lines = files::records::read(path, LIMIT).unwrap_or_default();
        let mut lines = lines.iter();
        if lines.next().map(Vec::as_slice) != Some(HEAD) {
            return Self::default();
        }
        let host =
            lines.next().and_then(|l| l.strip_prefix(b"host ")).and_then(|l| std::str::from_utf8(l).ok());
        let host = host.and_then(Sha::from_hex);
        Self { records: lines.filter_map(|l| parse(l)).collect(), host, changed: false }
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
        let record = self.records.get(id)?;
        let fresh = now.checked_sub(record.wall).is_some_and(|age| age < LIFE);
        (fresh && record.fingerprint == fingerprint).then_some(record.hash)
    }

    /// Records a hash just computed.
    pub fn put(&mut self, id: &str, fingerprint: Sha, hash: Sha, now: u64) {
        let record = Record { fingerprint, hash, wall: now };
        self.changed |= self.records.insert(id.to_owned(), record) != Some(record);
    }

    /// Forgets entries that `keep` does not name.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        let before = self.records.len();
        self.records.retain(|id, _| keep(id));
        self.changed |= before != self.records.len();
    }

    /// Replaces the cache file in one step, if anything changed.
    pub fn save(&self, fix: &Fix, path: &Path) -> io::Result<()> {
        if !self.changed {
            return Ok(());
        }
        let mut lines: Vec<String> = self
            .records
            .iter()
            .map(|(id, r)| format!("{id} {} {} {}\n", r.fingerprint.hex(), r.hash.hex(), r.wall))
            .collect();
        lines.sort_unstable();
        let mut bytes = HEAD.to_vec();
        bytes.extend_from_slice(
            format!("\nhost {}\n", self.host.map_or_else(String::new, |h| h.hex())).as_bytes(),
        );
        bytes.extend(lines.iter().flat_map(|l| l.bytes()));
        files::atomic::write(fix, path, &bytes, 0o600)
    }
}

fn parse(line: &[u8]) -> Option<(String, Record)> {
    let mut fields = std::str::from_utf8(line).ok()?.split(' ');
    let id = fields.next().filter(|id| crate::entry::is_id(id))?.to_owned();
    let fingerprint = Sha::from_hex(fields.next()?)?;
    let hash = Sha::from_hex(fields.next()?)?;
    let wall = fields.next()?.parse().ok()?;
    fields.next().is_none().then_some((id, Record { fingerprint, hash, wall }))
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
        files::atomic::write(&contract::mode::by_name(), &path, b"\xff\n\0", 0o600).unwrap();
        assert!(Cache::load(&path).records.is_empty());
    }
}
