//! One bounded run of the engine, judged: an answer or the one cause why there is none.

use std::path::PathBuf;
use std::time::Duration;

use child::{Cause, NotStarted, Outcome, Run, Sink};
use contract::Error;
use engine::Health;

use crate::answer::{self, NoAnswer};
use crate::command::{self, Step, Style};
use crate::failure::{self, Failure};
use crate::memory;
use crate::model::Ready;
use crate::programs::Programs;
use crate::prompt::Prompt;
use crate::template::Thoughts;

/// What the engine may print beside four times the prompt: `llama-simple` alone logs 240 kB.
const OUTPUT: u64 = 4 << 20;
/// Bytes of the log that are kept: its end holds the sign of a complete run and the last error.
const LOG: usize = 64 << 10;
/// Between TERM and KILL.
const GRACE: Duration = Duration::from_secs(5);

/// What the engine says when an allocation failed, before it ends or aborts.
const STARVED: [&str; 4] =
    ["bad_alloc", "failed to allocate", "Cannot allocate memory", "GGML_ASSERT(ctx->mem_buffer != NULL)"];

const SIGILL: i32 = 4;
const SIGKILL: i32 = 9;

/// What is the same in every run of one call.
pub(crate) struct Question<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) prompt: &'a Prompt,
    pub(crate) tokens: u32,
}

/// The program of a step, and how its output reads.
struct Program {
    path: PathBuf,
    simple: bool,
    /// Whether the prompt comes back before the answer.
    echoes: bool,
    thoughts: Thoughts,
}

/// Runs a model once. The outer error is ours (no memory for the prompt), the inner one the run's.
pub(crate) fn run(
    question: &Question<'_>,
    ready: &Ready<'_>,
    step: &Step,
    limit: Duration,
) -> Result<Result<Vec<u8>, Failure>, Error> {
    let (program, line) = program(question, ready, step)?;
    let cap = OUTPUT + 4 * question.prompt.text.len() as u64;
    let kept = usize::try_from(cap).unwrap_or(usize::MAX);
    let kills = memory::kills();
    let outcome = line.run(|run: Run| {
        run.stdout(Sink::Head(kept)).stderr(Sink::Tail(LOG)).limit(limit).grace(GRACE).max_output(cap)
    });
    let why = why(&outcome, limit, || memory::kills() > kills);
    Ok(match why {
        None => judge(&outcome, &program, question.prompt),
        Some(Why::Failure(failure)) => Err(failure),
        Some(Why::Engine(health)) => Err(Failure::Engine { health, program: program.path }),
        // What a shell or a loader says of a program it cannot start: it is looked at again to be sure.
        Some(Why::Loader(status)) => match question.programs.health(&program.path) {
            health if health.is_healthy() => {
                Err(Failure::Status(status, failure::last_words(&outcome.stderr)))
            }
            health => Err(Failure::Engine { health, program: program.path }),
        },
    })
}

/// Why a run did not end 0.
enum Why {
    Failure(Failure),
    Engine(Health),
    Loader(u8),
}

/// The program and its command line.
fn program(
    question: &Question<'_>,
    ready: &Ready<'_>,
    step: &Step,
) -> Result<(Program, command::Line), Error> {
    let Question { programs, prompt, tokens } = question;
    // A prompt from standard input is not shown to everybody in the list of processes.
    let simple = if step.minimal && prompt.public { programs.simple() } else { None };
    match (simple, &programs.full) {
        (None, Some(full)) => {
            let raw = step.style == Style::Raw;
            let hidden = !step.minimal && full.has("--no-display-prompt");
            let thoughts = command::thoughts(step.style, ready);
            let program =
                Program { path: full.path.clone(), simple: false, echoes: raw && !hidden, thoughts };
            Ok((program, command::full(full, ready, prompt, *tokens, step)?))
        }
        (path, _) => {
            let path = path.or(programs.simple()).unwrap_or("llama-simple".as_ref()).to_owned();
            let line = command::simple(&path, ready, prompt, *tokens);
            Ok((Program { path, simple: true, echoes: true, thoughts: Thoughts::Unexpected }, line))
        }
    }
}

/// Why a run did not end 0; `None` when it did.
fn why(outcome: &Outcome, limit: Duration, out_of_memory: impl Fn() -> bool) -> Option<Why> {
    let status = match &outcome.cause {
        Cause::Exited(0) => return None,
        Cause::Exited(status) => *status,
        Cause::Signalled(signal) => 128 + u8::try_from(*signal).unwrap_or(0),
        Cause::Interrupted(signal) => return Some(Why::Failure(Failure::Interrupted(*signal))),
        Cause::Expired | Cause::Idle => {
            let begun = !outcome.stdout.trim_ascii().is_empty();
            return Some(Why::Failure(Failure::Expired { limit, begun }));
        }
        Cause::OutputCap => return Some(Why::Failure(Failure::Endless(outcome.bytes))),
        Cause::NotStarted(NotStarted::NotFound) => return Some(Why::Engine(Health::Missing)),
        Cause::NotStarted(NotStarted::NotRunnable(cause)) => {
            return Some(Why::Engine(Health::NotRunnable(contract::message::cause_of(cause))));
        }
    };
    let log = String::from_utf8_lossy(&outcome.stderr);
    let says = |words: &str| log.contains(words);
    let failure = if let Some(too_long) = failure::too_long(&log) {
        too_long
    } else if says("try using --jinja") {
        Failure::UnknownTemplate
    } else if STARVED.iter().any(|words| says(words)) {
        Failure::OutOfMemory(outcome.peak_rss)
    } else {
        match status {
            // A wrapper script hands the signal of its child on as a status.
            129..=192 => match i32::from(status) - 128 {
                SIGILL => return Some(Why::Engine(Health::IllegalInstruction)),
                SIGKILL if out_of_memory() => Failure::OutOfMemory(outcome.peak_rss),
                SIGKILL => Failure::Killed(outcome.peak_rss),
                signal => Failure::Crashed(signal),
            },
            126 | 127 => return Some(Why::Loader(status)),
            _ => match failure::question(&outcome.stdout, &outcome.stderr) {
                Some(question) => Failure::Asks(question),
                None => Failure::Status(status, failure::last_words(&outcome.stderr)),
            },
        }
    };
    Some(Why::Failure(failure))
}

/// The answer in the output of a run that ended 0.
fn judge(outcome: &Outcome, program: &Program, prompt: &Prompt) -> Result<Vec<u8>, Failure> {
    let log = String::from_utf8_lossy(&outcome.stderr);
    let text = if program.simple {
        let done = log.contains(" tokens in ") && log.contains("perf_context_print:");
        outcome.stdout.strip_suffix(b"\n").filter(|_| done)
    } else {
        // Trees before today's print the same figures under the library's name.
        let done = log.contains("common_perf_print:") || log.contains("perf_context_print:");
        answer::without_end(&outcome.stdout).filter(|_| done)
    };
    let mut text = text.ok_or(Failure::Lost)?;
    if program.echoes {
        text = answer::without_echo(text, &prompt.text).map_err(Failure::NoAnswer)?;
        if text.trim_ascii().is_empty() {
            return Err(Failure::NoAnswer(NoAnswer::Echo));
        }
    }
    answer::judge(text, &prompt.text, program.thoughts).map(<[u8]>::to_vec).map_err(Failure::NoAnswer)
}
