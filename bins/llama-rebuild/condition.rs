//! What is so of the engine: the programs of the first place that has any, against their stamp.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use contract::{Error, State};
use engine::{Engine, Place};

/// The engine's state and its cause.
pub(crate) struct Condition {
    /// The verdict's state.
    pub(crate) state: State,
    /// The verdict's detail.
    pub(crate) words: String,
    /// Programs of which only the x bit is lost: content and size are what was built.
    pub(crate) stripped: Vec<PathBuf>,
}

impl Condition {
    fn of(state: State, words: impl Into<String>) -> Self {
        Self { state, words: words.into(), stripped: Vec::new() }
    }

    /// Whether nothing has to be done.
    pub(crate) fn is_good(&self) -> bool {
        self.state == State::Ok
    }
}

/// Looks at the engine that would be used; with `portable`, at the portable one alone.
pub(crate) fn look(portable: bool) -> Result<Condition, Error> {
    let engine = if portable {
        Engine::in_dir(engine::kept_dir()?.join(engine::cpu().portable_id()), Place::Kept)
    } else {
        engine::find()?
    };
    Ok(match engine {
        Some(engine) => examine(&engine),
        None => Condition::of(State::Missing, "there is no engine"),
    })
}

fn examine(engine: &Engine) -> Condition {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let altered = altered(engine);
    if altered.is_none() {
        // Every recorded byte is right; if bits are lost, that is all that is lost.
        let stripped = recorded(engine).filter(|(path, _)| !is_executable(path));
        let stripped: Vec<_> = stripped.map(|(path, _)| path).collect();
        if let Some(first) = stripped.first() {
            let words = format!("{} is not executable", name(first));
            return Condition { state: State::Stripped, words, stripped };
        }
    }
    let Some(program) = engine.answering() else {
        return Condition::of(State::Missing, "there is no engine");
    };
    let health = engine.health();
    if !health.is_healthy() {
        return Condition::of(health.state(), format!("{}: {}", name(&program), health.words()));
    }
    if let Some(altered) = altered {
        return altered;
    }
    if name(&program) == "llama-simple" {
        return Condition::of(State::Missing, "llama-completion is missing, there is only llama-simple");
    }
    let place = match (engine.place, &engine.stamp) {
        (Place::Kept, Some(stamp)) if stamp.portable => "portable, kept".to_owned(),
        (Place::Kept, _) => "native, kept".to_owned(),
        (Place::Build | Place::Path, _) => "found".to_owned(),
    };
    let dir = contract::message::quoted(engine.dir.as_os_str());
    Condition::of(State::Ok, format!("{}, {place} in {dir}", health.words()))
}

fn recorded(engine: &Engine) -> impl Iterator<Item = (PathBuf, &engine::stamp::Program)> {
    let programs = engine.stamp.iter().flat_map(|stamp| &stamp.programs);
    programs.map(|p| (engine.dir.join(&p.name), p))
}

fn is_executable(path: &std::path::Path) -> bool {
    path.metadata().is_ok_and(|m| m.permissions().mode() & 0o111 != 0)
}

/// The first recorded program whose bytes are not what was built, though it may still say its version.
fn altered(engine: &Engine) -> Option<Condition> {
    recorded(engine).find_map(|(path, record)| {
        let name = &record.name;
        let Ok((mut file, meta)) = files::open::regular(&path) else {
            return Some(Condition::of(State::Missing, format!("{name} is missing")));
        };
        if meta.len() < record.bytes {
            let words = format!("{name} is truncated: {} of {} bytes", meta.len(), record.bytes);
            return Some(Condition::of(State::Short, words));
        }
        let same = files::digest::of_reader(&mut file).is_ok_and(|(sha, _)| sha == record.sha256);
        (!same).then(|| Condition::of(State::Corrupt, format!("{name} has other bytes than were built")))
    })
}
