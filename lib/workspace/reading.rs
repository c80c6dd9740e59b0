//! Reading a manifest's exact bytes in pieces, which may be read beside each other.

use std::collections::HashSet;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error as _};

use crate::entry::{Entry, Fields};
use crate::json;
use crate::manifest::{Header, LIMIT, Line, Raw, Signature};

/// A longer line is refused.
const LINE: usize = 1 << 20;
/// More entries are refused.
pub const ENTRIES: usize = 20_000;
/// More signature lines are refused.
const SIGNATURES: usize = 16;
const BELOW: &str = "an entry below a signature";
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
pub struct Lines<'a> {
    /// Its entries, in order.
    pub entries: Vec<Line<'a>>,
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

    /// The header and all lines, checked.
    pub fn whole(bytes: &'a [u8]) -> Result<(Header, Lines<'a>), String> {
        let mut reading = Self::begin(bytes)?;
        let lines = reading.piece(usize::MAX).map_or_else(|| Ok(Lines::default()), |piece| piece.read())?;
        check(std::slice::from_ref(&lines))?;
        Ok((reading.header, lines))
    }

    /// The next lines, at most `most`; `None` at the end.
    pub fn piece(&mut self, most: usize) -> Option<Piece<'a>> {
        let all = self.rest;
        let text = all.text?;
        let end = memchr::memchr_iter(b'\n', text.as_bytes()).nth(most - 1);
        self.rest.text = end.map(|end| &text[end + 1..]);
        self.rest.number = self.rest.number.saturating_add(most);
        self.rest.at += end.map_or(0, |end| end + 1);
        Some(Piece { text: Some(&text[..end.unwrap_or(text.len())]), most, ..all })
    }
}

impl<'a> Piece<'a> {
    /// Reads the lines; what is wrong with one names it.
    pub fn read(&self) -> Result<Lines<'a>, String> {
        let text = self.text.unwrap_or_default();
        let mut lines = Lines { number: self.number, ..Lines::default() };
        lines.entries.reserve(self.most.min(text.len() / SHORT + 1));
        // One buffer serves the escaped texts of all lines: an allocation each would cost more than reading them.
        let mut stream = serde_json::Deserializer::from_str(text).into_iter();
        let mut begin = 0;
        let ends = memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]);
        for (end, number) in ends.zip(self.number..) {
            let (line, item) = (&text[begin..end], stream.next());
            let at = stream.byte_offset();
            let item = match item {
                Some(Ok(item)) if at <= end && text[at..end].trim_matches(json::SPACE).is_empty() => Ok(item),
                // By itself it says what is wrong with it.
                _ => json::read(line),
            };
            let range = self.at + begin..self.at + end;
            item.and_then(|item| lines.take(item, range)).map_err(|e| format!("line {number}: {e}"))?;
            begin = end + 1;
        }
        Ok(lines)
    }
}

impl<'a> Lines<'a> {
    fn take(&mut self, item: Item<'a>, at: Range<usize>) -> Result<(), String> {
        if at.len() > LINE {
            return Err(format!("longer than {LINE} bytes"));
        }
        match item {
            Item::Signature(signature) => {
                self.end.get_or_insert(at.start);
                self.signatures.push(signature);
            }
            Item::Entry(_) if !self.signatures.is_empty() => return Err(BELOW.into()),
            Item::Entry(entry) => self.entries.push(Line { entry, raw: Raw::Body(at) }),
        }
        Ok(())
    }
}

/// What one line says.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are entries, and a box for each would cost what it saves"
)]
enum Item<'a> {
    Entry(Entry<'a>),
    Signature(Signature),
}

impl<'a> Deserialize<'a> for Item<'a> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        Self::of(&mut Fields::deserialize(from)?).map_err(D::Error::custom)
    }
}

impl<'a> Item<'a> {
    fn of(fields: &mut Fields<'a>) -> Result<Self, String> {
        let Some(algorithm) = fields.sig.take() else { return Entry::of(fields).map(Self::Entry) };
        let key = fields.key.take().ok_or("a signature without 'key'")?.0.0;
        let value = fields.value.take().ok_or("a signature without 'value'")?.0.0;
        fields.done()?;
        Ok(Self::Signature(Signature { algorithm: algorithm.0.0, key, value }))
    }
}

/// The signatures of a manifest in pieces, and where the bytes end that they are about.
pub fn signatures(pieces: &[Lines], bytes: &[u8]) -> (Vec<Signature>, usize) {
    let all = pieces.iter().flat_map(|piece| &piece.signatures).cloned().collect();
    (all, pieces.iter().find_map(|piece| piece.end).unwrap_or(bytes.len()))
}

/// What only all pieces of a manifest together show, in their order: how many lines there are, and no id twice.
/// Tells whether every need is an entry further up, so that nothing is wrong with any.
pub fn check(pieces: &[Lines]) -> Result<bool, String> {
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
    let mut is_met = true;
    // All entries are above the signatures, and the header is the first line.
    for (Line { entry, .. }, number) in pieces.iter().flat_map(|piece| &piece.entries).zip(2..) {
        is_met &= entry.needs.iter().all(|need| seen.contains(&**need));
        if !seen.insert(&*entry.id) {
            return Err(format!("line {number}: the id '{}' stands twice", entry.id));
        }
    }
    Ok(is_met)
}
