//! `$SELFHEAL_HOME/state/pins.jsonl`: digests measured where nobody published one. `hf-fetch` alone writes it.
//!
//! One object a line, `{"repository":"o/n","file":"x.gguf","revision":"commit","bytes":1,"sha256":"64 hex","time":
//! "2026-11-30T00:00:00Z"}`; of several lines for one file the last counts. A line that cannot be used is as if it
//! were not there.

use std::io;
use std::path::PathBuf;

use contract::{Error, Fix, clock, home};
use files::digest::Sha;
use serde_json::{Value, json};

/// More is not read: a pin takes about 300 bytes.
const LIMIT: u64 = 1 << 20;

/// What was measured of one file of one repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pin {
    /// `owner/name` on the hub.
    pub repository: String,
    /// The file's name there.
    pub file: String,
    /// The hub commit it came from, when the hub told it.
    pub revision: Option<String>,
    /// Exact size in bytes.
    pub bytes: u64,
    /// SHA-256 of the whole file.
    pub sha256: Sha,
}

/// Where the pins are.
pub fn path() -> Result<PathBuf, Error> {
    Ok(home::selfheal_home()?.join("state").join("pins.jsonl"))
}

/// The pin of a file of a repository.
pub fn find(repository: &str, file: &str) -> Option<Pin> {
    let lines = files::records::read(&path().ok()?, LIMIT).ok()?;
    lines.iter().rev().filter_map(|l| read(l)).find(|p| p.repository == repository && p.file == file)
}

/// Adds a pin.
pub fn append(fix: &Fix, pin: &Pin) -> io::Result<()> {
    let path = path().map_err(|e| io::Error::other(e.message))?;
    if let Some(dir) = path.parent() {
        files::atomic::make_dir(fix, dir)?;
    }
    let record = json!({
        "repository": pin.repository,
        "file": pin.file,
        "revision": pin.revision,
        "bytes": pin.bytes,
        "sha256": pin.sha256.hex(),
        "time": clock::utc(clock::now().wall),
    });
    files::records::append(fix, &path, record.to_string().as_bytes())
}

fn read(line: &[u8]) -> Option<Pin> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(Pin {
        repository: text("repository")?,
        file: text("file")?,
        revision: text("revision"),
        bytes: value.get("bytes")?.as_u64()?,
        sha256: Sha::from_hex(&text("sha256")?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_pin_is_skipped() {
        let good = format!(r#"{{"repository":"o/n","file":"f","bytes":7,"sha256":"{}"}}"#, "ab".repeat(32));
        assert_eq!(read(good.as_bytes()).unwrap().bytes, 7);
        for (from, to) in [("abab", "zzzz"), ("7", "-7"), ("7", "7.5"), ("\"o/n\"", "1"), ("}", "")] {
            assert_eq!(read(good.replacen(from, to, 1).as_bytes()), None, "{to}");
        }
    }
}
