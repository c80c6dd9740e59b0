//! Where an engine is: kept for this CPU, kept portable, the build directory, `PATH`.

use std::path::{Path, PathBuf};

use contract::{Error, exit, home};

use crate::cpu::cpu;
use crate::health::{Health, health};
use crate::stamp::Stamp;

/// The programs of a kept engine; the first is the one that answers.
pub const PROGRAMS: [&str; 4] = ["llama-completion", "llama-simple", "llama-simple-chat", "llama-bench"];

/// Programs that make a directory an engine, best first: an old source tree has no `llama-completion`.
const ANSWERING: [&str; 3] = ["llama-completion", "llama-cli", "llama-simple"];

/// The file name of the build stamp.
pub const STAMP: &str = "stamp";

/// What kind of place an engine was found in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// `$SELFHEAL_HOME/engine/<cpu>/`.
    Kept,
    /// `$SELFHEAL_LLAMA_DIR/build/bin`.
    Build,
    /// A directory of `PATH`.
    Path,
}

/// A directory with at least one program that answers, healthy or not.
#[derive(Clone, Debug)]
pub struct Engine {
    /// The directory.
    pub dir: PathBuf,
    /// What kind of place it is.
    pub place: Place,
    /// What was recorded when it was built; nothing is known of an engine somebody else built.
    pub stamp: Option<Stamp>,
}

impl Engine {
    /// The program's path when a regular file of that name is there, even empty or without its x bit.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        Some(self.dir.join(name)).filter(|p| p.is_file())
    }

    /// The program that answers, the best there is.
    pub fn answering(&self) -> Option<PathBuf> {
        ANSWERING.iter().find_map(|name| self.program(name))
    }

    /// The health of the program that answers.
    pub fn health(&self) -> Health {
        self.answering().map_or(Health::Missing, |program| health(&program, self.stamp.as_ref()))
    }

    /// The engine in a directory; `None` when none of its programs answers.
    pub fn in_dir(dir: PathBuf, place: Place) -> Option<Self> {
        let mut engine = Self { dir, place, stamp: None };
        engine.answering()?;
        engine.stamp = match place {
            Place::Kept => Stamp::read(&engine.dir.join(STAMP)),
            // beside `bin`, where no program of the build puts anything
            Place::Build => engine.dir.parent().and_then(|build| Stamp::read(&build.join(STAMP))),
            Place::Path => None,
        };
        Some(engine)
    }
}

/// `$SELFHEAL_HOME/engine`.
pub fn kept_dir() -> Result<PathBuf, Error> {
    Ok(home::selfheal_home()?.join("engine"))
}

/// The first place that has an engine, even a damaged one. When there is none for this CPU but one is kept for
/// another, that one is returned so that it can be named; its health is [`Health::OtherCpu`].
pub fn find() -> Result<Option<Engine>, Error> {
    let kept = kept_dir()?;
    let cpu = cpu();
    let mut places = vec![(kept.join(&cpu.id), Place::Kept), (kept.join(cpu.portable_id()), Place::Kept)];
    match home::llama_dir() {
        Ok(dir) => places.push((dir.join("build/bin"), Place::Build)),
        Err(error) if error.code == exit::USAGE => return Err(error),
        // Without a home there may be an engine elsewhere.
        Err(_) => (),
    }
    places.extend(home::path_dirs().into_iter().map(|d| (d, Place::Path)));
    Ok(places
        .into_iter()
        .find_map(|(dir, place)| Engine::in_dir(dir, place))
        .or_else(|| of_another_cpu(&kept)))
}

fn of_another_cpu(kept: &Path) -> Option<Engine> {
    let mut dirs: Vec<_> = std::fs::read_dir(kept).ok()?.flatten().map(|e| e.path()).collect();
    dirs.sort_unstable();
    // Moved-aside and temporary directories are recognised by their dot.
    dirs.retain(|d| !d.file_name().is_some_and(|n| n.to_string_lossy().contains('.')));
    dirs.into_iter().filter_map(|d| Engine::in_dir(d, Place::Kept)).find(|e| e.stamp.is_some())
}
