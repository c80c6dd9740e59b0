//! One inference: route, prove, bound, retry, fall back. Standard output is the answer alone.

mod answer;
mod attempt;
mod chain;
mod command;
mod failure;
mod memory;
mod model;
mod programs;
mod prompt;
mod template;

use std::ffi::OsString;
use std::process::ExitCode;

use contract::cli::Arg;
use contract::exit::{self, guard};
use contract::message::{note, quoted};
use contract::{Args, Code, Error, Guard, cli, verdict};
use models::{Manifest, routing};

use crate::attempt::Question;
use crate::chain::Chain;
use crate::programs::Programs;
use crate::prompt::Prompt;

/// The most tokens that can be asked for; every role's cap is reached before.
const MOST_TOKENS: u32 = 16_384;

fn main() -> ExitCode {
    contract::run::<Guard>(include_str!("help.txt"), go)
}

fn go(args: &mut Args) -> Result<Code, cli::Stop> {
    let (prompt, role, tokens) = operands(args)?;
    let tokens = count(&tokens)?;
    // An answer that nobody can receive is not worth minutes.
    verdict::print(b"")?;
    let manifest = Manifest::load()?;
    let role = role.into_string().map_err(|r| unknown_role(&r, &manifest))?;
    if role != routing::AUTO && manifest.role(&role).is_none() {
        return Err(unknown_role(role.as_ref(), &manifest).into());
    }
    let prompt = Prompt::take(prompt)?;
    let route = routing::route(&role, &prompt.text, tokens);
    if route.tokens < tokens {
        note(args.tool(), &format!("a short question: {} tokens instead of {tokens}", route.tokens));
    }
    let programs = Programs::find()?;
    if !prompt.public && !programs.full.as_ref().is_some_and(|full| full.has("-f")) {
        let cause = "this engine takes a prompt on its command line alone, where everybody could read it";
        return Err(Error::new(guard::BINARY, cause).hint("SELFHEAL_MODE=fix llama-rebuild").into());
    }
    let candidates = routing::candidates(&manifest, &role, &route.role);
    let question = Question { programs: &programs, prompt: &prompt, tokens: route.tokens };
    let answer = Chain::new(args.tool(), question, candidates).answer()?;
    let mut text = answer.text;
    text.push(b'\n');
    verdict::print(&text)?;
    let mut code = exit::OK;
    if answer.by.model.role != route.role {
        note(args.tool(), &format!("degraded: {} answered instead of {}", answer.by.model.role, route.role));
        code = guard::DEGRADED;
    }
    if let Some(why) = answer.by.degraded {
        note(args.tool(), &format!("degraded: {}: {why}", answer.by.model.role));
        code = guard::DEGRADED;
    }
    Ok(code)
}

fn operands(args: &mut Args) -> Result<(OsString, OsString, OsString), cli::Stop> {
    let mut operands = Vec::new();
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Value(value) if operands.len() < 3 => operands.push(value),
            other => return Err(cli::unknown(other)),
        }
    }
    match <[OsString; 3]>::try_from(operands) {
        Ok([prompt, role, tokens]) => Ok((prompt, role, tokens)),
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
