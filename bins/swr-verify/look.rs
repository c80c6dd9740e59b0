//! Looks at every entry, several at a time, and keeps what was learnt for the next look.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use contract::{Error, clock, mode};
use files::digest::{Hasher, Sha};
use workspace::cache::Cache;
use workspace::place::Places;
use workspace::verify::{Depth, Result as Found};
use workspace::{Entry, Manifest, Shape};

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
    // The trees share the threads; a lone one may use all.
    let trees = entries.iter().filter(|e| matches!(e.shape, Shape::Tree { .. })).count();
    let inner = settings.jobs / trees.clamp(1, settings.jobs);
    let depth = Depth { deep: settings.deep, cache: Some(cache), now: clock::now().wall, jobs: inner };
    // Few entries are taken one by one, since one may be a whole tree; many in pieces, since one is a mere `stat`.
    let piece = (entries.len() / (settings.jobs * 8)).clamp(1, 64);
    let pieces: Vec<&[&Entry]> = entries.chunks(piece).collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(pieces.len()));
    let work = || {
        let mut near = places.near();
        let take = || {
            let at = next.fetch_add(1, Ordering::Relaxed);
            Some((at, *pieces.get(at)?))
        };
        while let Some((at, piece)) = take() {
            let found: Result<Vec<_>, Error> =
                piece.iter().map(|entry| near.look(entry, &depth).map(|f| (*entry, f))).collect();
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, found));
        }
    };
    std::thread::scope(|scope| {
        // A thread costs more than a few `stat` calls: only many entries are shared out.
        for _ in 1..settings.jobs.min(entries.len() / 8 + 1) {
            // Where no thread can be had, this one does it all.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_unstable_by_key(|(at, _)| *at);
    let mut all = Vec::with_capacity(entries.len());
    for (_, found) in done {
        all.extend(found?);
    }
    Ok(all)
}

/// Puts what was hashed into the cache and drops entries that the manifest no longer has.
pub(crate) fn remember(cache: &mut Cache, manifest: &Manifest, looked: &[(&Entry, Found)], host: Sha) {
    let now = clock::now().wall;
    cache.set_host(host);
    let ids: HashSet<&str> = manifest.lines.iter().map(|l| l.entry.id.as_str()).collect();
    cache.retain(|id| ids.contains(id));
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
