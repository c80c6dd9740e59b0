//! Entries captured anew: loose bounds of an older or grown workspace become what is there now.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use contract::message::{note, quoted};
use contract::{Error, clock, exit};
use workspace::place::Places;
use workspace::verify::{self, Depth};
use workspace::{Entry, Manifest, Shape, capture, content};

use crate::add::{kind_of, tree_options};

/// Captures the named entries anew, or all when none is named. A damaged one is an error when it was named, and is
/// left as it is otherwise: damage never becomes the truth.
pub(crate) fn entries(manifest: &mut Manifest, ids: &[String]) -> Result<(), Error> {
    let places = Places::open(&manifest.header)?;
    let chosen: Vec<Entry> = manifest
        .lines
        .iter()
        .map(|l| &l.entry)
        .filter(|e| ids.is_empty() || ids.iter().any(|id| *id == e.id))
        .cloned()
        .collect();
    for entry in chosen {
        let (root, path) = places.of(&entry)?;
        let depth = Depth { deep: false, cache: None, now: clock::now().wall, jobs: content::jobs() };
        if let Some(finding) = verify::entry(root, &entry, path, &depth).findings.first() {
            let text = format!("{} is damaged ({})", entry.id, finding.detail);
            if ids.is_empty() {
                note("swr-add", &format!("{text}, left as it is"));
                continue;
            }
            let path = quoted(OsStr::from_bytes(&entry.path));
            return Err(Error::new(exit::swr::DAMAGED, text).hint(format!(
                "swr doctor repairs it; if the change was meant, swr add {path}, then swr sign"
            )));
        }
        let mut shape = capture::shape(root, path, kind_of(&entry.shape), &tree_options(&entry.shape))
            .map_err(|why| Error::new(exit::IO, why))?;
        if let (Shape::File { escrow, .. }, Shape::File { escrow: kept, .. }) = (&mut shape, &entry.shape) {
            escrow.clone_from(kept);
        }
        if shape != entry.shape {
            manifest.put(Entry { shape, ..entry });
        }
    }
    Ok(())
}
