//! Reading a manifest's exact bytes, a few entries at a time.

use std::borrow::Cow;
use std::str::Split;

use crate::entry::Entry;
use crate::fields::Keys;
use crate::json;
use crate::manifest::{self, Header, LIMIT, Line, Manifest, Raw, Signature};

/// A longer line is refused.
const LINE: usize = 1 << 20;
/// More entries are refused.
pub const ENTRIES: usize = 20_000;
/// More signature lines are refused.
const SIGNATURES: usize = 16;

/// A manifest while it is parsed: entries can be looked at before the last one is read.
pub struct Reading<'a> {
    /// The first line.
    pub header: Header,
    bytes: &'a [u8],
    lines: Split<'a, char>,
    /// The line that comes next, counted from 1, and where it begins.
    number: usize,
    at: usize,
    entries: usize,
    signatures: Vec<Signature>,
    /// Where the first signature line begins.
    end: Option<usize>,
}

impl<'a> Reading<'a> {
    /// Checks size and encoding and parses the header.
    pub fn begin(bytes: &'a [u8]) -> Result<Self, String> {
        if bytes.len() > LIMIT {
            return Err(format!("larger than {LIMIT} bytes"));
        }
        if bytes.is_empty() {
            return Err("it is empty".into());
        }
        let Some(text) = bytes.strip_suffix(b"\n") else {
            let line = bytes.split(|b| *b == b'\n').count();
            return Err(format!("line {line}: it does not end in a newline"));
        };
        let text = std::str::from_utf8(text).map_err(|e| {
            let line = text[..e.valid_up_to()].split(|b| *b == b'\n').count();
            format!("line {line}: it is not UTF-8")
        })?;
        let mut lines = text.split('\n');
        let first = lines.next().ok_or("empty")?;
        let header = Header::parse(first).map_err(|e| format!("line 1: {e}"))?;
        let at = first.len() + 1;
        Ok(Self { header, bytes, lines, number: 2, at, entries: 0, signatures: Vec::new(), end: None })
    }

    /// The next entries, at most `most`; none at the end.
    pub fn entries(&mut self, most: usize) -> Result<Vec<Line>, String> {
        let likely = (self.bytes.len() - self.at.min(self.bytes.len())) / 100;
        let mut entries = Vec::with_capacity(most.min(likely + 1));
        while entries.len() < most
            && let Some(line) = self.lines.next()
        {
            entries.extend(self.line(line).map_err(|e| format!("line {}: {e}", self.number))?);
            self.number += 1;
            self.at += line.len() + 1;
        }
        Ok(entries)
    }

    /// The manifest, once no entry is left (who needs no manifest checks the ids alone); `lines` are all of them in order.
    pub fn end(self, lines: Vec<Line>) -> Result<Manifest, String> {
        let body = self.bytes[..self.end.unwrap_or(self.bytes.len())].to_vec();
        manifest::check_ids(&lines)?;
        Ok(Manifest { header: self.header, lines, body, signatures: self.signatures })
    }

    /// An entry, or `None` of a signature.
    fn line(&mut self, line: &str) -> Result<Option<Line>, String> {
        if line.len() > LINE {
            return Err(format!("longer than {LINE} bytes"));
        }
        let value = json::parse_text(line)?;
        if let json::Json::Object(pairs) = &value
            && pairs.iter().any(|(k, _)| k == "sig")
        {
            let mut keys = Keys::of(value)?;
            let mut text = |key: &str| {
                let text = keys.long_text(key)?.map(Cow::into_owned);
                text.ok_or_else(|| format!("a signature without '{key}'"))
            };
            let signature = Signature { algorithm: text("sig")?, key: text("key")?, value: text("value")? };
            keys.done()?;
            if self.signatures.len() >= SIGNATURES {
                return Err(format!("more than {SIGNATURES} signatures"));
            }
            self.end.get_or_insert(self.at);
            self.signatures.push(signature);
            return Ok(None);
        }
        if !self.signatures.is_empty() {
            return Err("an entry below a signature".into());
        }
        if self.entries >= ENTRIES {
            return Err(format!("more than {ENTRIES} entries"));
        }
        self.entries += 1;
        Ok(Some(Line { entry: Entry::from_json(value)?, raw: Raw::Body(self.at..self.at + line.len()) }))
    }
}
