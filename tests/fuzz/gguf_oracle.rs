//! A second reading of the GGUF format, as plain as can be, to hold the library's answer against.
//!
//! It works on a file that is wholly in memory, with 128-bit arithmetic, and knows nothing of windows, bounds on
//! work or causes: it only says whether a file is acceptable.

#![allow(dead_code, reason = "each test program uses its part")]

use std::collections::HashSet;

/// Bytes not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, n: u128) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(n).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, width: u128) -> Option<u128> {
        Some(self.take(width)?.iter().rev().fold(0, |n, byte| n << 8 | u128::from(*byte)))
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.number(8)?;
        self.take(length)
    }

    fn value(&mut self, kind: u128) -> Option<()> {
        match kind {
            8 => self.string().map(|_| ()),
            9 => {
                let (kind, count) = (self.number(4)?, self.number(8)?);
                if kind == 9 || width(kind).is_none() || count > 1 << 30 {
                    return None;
                }
                (0..count).try_for_each(|_| self.value(kind))
            }
            _ => self.take(width(kind)?).map(|_| ()),
        }
    }
}

fn width(kind: u128) -> Option<u128> {
    [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8].get(usize::try_from(kind).ok()?).copied()
}

fn named(name: &[u8], most: usize) -> bool {
    !name.is_empty() && name.len() <= most && !name.contains(&0) && std::str::from_utf8(name).is_ok()
}

/// Block and bytes of a tensor type, `None` for what cannot be read.
pub(crate) fn layout(kind: u128) -> Option<(u128, u128)> {
    Some(match kind {
        0 | 26 => (1, 4),
        1 | 25 | 30 => (1, 2),
        24 => (1, 1),
        27 | 28 => (1, 8),
        2 | 20 => (32, 18),
        3 => (32, 20),
        6 => (32, 22),
        7 => (32, 24),
        8 => (32, 34),
        9 => (32, 36),
        10 => (256, 84),
        11 | 21 => (256, 110),
        12 => (256, 144),
        13 => (256, 176),
        14 => (256, 210),
        15 => (256, 292),
        16 | 35 => (256, 66),
        17 => (256, 74),
        18 => (256, 98),
        19 => (256, 50),
        22 => (256, 82),
        23 => (256, 136),
        29 => (256, 56),
        34 => (256, 54),
        39 => (32, 17),
        40 => (64, 36),
        41 => (128, 18),
        42 => (64, 18),
        _ => return None,
    })
}

/// Whether a file is a model, or one that lacks only its last padding.
pub(crate) fn accepts(file: &[u8]) -> bool {
    read(file).is_some()
}

fn read(file: &[u8]) -> Option<()> {
    let mut rest = Rest(file);
    let magic = rest.take(4)?;
    let (version, tensors, keys) = (rest.number(4)?, rest.number(8)?, rest.number(8)?);
    if magic != b"GGUF" || !(2..=3).contains(&version) || tensors.max(keys) > 1 << 17 {
        return None;
    }
    let (mut alignment, mut architecture, mut part, mut parts) = (32, false, 0, 0);
    let mut names = HashSet::new();
    for _ in 0..keys {
        let name = rest.string()?;
        if !named(name, 65_535) || !names.insert(name) {
            return None;
        }
        let kind = rest.number(4)?;
        let before = rest.0;
        rest.value(kind)?;
        let mut value = Rest(before);
        match (name, kind) {
            (b"general.architecture", 8) => {
                let length = value.string()?.len();
                if length > 256 {
                    return None;
                }
                architecture = length > 0;
            }
            (b"general.alignment", 4) => alignment = value.number(4)?,
            (b"split.no", 2) => part = value.number(2)?,
            (b"split.count", 2) => parts = value.number(2)?,
            (b"split.tensors.count", 5) => {}
            (
                b"general.architecture"
                | b"general.alignment"
                | b"split.no"
                | b"split.count"
                | b"split.tensors.count",
                _,
            ) => return None,
            _ => {}
        }
    }
    let split = parts > 1;
    if alignment < 8 || alignment.count_ones() != 1 || split && part >= parts {
        return None;
    }
    let (mut end, mut padded) = (0_u128, 0_u128);
    names.clear();
    for _ in 0..tensors {
        let name = rest.string()?;
        let dimensions = rest.number(4)?;
        if !named(name, 63) || !names.insert(name) || dimensions > 4 {
            return None;
        }
        let shape = (0..dimensions).map(|_| rest.number(8)).collect::<Option<Vec<_>>>()?;
        let mut elements = 1_u128;
        for n in &shape {
            elements *= n;
            if *n >= 1 << 63 || elements >= 1 << 63 {
                return None;
            }
        }
        let (block, bytes) = layout(rest.number(4)?)?;
        if shape.first().unwrap_or(&1) % block != 0 || rest.number(8)? != padded {
            return None;
        }
        end = padded + elements / block * bytes;
        padded = end.next_multiple_of(alignment);
    }
    let size = file.len() as u128;
    let info_end = size - rest.0.len() as u128;
    let start = info_end.next_multiple_of(alignment);
    let data_end = if padded == 0 { info_end } else { start + end };
    let whole = (data_end..=start + padded).contains(&size);
    (whole && (tensors > 0 || split) && (architecture || split && part > 0)).then_some(())
}
