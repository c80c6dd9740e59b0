//! The key-value section: every key walked, the few that decide about structure read.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::flaw::Flaw;
use crate::source::{Cursor, Trouble};
use crate::split::Split;

/// The format's limit for the length of a key.
const LONGEST_KEY: u64 = 65_535;
/// The engine's limit for the length of a string and of an array.
const LONGEST: u64 = 1 << 30;
/// An architecture's name is a word; a longer one is not read.
const LONGEST_ARCHITECTURE: u64 = 256;

const UINT16: u32 = 2;
pub(crate) const UINT32: u32 = 4;
const INT32: u32 = 5;
pub(crate) const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// What the keys say about structure.
pub(crate) struct Known {
    pub(crate) architecture: Option<String>,
    pub(crate) alignment: u32,
    /// Only of a model in more than one part.
    pub(crate) split: Option<Split>,
}

/// The values of the keys that are read, as they come.
#[derive(Default)]
struct Found {
    architecture: Option<String>,
    alignment: Option<u32>,
    split_no: Option<u16>,
    split_count: Option<u16>,
    split_tensors: Option<u32>,
}

/// Walks `count` keys.
pub(crate) fn walk(cursor: &mut Cursor<'_>, count: u64) -> Result<Known, Flaw> {
    let mut found = Found::default();
    let mut seen = Names::default();
    for n in 1..=count {
        key(cursor, &mut found, &mut seen)
            .map_err(|trouble| trouble.inside(&format!("key {n} of {count}")))?;
    }
    let alignment = found.alignment.unwrap_or(32);
    if !alignment.is_power_of_two() || alignment % 8 != 0 {
        return Err(Flaw::corrupt(format!("general.alignment is {alignment}, not a power of two from 8 on")));
    }
    let split = match (found.split_no.unwrap_or(0), found.split_count.unwrap_or(0)) {
        (_, 0 | 1) => None,
        (number, count) if number < count => {
            Some(Split { number, count, tensors: found.split_tensors.map(u64::from) })
        }
        (number, count) => return Err(Flaw::corrupt(format!("split.no is {number} of {count}"))),
    };
    Ok(Known { architecture: found.architecture.filter(|a| !a.is_empty()), alignment, split })
}

fn key(cursor: &mut Cursor<'_>, found: &mut Found, seen: &mut Names) -> Result<(), Trouble> {
    let length = cursor.u64()?;
    if !(1..=LONGEST_KEY).contains(&length) {
        return Err(Flaw::corrupt(format!("a key of {length} bytes")).into());
    }
    let name = name("key", cursor, length)?;
    if !seen.is_new(&name) {
        return Err(Flaw::corrupt(format!("the key '{name}' stands twice")).into());
    }
    let kind = cursor.u32()?;
    let wrong = |should: &str| Flaw::corrupt(format!("{name} is not of type {should}"));
    match (name.as_str(), kind) {
        ("general.architecture", STRING) => {
            let length = cursor.u64()?;
            if length > LONGEST_ARCHITECTURE {
                return Err(Flaw::corrupt(format!("{name} is a name of {length} bytes")).into());
            }
            let text = cursor.take(usize::try_from(length).unwrap_or_default())?;
            found.architecture = Some(String::from_utf8_lossy(text).into_owned());
        }
        ("general.alignment", UINT32) => found.alignment = Some(cursor.u32()?),
        ("split.no", UINT16) => found.split_no = Some(u16::from_le_bytes(cursor.bytes()?)),
        ("split.count", UINT16) => found.split_count = Some(u16::from_le_bytes(cursor.bytes()?)),
        ("split.tensors.count", INT32) => found.split_tensors = Some(cursor.u32()?),
        ("general.architecture", _) => return Err(wrong("string").into()),
        ("general.alignment", _) => return Err(wrong("u32").into()),
        ("split.no" | "split.count", _) => return Err(wrong("u16").into()),
        ("split.tensors.count", _) => return Err(wrong("i32").into()),
        _ => value(cursor, kind, &name)?,
    }
    Ok(())
}

/// Passes over a value of any type.
pub(crate) fn value(cursor: &mut Cursor<'_>, kind: u32, key: &str) -> Result<(), Trouble> {
    match (kind, width(kind)) {
        (STRING, _) => string(cursor, key),
        (ARRAY, _) => array(cursor, key),
        (_, Some(bytes)) => cursor.skip(bytes),
        _ => Err(Flaw::corrupt(format!("the key '{key}' has a value of type {kind}")).into()),
    }
}

/// Passes over a string.
fn string(cursor: &mut Cursor<'_>, key: &str) -> Result<(), Trouble> {
    let length = cursor.u64()?;
    if length > LONGEST {
        return Err(Flaw::corrupt(format!("the key '{key}' has a string of {length} bytes")).into());
    }
    cursor.skip(length)
}

/// Passes over an array.
fn array(cursor: &mut Cursor<'_>, key: &str) -> Result<(), Trouble> {
    let kind = cursor.u32()?;
    let length = cursor.u64()?;
    if length > LONGEST {
        return Err(Flaw::corrupt(format!("the key '{key}' has an array of {length} elements")).into());
    }
    match (kind, width(kind)) {
        (STRING, _) => (0..length).try_for_each(|_| string(cursor, key)),
        (_, Some(bytes)) => cursor.skip(length * bytes),
        _ => Err(Flaw::corrupt(format!("the key '{key}' has an array of type {kind}")).into()),
    }
}

/// Bytes of a value whose type has a fixed width.
fn width(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        UINT16 | 3 => Some(2),
        UINT32 | INT32 | 6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// Reads the name of a key or tensor: UTF-8 without NUL, because the engine looks it up as a C string.
pub(crate) fn name(what: &str, cursor: &mut Cursor<'_>, length: u64) -> Result<String, Trouble> {
    let bytes = cursor.take(usize::try_from(length).unwrap_or(usize::MAX))?;
    match std::str::from_utf8(bytes) {
        Ok(name) if !name.contains('\0') => Ok(name.to_owned()),
        _ => {
            let shown: String = String::from_utf8_lossy(bytes).chars().take(64).collect();
            Err(Flaw::corrupt(format!("the {what} name '{shown}' is not text")).into())
        }
    }
}

/// Names seen so far, as hashes: the memory of it does not depend on how long they are.
#[derive(Default)]
pub(crate) struct Names(BTreeSet<u64>);

impl Names {
    /// Remembers a name; `false` when it was there already.
    pub(crate) fn is_new(&mut self, name: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        self.0.insert(hasher.finish())
    }
}
