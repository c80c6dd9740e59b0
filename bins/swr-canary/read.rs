//! Comparing probes with what was planted.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use contract::verdict::print;
use contract::{Code, Error, Kind, Report, State, Swr, Verdict, exit};
use files::beneath::{Root, kind_of};
use rustix::fs::FileType;
use workspace::json::{self, Json};
use workspace::name;

use crate::probe::{self, Probe, What};

/// What was planted where.
pub(crate) struct Planted {
    /// The directory of the probes.
    pub(crate) dir: PathBuf,
    /// Whether the large ones were planted.
    pub(crate) large: bool,
}

/// What became of a probe.
pub(crate) enum Look {
    /// As planted.
    Kept,
    /// Not there.
    Gone,
    /// As planted but for its permission bits, which are these.
    Stripped(u32),
    /// Something else, in words.
    Changed(String),
    /// Could not be looked at.
    Unknown(io::Error),
}

/// The note of what is planted; `None` when nothing is.
pub(crate) fn planted(notes: &Path) -> Result<Option<Planted>, Error> {
    let path = notes.join("planted.json");
    let lines =
        files::records::read(&path, 64 << 10).map_err(|cause| Error::io("read", path.as_os_str(), &cause))?;
    let Some(Json::Object(pairs)) = lines.first().and_then(|l| json::parse(l).ok()) else { return Ok(None) };
    let get = |key: &str| pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v);
    Ok(match (get("dir"), get("large")) {
        (Some(Json::Text(dir)), Some(Json::Bool(large))) => {
            name::decode(dir).map(|dir| Planted { dir: OsString::from_vec(dir).into(), large: *large })
        }
        _ => None,
    })
}

/// Looks at one probe.
pub(crate) fn look(root: &Root, probe: &Probe) -> Look {
    let path = probe.path.as_bytes();
    let stat = match root.stat(path) {
        Ok(stat) => stat,
        Err(cause) if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Look::Gone;
        }
        Err(cause) => return Look::Unknown(cause),
    };
    let changed = |what: &str| Look::Changed(what.to_owned());
    match (&probe.what, kind_of(&stat)) {
        (What::Empty, FileType::Directory) => Look::Kept,
        (What::Link(target), FileType::Symlink) => match root.place(path).and_then(|p| p.link_target()) {
            Ok(found) if found == target.as_bytes() => Look::Kept,
            Ok(_) => changed("it points elsewhere"),
            Err(cause) => Look::Unknown(cause),
        },
        (What::File(size, mode), FileType::RegularFile) => {
            let found = files::beneath::print_of(&stat).size;
            if found != *size {
                return Look::Changed(format!("{found} bytes, planted were {size}"));
            }
            match same_content(root, probe, *size) {
                Err(cause) => Look::Unknown(cause),
                Ok(false) => changed("its content changed"),
                Ok(true) if stat.st_mode & 0o7777 != *mode => Look::Stripped(stat.st_mode & 0o7777),
                Ok(true) => Look::Kept,
            }
        }
        _ => changed("it is of another type"),
    }
}

fn same_content(root: &Root, probe: &Probe, size: u64) -> io::Result<bool> {
    let mut file = root.read(probe.path.as_bytes())?;
    let mut left = size;
    let mut found = [0; 4096];
    for block in probe::content(&probe.path, size) {
        let part = usize::try_from(left.min(4096)).unwrap_or(4096);
        match file.read_exact(&mut found[..part]) {
            Ok(()) => {}
            Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(cause) => return Err(cause),
        }
        if found[..part] != block[..part] {
            return Ok(false);
        }
        left -= part as u64;
    }
    Ok(true)
}

fn verdict(probe: &Probe, look: &Look) -> Verdict {
    let about = format!("{} {}", probe.property, probe.value);
    let (state, detail) = match look {
        Look::Kept => (State::Ok, about),
        Look::Gone => (State::Missing, format!("gone: {about}")),
        Look::Stripped(mode) => (State::Stripped, format!("mode {mode:04o}: {about}")),
        Look::Changed(what) => (State::Corrupt, format!("{what}: {about}")),
        Look::Unknown(cause) => {
            (State::Unknown, format!("could not be checked: {}", contract::message::cause_of(cause)))
        }
    };
    Verdict::new(state, Kind::Canary, probe.path.as_str(), detail)
}

/// Every probe that was planted, with what became of it. A directory that is gone takes all of them with it.
fn looked(notes: &Path) -> Result<Vec<(Probe, Look)>, Error> {
    let planted = planted(notes)?.ok_or_else(|| {
        Error::usage("no probes are planted").hint("swr canary plant, and read them after the next turn")
    })?;
    let root = match Root::open(&planted.dir) {
        Ok(root) => Some(root),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
        Err(cause) => return Err(Error::io("read", planted.dir.as_os_str(), &cause)),
    };
    let look = |probe: &Probe| root.as_ref().map_or(Look::Gone, |root| look(root, probe));
    Ok(probe::all(planted.large).into_iter().map(|p| (look(&p), p)).map(|(l, p)| (p, l)).collect())
}

/// One verdict a probe.
pub(crate) fn each(notes: &Path, json: bool) -> Result<Code, Error> {
    let mut report = Report::<Swr>::new(json);
    for (probe, look) in looked(notes)? {
        report.say(&verdict(&probe, &look))?;
    }
    Ok(report.code())
}

/// One line a property and value: how many were planted, kept, and came back with other permission bits.
pub(crate) fn table(notes: &Path) -> Result<Code, Error> {
    let mut rows: Vec<(String, [usize; 3])> = Vec::new();
    for (probe, look) in looked(notes)? {
        let key = format!("{}\t{}", probe.property, probe.value);
        if rows.last().is_none_or(|(k, _)| *k != key) {
            rows.push((key, [0; 3]));
        }
        let Some((_, counts)) = rows.last_mut() else { continue };
        counts[0] += 1;
        counts[1] += usize::from(matches!(look, Look::Kept | Look::Stripped(_)));
        counts[2] += usize::from(matches!(look, Look::Stripped(_)));
    }
    print(b"property\tvalue\tplanted\tkept\tmode lost\n")?;
    for (key, [planted, kept, stripped]) in rows {
        print(format!("{key}\t{planted}\t{kept}\t{stripped}\n").as_bytes())?;
    }
    Ok(exit::OK)
}
