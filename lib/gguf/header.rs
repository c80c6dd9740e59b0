//! From magic to the end of the tensor table: what a file's header says, or why it cannot be a model.

use crate::flaw::Flaw;
use crate::source::{Cursor, Source, Trouble, read_full};
use crate::split::Split;
use crate::{impostor, keys, size, tensors};

/// Bytes before the first key: magic, version, two counts.
const FIXED: usize = 24;

/// No model has more keys or more tensors: 61 layers of 256 experts, each in tensors of its own, are 47,000. It
/// bounds what the check for duplicates remembers.
const MOST: u64 = 1 << 17;

/// llama.cpp asserts that tensor data is aligned to this when it maps a file.
const ENGINE_ALIGNMENT: u32 = 32;

/// A sound header whose described size is the file's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Structure {
    /// Format version, 2 or 3.
    pub version: u32,
    /// `general.architecture`; `None` only in a later part of a split model.
    pub architecture: Option<String>,
    /// Tensors in this file.
    pub tensors: u64,
    /// Where the tensor data begins.
    pub data_start: u64,
    /// Bytes the header describes, padding after the last tensor included.
    pub size: u64,
    /// Which part of a split model this is.
    pub split: Option<Split>,
    /// What makes it less than `ok` as long as no hash proves the content; each a cause in words.
    pub weak: Vec<String>,
}

/// Walks a header and compares the size it describes with the size there is.
pub fn examine(source: &dyn Source) -> Result<Structure, Flaw> {
    let mut head = [0; 4096];
    let filled = read_full(source, &mut head, 0).map_err(|cause| Flaw::unreadable(&cause))?;
    let head = &head[..filled];
    if source.size() == 0 {
        return Err(Flaw::short("empty"));
    }
    if !head.starts_with(b"GGUF") {
        return Err(if b"GGUF".starts_with(head) {
            Flaw::short("cut off inside its magic")
        } else {
            Flaw::corrupt(format!("{} instead of a model", impostor::name(head, 0, source)))
        });
    }
    let Some(fixed) = head.get(..FIXED) else {
        return Err(Flaw::short(format!("cut off inside its first {FIXED} bytes")));
    };
    let version = version(u32_at(fixed, 4))?;
    let tensor_count = count("tensors", u64_at(fixed, 8))?;
    let key_count = count("keys", u64_at(fixed, 16))?;

    let mut cursor = Cursor::new(source);
    cursor.skip(FIXED as u64).map_err(|trouble| trouble.inside("the header"))?;
    let known = keys::walk(&mut cursor, key_count)?;
    let table = tensors::walk(&mut cursor, tensor_count, known.alignment)?;
    let info_end = cursor.at();
    let extent = size::Extent::of(info_end, &table, known.alignment)?;

    let mut weak = Vec::new();
    weak.extend(size::compare(source, &extent, tensor_count)?);
    if tensor_count == 0 && known.split.is_none() {
        return Err(Flaw::bad("no tensors: a vocabulary or metadata alone, nothing to run"));
    }
    if known.architecture.is_none() && known.split.is_none_or(|s| s.number == 0) {
        return Err(Flaw::bad("no general.architecture: no engine can run it"));
    }
    if known.alignment < ENGINE_ALIGNMENT {
        let alignment = known.alignment;
        weak.push(format!("alignment {alignment} is below llama.cpp's {ENGINE_ALIGNMENT}, which may abort"));
    }
    weak.extend(size::padding(source, &extent)?);
    weak.extend(size::hole(source, &extent));
    Ok(Structure {
        version,
        architecture: known.architecture,
        tensors: tensor_count,
        data_start: extent.data_start,
        size: extent.end,
        split: known.split,
        weak,
    })
}

impl Trouble {
    /// The flaw this trouble is when it happens inside `what`.
    pub(crate) fn inside(self, what: &str) -> Flaw {
        match self {
            Self::End => Flaw::short(format!("cut off inside {what}")),
            Self::Flaw(flaw) => flaw,
        }
    }
}

fn version(version: u32) -> Result<u32, Flaw> {
    match version {
        2 | 3 => Ok(version),
        1 => Err(Flaw::bad("GGUF version 1: no engine reads it any more, convert the model anew")),
        v if matches!(v.swap_bytes(), 1..=3) => {
            let version = v.swap_bytes();
            Err(Flaw::bad(format!("big-endian GGUF version {version}: made for another kind of machine")))
        }
        4..=255 => {
            Err(Flaw::newer(format!("GGUF version {version}: newer than this tool, which knows 2 and 3")))
        }
        _ => Err(Flaw::corrupt(format!("GGUF version {version}: there is none"))),
    }
}

fn count(what: &str, n: u64) -> Result<u64, Flaw> {
    if n <= MOST { Ok(n) } else { Err(Flaw::corrupt(format!("its header claims {n} {what}"))) }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut out = [0; 4];
    out.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(out)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut out = [0; 8];
    out.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(out)
}
