//! Looks at every entry, several at a time, and keeps what was learnt for the next look.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use contract::{Error, clock, mode};
use files::digest::{Hasher, Sha};
use workspace::cache::Cache;
use workspace::place::Places;
use workspace::verify::{self, Depth, Result as Found};
use workspace::{Entry, Manifest};

/// How to look.
pub(crate) struct Settings {
    pub(crate) deep: bool,
    pub(crate) jobs: usize,
}

/// Looks at the entries named, or at all; the result is in manifest order.
pub(crate) fn all<'a>(
    manifest: &'a Manifest,
    only: &[String],
    settings: &Settings,
    cache: &Cache,
) -> Result<Vec<(&'a Entry, Found)>, Error> {
    let places = Places::open(&manifest.header)?;
    let entries: Vec<&Entry> =
        manifest.lines.iter().map(|l| &l.entry).filter(|e| only.is_empty() || only.contains(&e.id)).collect();
    // One thread a tree is enough while there are several entries; a lone one may use all.
    let inner = if entries.len() < settings.jobs { settings.jobs } else { 1 };
    let depth = Depth { deep: settings.deep, cache: Some(cache), now: clock::now().wall, jobs: inner };
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(entries.len()));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(entry) = entries.get(at) else { break };
            let found = places.of(entry).map(|(root, path)| verify::entry(root, entry, path, &depth));
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, *entry, found));
        }
    };
    std::thread::scope(|scope| {
        // A thread costs more than a few `stat` calls: only many entries are shared out.
        for _ in 1..settings.jobs.min(entries.len() / 8 + 1) {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_unstable_by_key(|(at, ..)| *at);
    done.into_iter().map(|(_, entry, found)| found.map(|f| (entry, f))).collect()
}

/// Puts what was hashed into the cache and drops entries that the manifest no longer has.
pub(crate) fn remember(cache: &mut Cache, manifest: &Manifest, looked: &[(&Entry, Found)], host: Sha) {
    let now = clock::now().wall;
    cache.set_host(host);
    cache.retain(|id| manifest.entry(id).is_some());
    for (entry, found) in looked {
        if let Some((fingerprint, hash)) = found.hashed {
            cache.put(&entry.id, fingerprint, hash, now);
        }
    }
}

/// Writes the cache, if it changed.
pub(crate) fn save(cache: &Cache, home: &Path, path: &Path) -> Result<(), Error> {
    let fix = mode::by_name();
    files::atomic::make_dir(&fix, home)
        .and_then(|()| cache.save(&fix, path))
        .map_err(|cause| Error::io("write", path.as_os_str(), &cause))
}

/// Which machine this is: its id and its CPU's instruction set.
pub(crate) fn host() -> Sha {
    let mut hasher = Hasher::default();
    hasher.update(&std::fs::read("/etc/machine-id").unwrap_or_default());
    hasher.update(engine::cpu().id.as_bytes());
    hasher.finish()
}
