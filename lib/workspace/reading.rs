//! Reading a manifest's exact bytes in pieces, which may be read beside each other.

use std::collections::HashSet;

use crate::entry::{Entry, Fields};
use crate::json;
use crate::manifest::{Header, LIMIT, Line, Raw, Signature};

/// A longer line is refused.
const LINE: usize = 1 << 20;
/// More entries are refused.
const ENTRIES: usize = 20_000;
/// More signature lines are refused.
const SIGNATURES: usize = 16;
/// Bytes of a short entry.
const SHORT: usize = 100;

/// A manifest whose lines are still to be read.
pub struct Reading<'a> {
    /// The first line.
    pub header: Header,
    rest: Piece<'a>,
}

/// Some whole lines below the header.
#[derive(Clone, Copy)]
pub struct Piece<'a> {
    /// Without the last newline; `None` when there are no lines.
    text: Option<&'a str>,
    /// The number of its first line in the manifest, counted from 1.
    number: usize,
    /// Where it begins in the manifest.
    at: usize,
    /// It has no more lines than this.
    most: usize,
}

/// What a piece says.
#[derive(Default)]
pub struct Lines {
    /// Its entries, in order.
    pub entries: Vec<Line>,
    /// Its signatures, which are below all entries.
    pub(crate) signatures: Vec<Signature>,
    /// Where the first signature line begins in the manifest.
    pub(crate) end: Option<usize>,
    number: usize,
}

impl<'a> Reading<'a> {
    /// Checks size and encoding and reads the header.
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
        let (first, rest) = text.split_once('\n').map_or((text, None), |(first, rest)| (first, Some(rest)));
        let header = Header::parse(first).map_err(|e| format!("line 1: {e}"))?;
        Ok(Self { header, rest: Piece { text: rest, number: 2, at: first.len() + 1, most: 0 } })
    }

    /// The next lines, at most `most`; `None` at the end.
    pub fn piece(&mut self, most: usize) -> Option<Piece<'a>> {
        let all = self.rest;
        let text = all.text?;
        let end = text.match_indices('\n').nth(most - 1).map(|(at, _)| at);
        self.rest.text = end.map(|end| &text[end + 1..]);
        self.rest.number = self.rest.number.saturating_add(most);
        self.rest.at += end.map_or(0, |end| end + 1);
        Some(Piece { text: Some(&text[..end.unwrap_or(text.len())]), most, ..all })
    }
}

impl Piece<'_> {
    /// Reads the lines; what is wrong with one names it.
    pub fn read(&self) -> Result<Lines, String> {
        let text = self.text.unwrap_or_default();
        let mut lines = Lines { number: self.number, ..Lines::default() };
        lines.entries.reserve(self.most.min(text.len() / SHORT + 1));
        let mut at = self.at;
        for (line, number) in text.split('\n').zip(self.number..) {
            lines.line(line, at).map_err(|e| format!("line {number}: {e}"))?;
            at += line.len() + 1;
        }
        Ok(lines)
    }
}

impl Lines {
    /// The entries of a whole manifest.
    pub fn of(entries: Vec<Line>) -> Self {
        Self { entries, ..Self::default() }
    }

    fn line(&mut self, line: &str, at: usize) -> Result<(), String> {
        if line.len() > LINE {
            return Err(format!("longer than {LINE} bytes"));
        }
        let mut fields = Fields::default();
        json::fields(line, &mut fields)?;
        if let Some(algorithm) = fields.sig.take() {
            let key = fields.key.take().ok_or("a signature without 'key'")?.0.0;
            let value = fields.value.take().ok_or("a signature without 'value'")?.0.0;
            fields.done()?;
            self.end.get_or_insert(at);
            self.signatures.push(Signature { algorithm: algorithm.0.0, key, value });
            return Ok(());
        }
        if !self.signatures.is_empty() {
            return Err(BELOW.into());
        }
        let entry = Entry::of(&mut fields)?;
        self.entries.push(Line { entry, raw: Raw::Body(at..at + line.len()) });
        Ok(())
    }
}

const BELOW: &str = "an entry below a signature";

/// What only all pieces of a manifest together show, in their order: how many lines there are, and no id twice.
pub fn check(pieces: &[Lines]) -> Result<(), String> {
    let signed = pieces.iter().skip_while(|piece| piece.signatures.is_empty()).skip(1);
    if let Some(piece) = { signed }.find(|piece| !piece.entries.is_empty()) {
        return Err(format!("line {}: {BELOW}", piece.number));
    }
    let entries: usize = pieces.iter().map(|piece| piece.entries.len()).sum();
    if entries > ENTRIES {
        return Err(format!("more than {ENTRIES} entries"));
    }
    if pieces.iter().map(|piece| piece.signatures.len()).sum::<usize>() > SIGNATURES {
        return Err(format!("more than {SIGNATURES} signatures"));
    }
    let mut seen = HashSet::with_capacity(entries);
    let mut ids = pieces.iter().flat_map(|piece| &piece.entries).map(|line| &line.entry.id);
    ids.find(|id| !seen.insert(id.as_str())).map_or(Ok(()), |id| Err(format!("the id '{id}' stands twice")))
}
