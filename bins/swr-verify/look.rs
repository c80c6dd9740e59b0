//! Looks at every entry, several at a time, and keeps what was learnt for the next look.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};

use contract::{Error, clock, mode};
use files::digest::{Hasher, Sha};
use workspace::cache::Cache;
use workspace::place::Places;
use workspace::reading::{ENTRIES, Reading};
use workspace::verify::{Depth, Result as Found};
use workspace::{Entry, Header, Line, Shape, manifest};

/// From so many bytes on a manifest is large.
pub(crate) const LARGE: usize = 64 << 10;
/// Entries that a thread takes at a time.
const PIECE: usize = 128;

/// How to look.
pub(crate) struct Settings {
    pub(crate) deep: bool,
    pub(crate) jobs: usize,
}

impl Settings {
    /// How deep to look, `jobs` threads in each tree.
    fn depth<'a>(&self, cache: &'a Cache, jobs: usize) -> Depth<'a> {
        Depth { deep: self.deep, cache: Some(cache), now: clock::now().wall, jobs }
    }
}

/// Looks at entries; the results are in their order.
pub(crate) fn all(
    header: &Header,
    entries: &[&Entry],
    settings: &Settings,
    cache: &Cache,
) -> Result<Vec<Found>, Error> {
    let places = Places::open(header)?;
    // The trees share the threads; a lone one may use all.
    let trees = entries.iter().filter(|e| matches!(e.shape, Shape::Tree { .. })).count();
    let depth = settings.depth(cache, settings.jobs / trees.clamp(1, settings.jobs));
    // Few entries are taken one by one, since one may be a whole tree; many in pieces, since one is a mere `stat`.
    let piece = (entries.len() / (settings.jobs * 8)).clamp(1, PIECE);
    // A thread costs more than a few `stat` calls: only many entries are shared out.
    let threads = settings.jobs.min(entries.len() / 8 + 1);
    shared(&places, &depth, threads, |give| {
        entries.chunks(piece).for_each(|piece| give(piece.to_vec()));
        Ok(())
    })
}

/// Reads a large manifest, each entry looked at while the next ones are read: the lines in pieces, and what each one
/// looks like, both in manifest order.
pub(crate) fn streamed(
    bytes: &[u8],
    settings: &Settings,
    cache: &Cache,
) -> Result<(Vec<Vec<Line>>, Vec<Found>), Error> {
    let unusable = |what: String| manifest::unusable(&what);
    let mut reading = Reading::begin(bytes).map_err(unusable)?;
    let places = Places::open(&reading.header)?;
    let pieces: Vec<OnceLock<Vec<Line>>> = (0..=ENTRIES / PIECE).map(|_| OnceLock::new()).collect();
    let found = shared(&places, &settings.depth(cache, 1), settings.jobs, |give| {
        for piece in &pieces {
            let lines = reading.entries(PIECE).map_err(unusable)?;
            if lines.is_empty() {
                break;
            }
            give(piece.get_or_init(|| lines).iter().map(|l| &l.entry).collect());
        }
        manifest::check_ids(pieces.iter().filter_map(OnceLock::get).flatten()).map_err(unusable)
    })?;
    Ok((pieces.into_iter().filter_map(OnceLock::into_inner).collect(), found))
}

/// Looks at the pieces that `read` gives, `threads` of them at once; the results are in the order they were given. An
/// error of `read` ends the looking.
fn shared<'e>(
    places: &Places,
    depth: &Depth,
    threads: usize,
    read: impl FnOnce(&mut dyn FnMut(Vec<&'e Entry>)) -> Result<(), Error>,
) -> Result<Vec<Found>, Error> {
    let (send, receive) = mpsc::channel::<(usize, Vec<&Entry>)>();
    let (receive, stop) = (Mutex::new(receive), AtomicBool::new(false));
    let done = Mutex::new(Vec::new());
    let work = || {
        let mut near = places.near();
        // The sender goes when all is read, so each wait ends.
        let take = || receive.lock().unwrap_or_else(PoisonError::into_inner).recv();
        while let Ok((at, piece)) = take() {
            let piece = piece.iter().take_while(|_| !stop.load(Ordering::Relaxed));
            let found: Result<Vec<Found>, Error> = piece.map(|entry| near.look(entry, depth)).collect();
            done.lock().unwrap_or_else(PoisonError::into_inner).push((at, found));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // Where no thread can be had, this one does it all.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        let mut count = 0;
        let result = read(&mut |piece| {
            // The receiver outlives this.
            let _ = send.send((count, piece));
            count += 1;
        });
        stop.store(result.is_err(), Ordering::Relaxed);
        drop(send);
        work();
        result
    })?;
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(at, _)| *at);
    let mut all = Vec::with_capacity(done.len() * PIECE);
    for (_, found) in done {
        all.extend(found?);
    }
    Ok(all)
}

/// Puts what was hashed into the cache and drops entries that the manifest no longer has.
pub(crate) fn remember(cache: &mut Cache, entries: &[Vec<Line>], looked: &[(&Entry, &Found)], host: Sha) {
    let now = clock::now().wall;
    cache.set_host(host);
    let ids: HashSet<&str> = entries.iter().flatten().map(|l| l.entry.id.as_str()).collect();
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
