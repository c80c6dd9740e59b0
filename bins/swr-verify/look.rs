//! Looks at every entry, several at a time, and keeps what was learnt for the next look.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use contract::{Error, Part, State, Swr, clock, mode};
use files::digest::{Hasher, Sha};
use workspace::cache::Cache;
use workspace::place::{Near, Places};
use workspace::reading::{self, Lines, Reading};
use workspace::verify::{Depth, Result as Found};
use workspace::{Entry, Header, Shape, manifest};

/// From so many bytes on a manifest is large.
pub(crate) const LARGE: usize = 64 << 10;
/// Entries that a thread takes at a time.
const PIECE: usize = 64;

/// How to look.
pub(crate) struct Settings {
    pub(crate) deep: bool,
    pub(crate) json: bool,
    pub(crate) jobs: usize,
}

/// A manifest, and what its entries look like, or those that were chosen.
pub(crate) struct Seen<'a> {
    pub(crate) header: Header,
    pub(crate) lines: Vec<Lines<'a>>,
    pub(crate) looked: Vec<Looked>,
    /// Whether nothing can be wrong with the needs.
    pub(crate) is_met: bool,
}

/// What some entries look like, one result an entry and in their order, and the verdicts of that.
pub(crate) struct Looked {
    pub(crate) found: Vec<Found>,
    pub(crate) text: Part<Swr>,
}

impl Settings {
    /// How deep to look, `jobs` threads in each tree.
    fn depth<'a>(&self, cache: &'a Cache<'a>, jobs: usize) -> Depth<'a> {
        Depth { deep: self.deep, cache: Some(cache), now: clock::wall(), jobs }
    }

    fn look<'a: 'e, 'e>(
        &self,
        near: &mut Near,
        entries: impl ExactSizeIterator<Item = &'e Entry<'a>>,
        depth: &Depth,
    ) -> Result<Looked, Error> {
        let mut looked =
            Looked { found: Vec::with_capacity(entries.len()), text: Part::new(self.json, entries.len()) };
        for entry in entries {
            let found = near.look(entry, depth)?;
            if found.findings.is_empty() {
                looked.text.say(State::Ok, entry.kind(), &entry.id, &found.proof);
            }
            for finding in &found.findings {
                looked.text.say(finding.state, entry.kind(), &entry.id, &finding.detail);
            }
            looked.found.push(found);
        }
        Ok(looked)
    }
}

/// Reads a manifest and looks at those of its entries that are chosen.
pub(crate) fn some<'a>(
    bytes: &'a [u8],
    only: &[String],
    settings: &Settings,
    cache: &Cache,
) -> Result<Seen<'a>, Error> {
    let (header, lines) = Reading::whole(bytes).map_err(|what| manifest::unusable(&what))?;
    let entries = || lines.entries.iter().map(|l| &l.entry);
    if let Some(id) = only.iter().find(|id| entries().all(|e| e.id != **id)) {
        return Err(Error::usage(format!("no entry has the id '{id}'")).hint("swr check names every id"));
    }
    let entries: Vec<_> = entries().filter(|e| is_chosen(e, only)).collect();
    let places = Places::open(&header)?;
    // The trees share the threads; a lone one may use all.
    let trees = entries.iter().filter(|e| matches!(e.shape, Shape::Tree { .. })).count();
    let depth = settings.depth(cache, settings.jobs / trees.clamp(1, settings.jobs));
    // Few entries are taken one by one, since one may be a whole tree; many in pieces, since one is a mere `stat`.
    let pieces: Vec<_> = entries.chunks((entries.len() / (settings.jobs * 8)).clamp(1, PIECE)).collect();
    // A thread costs more than a few `stat` calls: only many entries are shared out.
    let threads = settings.jobs.min(entries.len() / 8 + 1);
    let looked =
        shared(&places, &pieces, threads, |near, piece| settings.look(near, piece.iter().copied(), &depth))?;
    Ok(Seen { header, lines: vec![lines], looked, is_met: false })
}

/// Whether an entry is one of `only`, or that is empty.
pub(crate) fn is_chosen(entry: &Entry, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|id| *id == entry.id)
}

/// Reads a large manifest and looks at all of it, each thread at the entries of the lines that it read.
pub(crate) fn all<'a>(bytes: &'a [u8], settings: &Settings, cache: &Cache) -> Result<Seen<'a>, Error> {
    let mut reading = Reading::begin(bytes).map_err(|what| manifest::unusable(&what))?;
    let places = Places::open(&reading.header)?;
    let depth = settings.depth(cache, 1);
    let pieces: Vec<_> = std::iter::from_fn(|| reading.piece(PIECE)).collect();
    let done = shared(&places, &pieces, settings.jobs, |near, piece| {
        let lines = piece.read()?;
        let looked = settings.look(near, lines.entries.iter().map(|line| &line.entry), &depth);
        Ok((lines, looked))
    });
    let (lines, looked): (Vec<_>, Vec<_>) =
        done.map_err(|what: String| manifest::unusable(&what))?.into_iter().unzip();
    let is_met = reading::check(&lines).map_err(|what| manifest::unusable(&what))?;
    Ok(Seen { header: reading.header, lines, looked: looked.into_iter().collect::<Result<_, _>>()?, is_met })
}

/// Does `work` for every item, `threads` of them at once; the results are in the order of the items, and so is the
/// error, after which no further item is begun.
fn shared<T: Sync, R: Send, E: Send>(
    places: &Places,
    items: &[T],
    threads: usize,
    work: impl Fn(&mut Near, &T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let (next, stop, done) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(Vec::new()));
    let run = || {
        let mut near = places.near();
        while !stop.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            let result = work(&mut near, item);
            stop.fetch_or(result.is_err(), Ordering::Relaxed);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // Where no thread can be had, this one does it all.
            let _ = std::thread::Builder::new().spawn_scoped(scope, run);
        }
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Puts what was hashed into the cache and drops entries that the manifest no longer has.
pub(crate) fn remember(cache: &mut Cache, lines: &[Lines], looked: &[(&Entry, &Found)], host: Sha) {
    let now = clock::wall();
    cache.set_host(host);
    let ids: HashSet<&str> = lines.iter().flat_map(|l| &l.entries).map(|l| &*l.entry.id).collect();
    cache.retain(|id| ids.contains(id));
    for (entry, found) in looked {
        if let Some(hashed) = &found.hashed {
            cache.put(&entry.id, hashed.0, hashed.1, now);
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
