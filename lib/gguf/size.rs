//! The size a header describes against the size there is, and what lies between header and data.

use crate::flaw::{Bytes, Flaw};
use crate::impostor;
use crate::source::{Source, read_full};
use crate::tensors::Table;

/// Where the parts of a file are.
pub(crate) struct Extent {
    /// End of the tensor table.
    info_end: u64,
    /// Start of the tensor data.
    pub(crate) data_start: u64,
    /// End of the last tensor's data.
    data_end: u64,
    /// End of the file, padding included.
    pub(crate) end: u64,
}

impl Extent {
    pub(crate) fn of(info_end: u64, table: &Table, alignment: u32) -> Result<Self, Flaw> {
        let beyond = || Flaw::corrupt("its header describes more than 2^64 bytes");
        let data_start = info_end.checked_next_multiple_of(u64::from(alignment)).ok_or_else(beyond)?;
        let end = data_start.checked_add(table.padded).ok_or_else(beyond)?;
        // Without tensors the padding before the data is the file's last.
        let data_end = if table.padded == 0 { info_end } else { data_start + table.end };
        Ok(Self { info_end, data_start, data_end, end })
    }
}

/// A weakness when only the last padding is missing, a flaw when anything else differs.
pub(crate) fn compare(source: &dyn Source, extent: &Extent, tensors: u64) -> Result<Option<String>, Flaw> {
    let (size, end) = (source.size(), extent.end);
    if size == end {
        return Ok(None);
    }
    if size < extent.data_end {
        let missing = Bytes(end - size);
        return Err(Flaw::short(format!("cut off: {missing} fewer than its header describes")));
    }
    if size < end {
        let missing = Bytes(end - size);
        return Ok(Some(format!(
            "{missing} of the padding after the last tensor missing, its data is all there"
        )));
    }
    let mut tail = [0; 4096];
    let filled = read_full(source, &mut tail, end).map_err(|cause| Flaw::unreadable(&cause))?;
    let tail = &tail[..filled];
    let what = if tail.starts_with(b"GGUF") {
        "another GGUF: parts put together, or a download resumed from its start".to_owned()
    } else {
        impostor::name(tail, end, source).trim_end_matches(',').to_owned()
    };
    let described = if tensors == 0 { "its header, which describes no tensors" } else { "its last tensor" };
    Err(Flaw::corrupt(format!("{} appended after {described}: {what}", Bytes(size - end))))
}

/// Says when the padding between header and data is not zero; at most 64 KiB of it are looked at.
pub(crate) fn padding(source: &dyn Source, extent: &Extent) -> Result<Option<String>, Flaw> {
    let length = extent.data_start.min(source.size()).saturating_sub(extent.info_end).min(64 << 10);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    read_full(source, &mut bytes, extent.info_end).map_err(|cause| Flaw::unreadable(&cause))?;
    let odd = bytes.iter().position(|b| *b != 0);
    Ok(odd.map(|n| {
        format!("byte {} is padding and not zero: something changed it", extent.info_end + n as u64)
    }))
}

/// Says when the file system holds nothing for a stretch of the tensor data.
pub(crate) fn hole(source: &dyn Source, extent: &Extent) -> Option<String> {
    let (start, end) = source.hole(extent.data_start, extent.data_end)?;
    let rest = if end == extent.data_end { ", to its end" } else { "" };
    Some(format!("a hole of {} at byte {start}{rest}: never written, or zeros", Bytes(end - start)))
}
