//! cmake's second step: compile, bounded in time and in silence, with per cent on standard error.

use std::time::Duration;

use child::{Cause, NotStarted, Outcome};
use contract::State;

use crate::configure::{Build, Recipe};
use crate::halt::{Halt, say};
use crate::log::Log;
use crate::machine;

/// The largest source file compiles for about two minutes on loaded cores; a compiler silent for longer hangs.
const SILENCE: Duration = Duration::from_secs(900);

/// Builds the programs.
pub(crate) fn compile(recipe: &Recipe, build: &Build, jobs: usize) -> Result<(), Halt> {
    let cache = recipe.cache.map_or_else(
        || "no ccache: a first build costs about 1,000 CPU seconds".to_owned(),
        |cache| format!("with {}", cache.name),
    );
    say(&format!("compiling {}, {jobs} at once, {cache}", build.targets.join(" ")));
    recipe.log.begin();
    let left = recipe.deadline.left();
    let mut run = recipe
        .cmake()
        .arg("--build")
        .arg(&build.dir)
        .arg("-j")
        .arg(jobs.to_string())
        .arg("--target")
        .args(&build.targets)
        .limit(left);
    if SILENCE < left {
        run = run.idle(SILENCE);
    }
    let outcome = run.run();
    if let Some(cache) = recipe.cache {
        cache.finish();
    }
    ended(&outcome, recipe.log, "compiling")
}

/// Turns the end of a cmake run into a verdict when it is not a good one. What is compiled stays for the next run.
pub(crate) fn ended(outcome: &Outcome, log: &Log, what: &str) -> Result<(), Halt> {
    let seconds = outcome.wall.as_secs();
    let stopped =
        |why: String| Err(Halt::new(State::Failed, why).hint("run it again: what is compiled is kept"));
    match &outcome.cause {
        Cause::Exited(0) => Ok(()),
        Cause::Expired => stopped(format!("{what} was not over in time ({seconds} s)")),
        Cause::Idle => stopped(format!("{what} hung: it said nothing for {} min", SILENCE.as_secs() / 60)),
        Cause::Interrupted(signal) => Err(machine::stopped(*signal)),
        Cause::Signalled(signal) => stopped(format!("{what} died of signal {signal}")),
        Cause::NotStarted(NotStarted::NotFound) => {
            Err(Halt::new(State::Missing, "cmake is gone").hint("install cmake"))
        }
        Cause::NotStarted(NotStarted::NotRunnable(cause)) => Err(Halt::new(
            State::Failed,
            format!("cmake cannot be run: {}", contract::message::cause_of(cause)),
        )),
        Cause::Exited(_) | Cause::OutputCap => Err(log.failure(what)),
    }
}
