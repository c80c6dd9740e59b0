//! The whole way: look, decide, and with consent lock, bring the source, build, install.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use contract::clock::Deadline;
use contract::{Fix, State, exit, mode};
use models::Manifest;

use crate::condition::{self, Condition};
use crate::configure::Recipe;
use crate::halt::{Halt, io, say};
use crate::log::Log;
use crate::source::{self, Plan};
use crate::{cache, compile, install, machine};

/// What the caller wants.
pub(crate) struct Wish {
    /// Build even when the engine is healthy.
    pub(crate) force: bool,
    /// Build for any CPU of the architecture.
    pub(crate) portable: bool,
    /// Build the tree of this pinned archive.
    pub(crate) archive: Option<PathBuf>,
    /// Keep the compiler cache here.
    pub(crate) ccache: Option<PathBuf>,
    /// Compilers at once.
    pub(crate) jobs: Option<usize>,
    /// The bound on everything.
    pub(crate) limit: Duration,
}

/// What is so of the engine afterwards.
pub(crate) type Said = (State, String);

/// Rebuilds the engine if it needs it; without consent only says what would be done.
pub(crate) fn rebuild(wish: &Wish, fix: Option<&Fix>) -> Result<Said, Halt> {
    let deadline = Deadline::after(wish.limit);
    let condition = condition::look(wish.portable)?;
    if is_settled(wish, &condition) {
        return Ok((condition.state, condition.words));
    }
    let Some(fix) = fix else { return would(wish, &condition) };
    let kept = engine::kept_dir()?;
    files::atomic::make_dir(fix, &kept).map_err(io("make", &kept))?;
    let _lock = match files::lock::exclusive(&kept, Duration::ZERO) {
        Err(error) if error.code == exit::BUSY => {
            say("another llama-rebuild is at work; waiting for it");
            files::lock::exclusive(&kept, deadline.left())?
        }
        taken => taken?,
    };
    // The other one may have done it.
    let condition = condition::look(wish.portable)?;
    if is_settled(wish, &condition) {
        return Ok((condition.state, condition.words));
    }
    install::sweep(fix, &kept, ".");
    install::sweep(fix, &kept.join("source"), ".");
    let result = match heal_bits(wish, fix, &condition)? {
        Some(said) => return Ok(said),
        None => build_anew(wish, fix, deadline),
    };
    if let Err(Halt::Verdict { detail, .. }) = &result {
        contract::log::event(fix, "llama-rebuild", "rebuild-failed", detail);
    }
    result
}

/// Whether nothing is to be done: the engine is healthy, or it could not be checked and so is not touched.
fn is_settled(wish: &Wish, condition: &Condition) -> bool {
    condition.state == State::Unknown || (condition.is_good() && !wish.force)
}

/// Lost x bits are given back: the bytes are proven, and compiling them again would prove no more.
fn heal_bits(wish: &Wish, fix: &Fix, condition: &Condition) -> Result<Option<Said>, Halt> {
    if condition.stripped.is_empty() || wish.force {
        return Ok(None);
    }
    install::unstrip(fix, &condition.stripped)?;
    let after = condition::look(wish.portable)?;
    if !after.is_good() {
        return Ok(None);
    }
    contract::log::event(fix, "llama-rebuild", "execute-bits", &condition.words);
    Ok(Some((State::Healed, format!("execute bits given back; {}", after.words))))
}

fn would(wish: &Wish, condition: &Condition) -> Result<Said, Halt> {
    if !condition.stripped.is_empty() && !wish.force {
        mode::would("give the engine's programs their execute bits back");
        return Ok((State::Would, condition.words.clone()));
    }
    machine::toolchain()?;
    let manifest = Manifest::load()?;
    let plan = source::plan(wish.archive.as_deref(), &manifest)?;
    let from = plan.words(&manifest);
    mode::would(&format!("rebuild the engine from {from}"));
    Ok((State::Would, format!("{}; would be rebuilt from {from}", condition.words)))
}

fn build_anew(wish: &Wish, fix: &Fix, deadline: Deadline) -> Result<Said, Halt> {
    let began = Instant::now();
    let tools = machine::toolchain()?;
    let manifest = Manifest::load()?;
    let plan = source::plan(wish.archive.as_deref(), &manifest)?;
    let brought = !matches!(plan, Plan::Use(_));
    let source = source::bring(fix, plan, &manifest, deadline)?;
    if deadline.over() {
        return Err(Halt::new(State::Failed, "bringing the source took all the time there was")
            .hint("run it again: the source is kept"));
    }
    let cpu = engine::cpu();
    let id = if wish.portable { cpu.portable_id() } else { cpu.id };
    let log = Log::open(fix, &engine::kept_dir()?.join("build.log"))?;
    let cache = cache::prepare(fix, wish.ccache.as_deref(), &id, &source.dir)?;
    let recipe = Recipe {
        source: &source,
        id,
        portable: wish.portable,
        tools: &tools,
        cache: cache.as_ref(),
        log: &log,
        deadline,
    };
    let built = recipe.configure(fix)?;
    compile::compile(&recipe, &built, wish.jobs.unwrap_or_else(machine::jobs))?;
    let version = install::install(fix, &built)?;
    if wish.portable {
        install::step_aside(fix)?;
    }
    // What lies on the disk now is what counts.
    let after = condition::look(wish.portable)?;
    if !after.is_good() {
        let words = format!("rebuilt, and still {}: {}", after.state.word(), after.words);
        return Err(Halt::new(State::Failed, words));
    }
    let seconds = began.elapsed().as_secs();
    let kind = if wish.portable { "portable" } else { "native" };
    let what = format!("version {version}, {kind}, built from {} in {seconds} s", source.tree);
    contract::log::event(fix, "llama-rebuild", "rebuild", &what);
    let source_too = if brought { ", source brought anew" } else { "" };
    Ok((State::Healed, format!("{what}{source_too}")))
}
