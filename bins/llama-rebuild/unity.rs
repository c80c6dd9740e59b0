//! Files that cmake generates to compile many sources at once (`Unity/*.cxx`), made independent of the place.
//!
//! cmake writes absolute paths into them. They end in the objects (`__FILE__` of an assertion) and in the key of
//! the compiler cache: in another directory the ten largest compilations would miss. With relative paths they hit.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use contract::Fix;
use files::atomic;

use crate::halt::{Halt, io};
use crate::tree::read_text;

/// The generated files of a build directory as they were before cmake ran: text and time.
pub(crate) struct Before(Vec<(PathBuf, String, SystemTime)>);

impl Before {
    /// Reads what is there.
    pub(crate) fn read(build: &Path) -> Self {
        let entries = generated(build).into_iter().filter_map(|path| {
            let time = path.metadata().ok()?.modified().ok()?;
            let text = read_text(&path);
            Some((path, text, time))
        });
        Self(entries.collect())
    }

    /// Rewrites what cmake has generated. A file that comes out as it was before keeps its time, or every run would
    /// compile it again.
    pub(crate) fn relocate(&self, fix: &Fix, source: &Path, build: &Path) -> Result<(), Halt> {
        for path in generated(build) {
            let text = read_text(&path);
            let Some(relative) = relative(&text, source, &path) else { continue };
            atomic::write(fix, &path, relative.as_bytes(), 0o600).map_err(io("write", &path))?;
            let same = self.0.iter().find(|(p, text, _)| *p == path && *text == relative);
            if let Some((_, _, time)) = same {
                File::open(&path).and_then(|f| f.set_modified(*time)).map_err(io("write", &path))?;
            }
        }
        Ok(())
    }
}

/// The text with the tree's files named from the generated file's own directory; `None` when that changes nothing.
fn relative(text: &str, source: &Path, path: &Path) -> Option<String> {
    let up = path.parent()?.strip_prefix(source).ok()?.components().count();
    let from = format!("#include \"{}/", source.to_str()?);
    let to = format!("#include \"{}", "../".repeat(up));
    text.contains(&from).then(|| text.replace(&from, &to))
}

/// Every file in a directory `Unity` below `build`.
fn generated(build: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![build.to_owned()];
    while let Some(dir) = open.pop() {
        let unity = dir.file_name().is_some_and(|n| n == "Unity");
        for entry in dir.read_dir().into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if unity && kind.is_file() => {
                    let path = entry.path();
                    if path.extension().is_some_and(|e| e == "cxx" || e == "c") {
                        found.push(path);
                    }
                }
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_of_the_tree_become_relative() {
        let text = "/* x */\n#include \"/s/llama/src/a.cpp\"\n#include \"/s/llama2/b.cpp\"\n";
        let path = Path::new("/s/llama/build/src/Unity/u.cxx");
        let want = "/* x */\n#include \"../../../src/a.cpp\"\n#include \"/s/llama2/b.cpp\"\n";
        assert_eq!(relative(text, Path::new("/s/llama"), path).as_deref(), Some(want));
        assert_eq!(relative(want, Path::new("/s/llama"), path), None);
    }
}
