//! The programs of the engine that answer, proven healthy before any model is looked at.

use std::path::{Path, PathBuf};
use std::time::Duration;

use child::Sink;
use contract::exit::guard;
use contract::message::quoted;
use contract::{Error, State};
use engine::{Health, Stamp};

/// `--help` answers in milliseconds; ten seconds is a machine that thrashes.
const BOUND: Duration = Duration::from_secs(10);
/// Today's help has 34 kB.
const HELP: usize = 1 << 20;

/// What can be run.
pub(crate) struct Programs {
    /// `llama-completion`, or the `llama-cli` of an old tree.
    pub(crate) full: Option<Full>,
    /// `llama-simple`: few options and never loses output. Its health is not known yet.
    simple: Option<PathBuf>,
    stamp: Option<Stamp>,
}

/// A program with options.
pub(crate) struct Full {
    /// Where it is.
    pub(crate) path: PathBuf,
    help: String,
}

impl Full {
    /// Whether `--help` lists the option, as a whole word.
    pub(crate) fn has(&self, option: &str) -> bool {
        lists(&self.help, option)
    }
}

impl Programs {
    /// Finds the engine and proves the program that answers. Every error is 4.
    pub(crate) fn find() -> Result<Self, Error> {
        let Some(engine) = engine::find()? else {
            return Err(broken("no inference engine is here".into(), &Health::Missing));
        };
        let Some(main) = engine.answering() else {
            return Err(broken("no inference engine is here".into(), &Health::Missing));
        };
        let health = engine::health(&main, engine.stamp.as_ref());
        if !health.is_healthy() {
            return Err(damaged(&health, &main));
        }
        let simple = engine.program("llama-simple");
        let mut programs = Self { full: None, simple: simple.clone(), stamp: engine.stamp };
        if simple.as_ref() == Some(&main) {
            return Ok(programs);
        }
        let help = help(&main);
        if usable(&main, &help) {
            programs.full = Some(Full { path: main, help });
        } else if programs.simple().is_none() {
            let cause = format!(
                "unknown engine: the help of {} lists no options we can use",
                quoted(main.as_os_str())
            );
            return Err(broken(cause, &Health::NoVersion));
        }
        Ok(programs)
    }

    /// `llama-simple` when it is there and healthy; otherwise it is as if it were not there.
    pub(crate) fn simple(&self) -> Option<&Path> {
        self.simple.as_deref().filter(|path| self.health(path).is_healthy())
    }

    /// Looks at a program again, after a run that ended as a damaged program's does.
    pub(crate) fn health(&self, program: &Path) -> Health {
        engine::health(program, self.stamp.as_ref())
    }
}

/// The error for a damaged program: 4, the cause first, no model blamed.
pub(crate) fn damaged(health: &Health, program: &Path) -> Error {
    broken(format!("{}: {}", health.words(), quoted(program.as_os_str())), health)
}

fn broken(message: String, health: &Health) -> Error {
    let error = Error::new(guard::BINARY, message);
    match health.state() {
        State::Stripped => error.hint("chmod +x the engine's programs, or SELFHEAL_MODE=fix llama-rebuild"),
        State::Bad => error.hint("SELFHEAL_MODE=fix llama-rebuild, or with --portable for any CPU"),
        _ => error.hint("SELFHEAL_MODE=fix llama-rebuild"),
    }
}

/// What `--help` prints; nothing when it cannot be had.
fn help(program: &Path) -> String {
    let outcome = engine::unswayed(program)
        .arg("--help")
        .stdout(Sink::Head(HELP))
        .stderr(Sink::Null)
        .limit(BOUND)
        .grace(Duration::from_secs(1))
        .max_output(HELP as u64)
        .run();
    if outcome.success() { String::from_utf8_lossy(&outcome.stdout).into_owned() } else { String::new() }
}

fn lists(help: &str, option: &str) -> bool {
    help.split([' ', ',', '\t', '\n', '\r']).any(|word| word == option)
}

/// A prompt, a count and a bound of the context must be possible, and no conversation: today's `llama-cli` can do
/// nothing else and has no option for conversations any more.
fn usable(program: &Path, help: &str) -> bool {
    let has = |option: &str| lists(help, option);
    let chat_only = program.ends_with("llama-cli") && !has("-cnv");
    ["-m", "-n", "-c"].into_iter().all(has) && (has("-f") || has("-p")) && !chat_only
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "-m,    --model FNAME   model path\n-n,    --predict, --n-predict N\n-c, --ctx-size N\n\
                        -f,    --file FNAME\n-cnv,  --conversation, -no-cnv, --no-conversation\n\
                        --warmup, --no-warmup      whether --temporary things\n";

    #[test]
    fn options_are_whole_words() {
        for there in ["-m", "-n", "--n-predict", "-cnv", "-no-cnv", "--no-warmup"] {
            assert!(lists(HELP, there), "{there}");
        }
        for absent in ["-t", "--temp", "--no", "-p", "--file,"] {
            assert!(!lists(HELP, absent), "{absent}");
        }
    }

    #[test]
    fn a_program_that_only_converses_is_not_used() {
        let without = |what: &str| HELP.replace(what, "-x");
        assert!(usable("/e/llama-completion".as_ref(), HELP));
        assert!(usable("/e/llama-cli".as_ref(), HELP));
        assert!(!usable("/e/llama-cli".as_ref(), &without("-cnv")));
        assert!(usable("/e/llama-completion".as_ref(), &without("-cnv")));
        assert!(!usable("/e/llama-completion".as_ref(), &without("-n,")));
        assert!(!usable("/e/llama-completion".as_ref(), &without("-f,")));
        assert!(!usable("/e/llama-completion".as_ref(), ""));
    }
}
