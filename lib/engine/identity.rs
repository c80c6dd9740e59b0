//! Which engine this is, as far as its answers and its speed depend on it: from stamps and `stat`, nothing is run
//! and no program is read.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use files::digest::{Hasher, Sha};
use files::open::Print;

use crate::cpu::cpu;
use crate::place::{Engine, Place};

impl Engine {
    /// A digest that differs when the CPU, the source, its options, the compiler or a program differs.
    ///
    /// Of a kept engine the stamp tells it all; when it was built does not matter. Elsewhere somebody may build
    /// again beside a stamp, or without one: there path, size and time of the program that answers and of the
    /// libraries in its directory count, too.
    pub fn identity(&self) -> Sha {
        let mut hasher = Hasher::default();
        let mut add = |name: &str, value: &[u8]| {
            hasher.update(name.as_bytes());
            hasher.update(&(value.len() as u64).to_le_bytes());
            hasher.update(value);
        };
        add("cpu", cpu().id.as_bytes());
        let program = self.answering();
        let name = program.as_deref().and_then(Path::file_name).unwrap_or_default();
        add("program", name.as_bytes());
        if let Some(stamp) = &self.stamp {
            let mut stamp = stamp.clone();
            stamp.built.clear();
            add("stamp", &stamp.line());
        }
        if self.place != Place::Kept || self.stamp.is_none() {
            for path in program.into_iter().chain(self.libraries()) {
                let Ok(meta) = path.metadata() else { continue };
                let print = Print::of(&meta);
                let real = path.canonicalize().unwrap_or(path);
                add("file", real.as_os_str().as_bytes());
                add("size", &print.size.to_le_bytes());
                add("changed", &print.mtime_ns.to_le_bytes());
            }
        }
        hasher.finish()
    }

    /// A short name for a person: the source tree and the first 12 digits of [`Engine::identity`].
    pub fn label(&self) -> String {
        let tree = self.stamp.as_ref().map_or("unstamped", |stamp| &stamp.tree);
        format!("{tree}-{}", &self.identity().hex()[..12])
    }

    /// The shared libraries that a build put beside its programs; the directories of `PATH` are too large to look
    /// through.
    fn libraries(&self) -> Vec<std::path::PathBuf> {
        if self.place == Place::Path {
            return Vec::new();
        }
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut paths: Vec<_> =
            entries.filter(|e| e.file_name().as_bytes().starts_with(b"lib")).map(|e| e.path()).collect();
        paths.sort();
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_home::Home;
    use crate::stamp::Stamp;

    #[test]
    fn another_build_is_another_engine_and_the_same_build_is_not() {
        let fix = contract::mode::by_name();
        let home = Home::new();
        let write = |name: &str, text: &str| {
            files::atomic::write(&fix, &home.path(name), text.as_bytes(), 0o755).unwrap();
        };
        write("llama-completion", "one");
        let stamp = Stamp {
            cpu: "0123456789ab".into(),
            flags: Vec::new(),
            portable: false,
            tree: "b1".into(),
            options: vec!["-DA=1".into()],
            compiler: "GNU 12".into(),
            built: "2026-11-30T00:00:00Z".into(),
            programs: Vec::new(),
        };
        let engine =
            |place, stamp: Option<&Stamp>| Engine { dir: home.dir.clone(), place, stamp: stamp.cloned() };
        let kept = engine(Place::Kept, Some(&stamp)).identity();
        let later = Stamp { built: "2027-01-01T00:00:00Z".into(), ..stamp.clone() };
        assert_eq!(engine(Place::Kept, Some(&later)).identity(), kept);
        for other in [
            Stamp { tree: "b2".into(), ..stamp.clone() },
            Stamp { options: vec!["-DA=2".into()], ..stamp.clone() },
            Stamp { compiler: "GNU 13".into(), ..stamp.clone() },
            Stamp { cpu: "ba9876543210".into(), ..stamp.clone() },
        ] {
            assert_ne!(engine(Place::Kept, Some(&other)).identity(), kept, "{other:?}");
        }
        // Beside a build anything may be built again.
        let mut seen = vec![kept, engine(Place::Build, Some(&stamp)).identity()];
        for (name, text) in [("llama-completion", "longer"), ("libllama.so", "x"), ("libllama.so", "xy")] {
            write(name, text);
            let now = engine(Place::Build, Some(&stamp)).identity();
            assert!(!seen.contains(&now), "{name} {text}");
            seen.push(now);
        }
        write("README", "x");
        assert_eq!(engine(Place::Build, Some(&stamp)).identity(), seen[seen.len() - 1]);
        assert_eq!(engine(Place::Kept, Some(&stamp)).identity(), kept);
        assert!(engine(Place::Kept, Some(&stamp)).label().starts_with("b1-"));
        assert!(engine(Place::Path, None).label().starts_with("unstamped-"));
    }
}
