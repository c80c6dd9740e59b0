//! The key of an answer: one digest over everything that changes it, from pins, stamps and `stat`. No model is
//! read and nothing is run.

use contract::Error;
use engine::Engine;
use files::digest::{Hasher, Sha};
use files::open::Print;
use models::routing::Route;
use models::{Model, pins};

use crate::command;

/// Which keys these are: raised when what goes into a key changes, so that no old one is met again.
const VERSION: u32 = 1;

/// The key of the answer that `model` gives on this engine. Prompts are told apart by their bytes.
pub(crate) fn of(prompt: &str, route: &Route, model: &Model, engine: &Engine) -> Result<Sha, Error> {
    let mut hasher = Hasher::default();
    let mut add = |name: &str, value: &[u8]| {
        hasher.update(name.as_bytes());
        hasher.update(&(value.len() as u64).to_le_bytes());
        hasher.update(value);
    };
    add("run-guarded key", &VERSION.to_le_bytes());
    add("program", env!("CARGO_PKG_VERSION").as_bytes());
    add("way", &command::WAY.to_le_bytes());
    add("sampling", command::SAMPLING.join(" ").as_bytes());
    // The template is the model's own; what is done with it goes by this flag.
    add("thinking", if model.light { b"off" } else { b"own" });
    add("role", route.role.as_bytes());
    add("tokens", &route.tokens.to_le_bytes());
    add("file", model.file.as_bytes());
    add("bytes", &model.bytes.to_le_bytes());
    match pin(model) {
        Some(sha256) => add("sha256", &sha256.0),
        // Nobody knows its digest: the file that is there is known by its size and time alone.
        None => match model.path()?.metadata() {
            Ok(meta) => {
                let print = Print::of(&meta);
                add("size", &print.size.to_le_bytes());
                add("changed", &print.mtime_ns.to_le_bytes());
            }
            Err(_) => add("absent", b""),
        },
    }
    add("engine", &engine.identity().0);
    add("prompt", prompt.as_bytes());
    Ok(hasher.finish())
}

/// The digest that the manifest pins, or the one that was measured when the file was fetched.
fn pin(model: &Model) -> Option<Sha> {
    model.sha256.or_else(|| Some(pins::find(model.repository.as_deref()?, &model.file)?.sha256))
}
