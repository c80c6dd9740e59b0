//! Split models: parts named `*-%05d-of-%05d.gguf` that are one model only together.
//!
//! Source: `gguf-split` and `llama_split_path` of llama.cpp. The first part holds the metadata; each part says
//! its number from 0 (`split.no`), the count (`split.count`) and the tensors of all (`split.tensors.count`).

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use contract::State;
use contract::message::quoted;

use crate::flaw::Flaw;
use crate::header::Structure;

/// Which part of a split model a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Split {
    /// From 0.
    pub number: u16,
    /// More than 1.
    pub count: u16,
    /// Tensors of all parts together, where it is said.
    pub tensors: Option<u64>,
}

/// Names of missing parts that are spelt out.
const NAMED: usize = 3;

/// Finds the other parts beside `path` and looks at each; gives what is weak in them.
pub(crate) fn check(
    path: &Path,
    structure: &Structure,
    look: impl Fn(&Path) -> Result<Structure, Flaw>,
) -> Result<Vec<String>, Flaw> {
    let mut weak = Vec::new();
    let Some(split) = structure.split else { return Ok(weak) };
    let Some(stem) = stem(path, split) else {
        let (number, count) = (split.number + 1, split.count);
        return Err(Flaw::bad(format!(
            "it is part {number} of {count}, and its name does not end in '{}', by which engines find the others",
            suffix(split.number, count)
        )));
    };
    let mut tensors = structure.tensors;
    let mut missing = Vec::new();
    for number in (0..split.count).filter(|n| *n != split.number) {
        let part = part(path, &stem, number, split.count);
        let name = quoted(part.file_name().unwrap_or_default());
        let other = match look(&part) {
            Ok(other) => other,
            Err(flaw) if flaw.state == State::Missing => {
                missing.push(name);
                continue;
            }
            Err(flaw) => return Err(Flaw { cause: format!("its part {name}: {}", flaw.cause), ..flaw }),
        };
        if other.split.is_none_or(|s| (s.number, s.count) != (number, split.count)) {
            let (number, count) = (number + 1, split.count);
            return Err(Flaw::corrupt(format!(
                "its part {name} is not part {number} of {count} by its header"
            )));
        }
        tensors += other.tensors;
        weak.extend(other.weak.into_iter().map(|weak| format!("its part {name}: {weak}")));
    }
    if !missing.is_empty() {
        let named = missing[..missing.len().min(NAMED)].join(", ");
        let more = missing.len().saturating_sub(NAMED);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        return Err(Flaw::short(format!(
            "part {} of {} alone: {named}{more} missing beside it",
            split.number + 1,
            split.count
        )));
    }
    match split.tensors {
        Some(expected) if expected != tensors => Err(Flaw::corrupt(format!(
            "its parts hold {tensors} tensors together, not the {expected} they should"
        ))),
        _ => Ok(weak),
    }
}

/// How the name of a part ends.
fn suffix(number: u16, count: u16) -> String {
    format!("-{:05}-of-{count:05}.gguf", u32::from(number) + 1)
}

/// The file name before the suffix that this part must have.
fn stem(path: &Path, split: Split) -> Option<Vec<u8>> {
    let name = path.file_name()?.as_bytes();
    name.strip_suffix(suffix(split.number, split.count).as_bytes()).map(<[u8]>::to_vec)
}

fn part(path: &Path, stem: &[u8], number: u16, count: u16) -> PathBuf {
    let mut name = stem.to_vec();
    name.extend_from_slice(suffix(number, count).as_bytes());
    path.with_file_name(OsString::from_vec(name))
}
