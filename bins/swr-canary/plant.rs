//! Planting and removing probes. Only what is exactly as it was planted is ever removed.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use contract::message::{note, quoted};
use contract::{Code, Error, Fix, clock, exit, mode};
use files::atomic;
use files::beneath::Root;
use rustix::fs::AtFlags;
use workspace::{json, name};

use crate::probe::{self, Probe, What};
use crate::read;

/// Plants every probe below `dir`, which must not exist, and notes where.
pub(crate) fn plant(notes: &Path, dir: &Path, large: bool) -> Result<Code, Error> {
    let fix = mode::by_name();
    if read::planted(notes)?.is_some() {
        return Err(
            Error::usage("probes are planted already").hint("swr canary read, then swr canary remove")
        );
    }
    // Before anything is planted: what cannot be noted is not planted.
    atomic::make_dir(&fix, notes).map_err(|cause| Error::io("make", notes.as_os_str(), &cause))?;
    fs::create_dir(dir).map_err(|cause| {
        Error::io("make", dir.as_os_str(), &cause).hint("the probes need a directory of their own: --dir DIR")
    })?;
    let where_to = json::quote(&name::encode(dir.as_os_str().as_bytes()));
    let line = format!("{{\"planted\":{},\"dir\":{where_to},\"large\":{large}}}\n", clock::now().wall);
    let index = notes.join("planted.json");
    // Noted first: what is planted half way can still be found and removed.
    atomic::write(&fix, &index, line.as_bytes(), 0o600)
        .map_err(|cause| Error::io("write", index.as_os_str(), &cause))?;
    let probes = probe::all(large);
    for probe in &probes {
        one(&fix, dir, probe).map_err(|cause| {
            Error::io("plant", dir.join(&probe.path).as_os_str(), &cause)
                .hint("swr canary remove takes back what there is")
        })?;
    }
    note("swr-canary", &format!("{} probes planted in {}", probes.len(), quoted(dir.as_os_str())));
    Ok(exit::OK)
}

fn one(fix: &Fix, dir: &Path, probe: &Probe) -> io::Result<()> {
    let path = dir.join(&probe.path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match probe.what {
        What::Empty => fs::create_dir(&path),
        What::Link(target) => std::os::unix::fs::symlink(target, &path),
        What::File(size, mode) => {
            let mut file = atomic::begin(fix, &path)?;
            let mut left = size;
            for block in probe::content(&probe.path, size) {
                let part = usize::try_from(left.min(4096)).unwrap_or(4096);
                file.write_all(&block[..part])?;
                left -= part as u64;
            }
            file.commit(mode)
        }
    }
}

/// Takes the probes back. A probe that is no longer as planted is left, and so are directories that are not empty.
pub(crate) fn remove(notes: &Path) -> Result<Code, Error> {
    let fix = mode::by_name();
    let Some(planted) = read::planted(notes)? else {
        note("swr-canary", "no probes are planted");
        return Ok(exit::OK);
    };
    let mut kept = 0_usize;
    let root = match Root::open(&planted.dir) {
        Ok(root) => Some(root),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
        Err(cause) => return Err(Error::io("open", planted.dir.as_os_str(), &cause)),
    };
    if let Some(root) = root {
        for probe in probe::all(planted.large) {
            kept += usize::from(!take(&root, &probe));
        }
        let mut dirs: Vec<String> = probe::all(planted.large)
            .iter()
            .flat_map(|p| {
                p.path.match_indices('/').map(|(at, _)| p.path[..at].to_owned()).collect::<Vec<_>>()
            })
            .collect();
        dirs.sort_by_key(|d| std::cmp::Reverse(d.len()));
        dirs.dedup();
        for dir in dirs {
            let _ = rustix::fs::unlinkat(&root, dir.as_str(), AtFlags::REMOVEDIR);
        }
        let _ = fs::remove_dir(&planted.dir);
    }
    let index = notes.join("planted.json");
    atomic::replace(&fix, &index, &notes.join("removed.json"))
        .map_err(|cause| Error::io("write", index.as_os_str(), &cause))?;
    if kept > 0 {
        note(
            "swr-canary",
            &format!("{kept} probes were changed since and are left in {}", quoted(planted.dir.as_os_str())),
        );
    }
    Ok(exit::OK)
}

/// Removes one probe if it is as planted or gone; whether nothing of it is left.
fn take(root: &Root, probe: &Probe) -> bool {
    match read::look(root, probe) {
        read::Look::Gone => return true,
        read::Look::Kept | read::Look::Stripped(_) => {}
        read::Look::Changed(_) | read::Look::Unknown(_) => return false,
    }
    let flags = if probe.what == What::Empty { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    let removed = root
        .place(probe.path.as_bytes())
        .and_then(|p| Ok(rustix::fs::unlinkat(&p.parent, p.name.as_slice(), flags)?));
    removed.is_ok()
}
