//! Looks at every entry, several at a time, and keeps what was learnt for the next look.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    let inner = settings.jobs / trees.clamp(1, settings.jobs);
    let depth = Depth { deep: settings.deep, cache: Some(cache), now: clock::now().wall, jobs: inner };
    // Few entries are taken one by one, since one may be a whole tree; many in pieces, since one is a mere `stat`.
    let piece = (entries.len() / (settings.jobs * 8)).clamp(1, PIECE);
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
            let found = piece.iter().map(|entry| near.look(entry, &depth)).collect();
            done.lock().unwrap_or_else(PoisonError::into_inner).push((at, found));
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
    in_order(done)
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
    let depth = Depth { deep: settings.deep, cache: Some(cache), now: clock::now().wall, jobs: 1 };
    let pieces: Vec<OnceLock<Vec<Line>>> = (0..=ENTRIES / PIECE).map(|_| OnceLock::new()).collect();
    let (send, receive) = mpsc::channel::<(usize, &[Line])>();
    let (receive, stop) = (Mutex::new(receive), AtomicBool::new(false));
    let done = Mutex::new(Vec::new());
    let work = || {
        let mut near = places.near();
        // The sender goes when all is read, so each wait ends.
        let take = || receive.lock().unwrap_or_else(PoisonError::into_inner).recv();
        while let Ok((at, lines)) = take() {
            let lines = lines.iter().take_while(|_| !stop.load(Ordering::Relaxed));
            let found = lines.map(|line| near.look(&line.entry, &depth)).collect();
            done.lock().unwrap_or_else(PoisonError::into_inner).push((at, found));
        }
    };
    let read = |reading: &mut Reading<'_>, send: mpsc::Sender<_>| {
        for (at, piece) in pieces.iter().enumerate() {
            let lines = reading.entries(PIECE)?;
            if lines.is_empty() {
                break;
            }
            // Nobody hears it only where no thread could be had.
            let _ = send.send((at, piece.get_or_init(|| lines).as_slice()));
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        for _ in 1..settings.jobs {
            // Where no thread can be had, this one does it all.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        let result = read(&mut reading, send);
        stop.store(result.is_err(), Ordering::Relaxed);
        work();
        result
    })
    .map_err(unusable)?;
    drop(receive);
    let lines: Vec<Vec<Line>> = pieces.into_iter().filter_map(OnceLock::into_inner).collect();
    manifest::check_ids(lines.iter().flatten()).map_err(unusable)?;
    Ok((lines, in_order(done)?))
}

/// A piece's number and its results.
type Done = (usize, Result<Vec<Found>, Error>);

/// The results of pieces that were finished in any order.
fn in_order(done: Mutex<Vec<Done>>) -> Result<Vec<Found>, Error> {
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
