//! A source tree on the disk: whole, gutted, absent or something else; and its digest.

use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use contract::State;
use files::digest::{Hasher, Sha};

use crate::halt::{Halt, io};

/// Files that every tree able to build has, none of them empty. A snapshot that loses files leaves the directory,
/// so the directory's existence says nothing.
const SENTINELS: [&str; 5] =
    ["CMakeLists.txt", "ggml/CMakeLists.txt", "ggml/src/ggml.c", "src/llama.cpp", "common/CMakeLists.txt"];

/// Read by cmake while it configures; trees before it was added do not mention it.
const CONFIG: &str = "ggml/cmake/ggml-config.cmake.in";

/// Where the programs are defined: today's place, and the one of older trees.
const PROGRAMS: [&str; 2] = ["tools/CMakeLists.txt", "examples/CMakeLists.txt"];

/// More than this is no source tree of an engine (today's has 3,700 files, 180 MB).
const MOST_FILES: u64 = 100_000;
const MOST_BYTES: u64 = 2 << 30;

/// What a directory is as a source tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Tree {
    /// Nothing is there, or an empty directory.
    Absent,
    /// All sentinels are there.
    Whole,
    /// A tree of the engine that lost these files.
    Gutted(Vec<&'static str>),
    /// Something that is not a tree of the engine; it is not ours to move.
    Foreign,
}

/// Looks at a directory.
pub(crate) fn look(dir: &Path) -> Result<Tree, Halt> {
    let meta = match dir.metadata() {
        Ok(meta) => meta,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            // a dangling link is somebody's arrangement, not an absent tree
            return Ok(if dir.symlink_metadata().is_ok() { Tree::Foreign } else { Tree::Absent });
        }
        Err(cause) => return Err(io("read", dir)(cause)),
    };
    if !meta.is_dir() {
        return Ok(Tree::Foreign);
    }
    if dir.read_dir().map_err(io("read", dir))?.next().is_none() {
        return Ok(Tree::Absent);
    }
    let lost = lost(dir);
    if lost.is_empty() {
        return Ok(Tree::Whole);
    }
    // Emptied files and bare directories are what a snapshot leaves of a tree.
    let remains = ["ggml/src", "src/llama.cpp", "ggml/CMakeLists.txt"];
    if remains.iter().any(|r| dir.join(r).exists()) || is_checkout(dir) {
        return Ok(Tree::Gutted(lost));
    }
    Ok(Tree::Foreign)
}

/// Whether a directory is the top of a git checkout.
pub(crate) fn is_checkout(dir: &Path) -> bool {
    dir.join(".git").symlink_metadata().is_ok()
}

/// The sentinels that are missing or empty.
fn lost(dir: &Path) -> Vec<&'static str> {
    let good = |name: &str| dir.join(name).metadata().is_ok_and(|m| m.is_file() && m.len() > 0);
    let mut lost: Vec<_> = SENTINELS.into_iter().filter(|name| !good(name)).collect();
    if read_text(&dir.join("ggml/CMakeLists.txt")).contains("ggml-config.cmake.in") && !good(CONFIG) {
        lost.push(CONFIG);
    }
    if !PROGRAMS.iter().any(|name| good(name)) {
        lost.push(PROGRAMS[0]);
    }
    lost
}

/// A file of the tree as text, at most 1 MiB; empty when it cannot be read.
pub(crate) fn read_text(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok((file, _)) = files::open::regular(path) {
        let _ = file.take(1 << 20).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// SHA-256 over every file of a tree but its build directories: path, x bit and content of each, in the order of
/// the paths; links by their target. A link that leads out of the tree, a device or a FIFO is refused.
pub(crate) fn digest(dir: &Path) -> Result<Sha, Halt> {
    let mut paths = list(dir)?;
    paths.sort_unstable();
    let mut whole = Hasher::default();
    let mut bytes = 0;
    for path in paths {
        let full = dir.join(&path);
        let meta = full.symlink_metadata().map_err(io("read", &full))?;
        let (kind, sha) = if meta.is_symlink() {
            let target = full.read_link().map_err(io("read", &full))?;
            if leaves(&path, &target) {
                return Err(refused(&full, "is a link that leads out of the tree"));
            }
            let mut hasher = Hasher::default();
            hasher.update(target.as_os_str().as_bytes());
            (b'l', hasher.finish())
        } else if meta.is_file() {
            bytes += meta.len();
            if bytes > MOST_BYTES {
                return Err(refused(dir, "is larger than any source tree"));
            }
            let (mut file, _) =
                files::open::regular(&full).map_err(|_| refused(&full, "changed while it was read"))?;
            let (sha, _) = files::digest::of_reader(&mut file).map_err(io("read", &full))?;
            (if meta.permissions().mode() & 0o100 == 0 { b'f' } else { b'x' }, sha)
        } else {
            return Err(refused(&full, "is neither a file nor a link"));
        };
        whole.update(&[kind]);
        whole.update(&sha.0);
        whole.update(&(path.as_os_str().len() as u64).to_le_bytes());
        whole.update(path.as_os_str().as_bytes());
    }
    Ok(whole.finish())
}

fn refused(path: &Path, why: &str) -> Halt {
    Halt::new(State::Bad, format!("{} {why}", contract::message::quoted(path.as_os_str())))
}

/// The paths of everything but directories, relative to `dir`; `build*` at the top is scratch and left out.
fn list(dir: &Path) -> Result<Vec<PathBuf>, Halt> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(relative) = open.pop() {
        let here = dir.join(&relative);
        for entry in here.read_dir().map_err(io("read", &here))? {
            let entry = entry.map_err(io("read", &here))?;
            let kind = entry.file_type().map_err(io("read", &here))?;
            let path = relative.join(entry.file_name());
            if !kind.is_dir() {
                found.push(path);
            } else if !(relative.as_os_str().is_empty() && entry.file_name().as_bytes().starts_with(b"build"))
            {
                open.push(path);
            }
            if (found.len() + open.len()) as u64 > MOST_FILES {
                return Err(refused(dir, "has more files than any source tree"));
            }
        }
    }
    Ok(found)
}

/// Whether the target of the link at `path` lies outside the tree.
fn leaves(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_may_not_lead_out() {
        for (path, target, out) in [
            ("a", "b", false),
            ("a/b", "../c", false),
            ("a/b", "../../c", true),
            ("a", "/etc/passwd", true),
            ("a", "x/../../c", true),
            ("a/b/c", "./../../d", false),
        ] {
            assert_eq!(leaves(Path::new(path), Path::new(target)), out, "{path} -> {target}");
        }
    }
}
