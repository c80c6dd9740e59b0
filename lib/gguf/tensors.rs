//! The tensor table: names, shapes, types, and offsets that follow each other without a gap.

use crate::flaw::Flaw;
use crate::keys::{self, Names};
use crate::source::{Cursor, Trouble};
use crate::types::{self, Type};

/// The engine keeps names in 64 bytes, the last of them NUL.
const LONGEST_NAME: u64 = 63;
/// The engine's limit.
const MOST_DIMENSIONS: u32 = 4;

/// What the table says about the data section; offsets count from its start.
#[derive(Default)]
pub(crate) struct Table {
    /// Where the last tensor ends, without its padding.
    pub(crate) end: u64,
    /// Where it ends with padding.
    pub(crate) padded: u64,
}

/// Walks `count` tensor descriptions.
pub(crate) fn walk(cursor: &mut Cursor<'_>, count: u64, alignment: u32) -> Result<Table, Flaw> {
    let mut table = Table::default();
    let mut seen = Names::default();
    for n in 1..=count {
        tensor(cursor, &mut table, &mut seen, alignment)
            .map_err(|trouble| trouble.inside(&format!("the description of tensor {n} of {count}")))?;
    }
    Ok(table)
}

fn tensor(
    cursor: &mut Cursor<'_>,
    table: &mut Table,
    seen: &mut Names,
    alignment: u32,
) -> Result<(), Trouble> {
    let length = cursor.u64()?;
    if !(1..=LONGEST_NAME).contains(&length) {
        return Err(Flaw::corrupt(format!("a tensor name of {length} bytes")).into());
    }
    let name = keys::name("tensor", cursor, length)?;
    if !seen.is_new(&name) {
        return Err(Flaw::corrupt(format!("the tensor '{name}' stands twice")).into());
    }
    let corrupt = |what: String| Trouble::Flaw(Flaw::corrupt(format!("the tensor '{name}' {what}")));

    let dimensions = cursor.u32()?;
    if dimensions > MOST_DIMENSIONS {
        return Err(corrupt(format!("has {dimensions} dimensions")));
    }
    let (mut row, mut elements) = (1, 1_i64);
    for n in 0..dimensions {
        let length = i64::from_le_bytes(cursor.bytes()?);
        if length < 0 {
            return Err(corrupt(format!("has a dimension of {length}")));
        }
        if n == 0 {
            row = length.unsigned_abs();
        }
        elements =
            elements.checked_mul(length).ok_or_else(|| corrupt("has more than 2^63 elements".into()))?;
    }

    let kind = cursor.u32()?;
    let layout = match types::of(kind) {
        Type::Known(layout) => layout,
        Type::Removed(kind) => {
            return Err(Flaw::bad(format!(
                "the tensor '{name}' has type {kind}, which engines no longer read"
            ))
            .into());
        }
        Type::Unknown => {
            let cause = format!("the tensor '{name}' has the unknown type {kind}, newer than this tool");
            return Err(Flaw::newer(cause).into());
        }
    };
    if row % layout.block != 0 {
        let (block, kind) = (layout.block, layout.name);
        return Err(corrupt(format!("has rows of {row}, not a multiple of the {block} of type {kind}")));
    }

    let offset = cursor.u64()?;
    if offset != table.padded {
        return Err(corrupt(format!("is at offset {offset}, not at {}", table.padded)));
    }
    let too_large = || corrupt("ends beyond 2^64 bytes".into());
    let size = layout.size(elements.unsigned_abs()).ok_or_else(too_large)?;
    table.end = offset.checked_add(size).ok_or_else(too_large)?;
    table.padded = table.end.checked_next_multiple_of(u64::from(alignment)).ok_or_else(too_large)?;
    Ok(())
}
