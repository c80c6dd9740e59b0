//! One inference: route, prove, bound, retry, fall back. Standard output is the answer alone.

mod answer;
mod attempt;
mod chain;
mod command;
mod failure;
mod history;
mod key;
mod memory;
mod model;
mod programs;
mod prompt;
mod speed;
mod template;

use std::ffi::OsString;
use std::process::ExitCode;

use contract::cli::Arg;
use contract::exit::{self, guard};
use contract::message::{note, quoted};
use contract::{Args, Code, Error, Guard, cli, mode, verdict};
use models::budget::MOST_TOKENS;
use models::routing::Route;
use models::{Manifest, routing};

use crate::attempt::Question;
use crate::chain::Chain;
use crate::history::Call;
use crate::programs::Programs;
use crate::prompt::Prompt;

fn main() -> ExitCode {
    contract::run::<Guard>(include_str!("help.txt"), go)
}

fn go(args: &mut Args) -> Result<Code, cli::Stop> {
    let asked = read(args)?;
    let fix = mode::fix()?;
    let tokens = count(&asked.tokens)?;
    // An answer that nobody can receive is not worth minutes.
    verdict::print(b"")?;
    let manifest = Manifest::load()?;
    let role = asked.role.into_string().map_err(|r| unknown_role(&r, &manifest))?;
    if role != routing::AUTO && manifest.role(&role).is_none() {
        return Err(unknown_role(role.as_ref(), &manifest).into());
    }
    let prompt = Prompt::take(asked.prompt)?;
    let route = routing::route(&role, &prompt.text, tokens);
    if asked.key {
        return Ok(print_key(&prompt, &route, &manifest)?);
    }
    if route.tokens < tokens {
        note(args.tool(), &format!("a short question: {} tokens instead of {tokens}", route.tokens));
    }
    let mut call = Call::begin(&role, route.tokens);
    let ended = answer(args.tool(), &prompt, &route, &manifest, &mut call);
    if let Some(fix) = fix {
        call.record(&fix, args.tool(), ended.as_ref().map_or_else(|error| error.code, |code| *code));
    }
    Ok(ended?)
}

fn print_key(prompt: &Prompt, route: &Route, manifest: &Manifest) -> Result<Code, Error> {
    let model = manifest.role(&route.role).ok_or_else(|| {
        Error::new(guard::MODEL, format!("no usable model: the manifest has no role {}", route.role))
    })?;
    let key = key::of(&prompt.text, route, model, &programs::place()?)?;
    verdict::print(format!("{}\n", key.hex()).as_bytes())?;
    Ok(exit::OK)
}

/// Prints the answer; says in `call` how it went.
fn answer(
    tool: &str,
    prompt: &Prompt,
    route: &Route,
    manifest: &Manifest,
    call: &mut Call,
) -> Result<Code, Error> {
    let programs = Programs::find()?;
    if !prompt.public && !programs.full.as_ref().is_some_and(|full| full.has("-f")) {
        let cause = "this engine takes a prompt on its command line alone, where everybody could read it";
        return Err(Error::new(guard::BINARY, cause).hint("SELFHEAL_MODE=fix llama-rebuild"));
    }
    let candidates = routing::candidates(manifest, &call.asked, &route.role);
    let question = Question { programs: &programs, prompt, tokens: route.tokens };
    let mut chain = Chain::new(tool, question, candidates);
    let answer = chain.answer();
    call.verdict = chain.last;
    let answer = answer?;
    let role = &answer.by.model.role;
    call.answered = Some(role.clone());
    call.speed = answer.text.speed;
    call.verdict = "output";
    let mut text = answer.text.text;
    text.push(b'\n');
    verdict::print(&text)?;
    call.verdict = "ok";
    let other = (*role != route.role).then(|| format!("{role} answered instead of {}", route.role));
    let doubt = answer.by.degraded.map(|why| format!("{role}: {why}"));
    for why in [other, doubt].into_iter().flatten() {
        note(tool, &format!("degraded: {why}"));
        call.verdict = "degraded";
    }
    Ok(if call.verdict == "ok" { exit::OK } else { guard::DEGRADED })
}

/// The command line as it stands.
struct Asked {
    key: bool,
    prompt: OsString,
    role: OsString,
    tokens: OsString,
}

fn read(args: &mut Args) -> Result<Asked, cli::Stop> {
    let mut operands = Vec::new();
    let mut key = false;
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("key") => key = true,
            Arg::Value(value) if operands.len() < 3 => operands.push(value),
            other => return Err(cli::unknown(other)),
        }
    }
    match <[OsString; 3]>::try_from(operands) {
        Ok([prompt, role, tokens]) => Ok(Asked { key, prompt, role, tokens }),
        Err(operands) => {
            let missing = ["PROMPT", "ROLE", "N"][operands.len()];
            Err(Error::usage(format!("{missing} is missing")).hint("run-guarded \"PROMPT\" auto 64").into())
        }
    }
}

fn count(text: &OsString) -> Result<u32, Error> {
    text.to_str()
        .filter(|t| t.bytes().all(|b| b.is_ascii_digit()))
        .and_then(|t| t.parse().ok())
        .filter(|n| (1..=MOST_TOKENS).contains(n))
        .ok_or_else(|| Error::usage(format!("N is {}, not a count from 1 to {MOST_TOKENS}", quoted(text))))
}

fn unknown_role(role: &std::ffi::OsStr, manifest: &Manifest) -> Error {
    Error::usage(format!("no role {}", quoted(role))).hint(format!("auto, {}", manifest.role_names()))
}
