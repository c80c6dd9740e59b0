//! Entries for what `swr-audit` calls untracked: each capture on its own, as many as one manifest holds.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use contract::message::{hint, note, quoted};
use contract::{Error, Kind, State, Verdict};
use files::open::{self, Refusal};
use workspace::manifest::LIMIT;
use workspace::reading::ENTRIES;
use workspace::{Line, Manifest, name};

use crate::Options;
use crate::add::{capture_entry, id_of};

/// More of a list is not read.
const LIST: u64 = 64 << 20;
/// Of a manifest's bytes what later signatures and a longer header may take.
const SPARE: usize = 16 << 10;
/// So many of what could not be captured are named.
const NAMED: usize = 20;

/// Captures what the `untracked` lines of the file name. What cannot be captured is said and takes nothing from the rest.
pub(crate) fn lines(manifest: &mut Manifest, options: &Options, from: &Path) -> Result<(), Error> {
    let mut known: HashSet<Vec<u8>> = manifest.lines.iter().map(|l| l.entry.path.to_vec()).collect();
    let taken = manifest.lines.iter().map(|l| l.entry.id.to_string()).collect();
    let mut ids = Ids { taken, made: HashMap::new() };
    let mut size = manifest.body.len();
    let (mut left, mut lost) = (0_usize, Lost(0));
    for verdict in verdicts(from)? {
        let path = verdict.subject;
        match (verdict.state, verdict.kind) {
            // What the list itself leaves out.
            (State::Untracked | State::Unknown, Kind::Manifest) => note("swr-add", &verdict.detail),
            (State::Unknown, _) => lost.say(&path, &verdict.detail),
            _ => {}
        }
        if verdict.state != State::Untracked || !matches!(verdict.kind, Kind::File | Kind::Blob) {
            continue;
        }
        if !name::is_contained(&path) || !known.insert(path.clone()) {
            continue;
        }
        if left > 0 {
            left += 1;
            continue;
        }
        let entry = match capture_entry(manifest, options, ids.free(&path), path.clone()) {
            Ok(entry) => entry,
            Err(error) => {
                lost.say(&path, &error.message);
                continue;
            }
        };
        let line = Line::new(entry);
        let more = manifest.raw(&line).len() + 1;
        if manifest.lines.len() >= ENTRIES || size + more > LIMIT - SPARE {
            left = 1;
            continue;
        }
        size += more;
        ids.taken.insert(line.entry.id.to_string());
        manifest.lines.push(line);
    }
    if size > manifest.body.len() {
        manifest.rebuild();
    }
    if lost.0 > NAMED {
        note("swr-add", &format!("{} more could not be captured and are not tracked", lost.0 - NAMED));
    }
    if left > 0 {
        note(
            "swr-add",
            &format!("{left} more are not tracked: a manifest holds {ENTRIES} entries and {LIMIT} bytes"),
        );
        hint("swr add DIR makes one entry of a whole tree");
    }
    Ok(())
}

/// How many could not be captured.
struct Lost(usize);

impl Lost {
    fn say(&mut self, path: &[u8], why: &str) {
        self.0 += 1;
        if self.0 <= NAMED {
            note("swr-add", &format!("{} is not tracked: {why}", quoted(OsStr::from_bytes(path))));
        }
    }
}

/// The verdict lines of a file, which must hold nothing else.
fn verdicts(from: &Path) -> Result<Vec<Verdict>, Error> {
    let name = from.as_os_str();
    let (file, _) = open::regular(from).map_err(|refusal| match refusal {
        Refusal::Io(cause) => Error::io("read", name, &cause).hint("swr audit --all prints such a list"),
        Refusal::NotAFile(what) => Error::usage(format!("{} is {}", quoted(name), what.words())),
    })?;
    let mut text = Vec::new();
    file.take(LIST).read_to_end(&mut text).map_err(|cause| Error::io("read", name, &cause))?;
    let lines = text.split(|b| *b == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
    let verdict = |(at, line)| {
        Verdict::parse(line).ok_or_else(|| {
            Error::usage(format!("{}: line {} is no verdict line", quoted(name), at + 1))
                .hint("swr audit --all prints such a list")
        })
    };
    lines.map(verdict).collect()
}

/// The ids that are taken, and of each text an id was made of how often that was.
struct Ids {
    taken: HashSet<String>,
    made: HashMap<String, usize>,
}

impl Ids {
    /// An id made from a path that no entry has; it is taken once its entry is in.
    fn free(&mut self, path: &[u8]) -> String {
        let made = id_of(path);
        let first = if made.is_empty() { "entry".to_owned() } else { made };
        let n = self.made.entry(first.clone()).or_insert(1);
        let mut id = first.clone();
        while self.taken.contains(&id) {
            *n += 1;
            let suffix = format!("-{n}");
            let end = first.len().min(64 - suffix.len());
            id = format!("{}{suffix}", &first[..end]);
        }
        id
    }
}
