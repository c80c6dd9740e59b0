//! Under the name `timeout`: GNU's options, numbers, standard input and background children.

use std::ffi::OsString;
use std::time::Duration;

use child::{Cause, NotStarted, Outcome, Run, Stdin, Terminal, die_of, signal_name};
use contract::cli::{self, Arg, Stop};
use contract::exit::gnu;
use contract::message::{cause_of, note, quoted};
use contract::{Args, Code, Error, exit};

use crate::bounded::{duration, not_runnable, signal};

const NAME: &str = "timeout";
const LONG: [&str; 7] =
    ["foreground", "help", "kill-after", "preserve-status", "signal", "verbose", "version"];

struct Line {
    run: Run,
    program: OsString,
    preserve: bool,
}

/// Runs the command line; every failure of its own is 125.
pub(crate) fn go(args: &mut Args) -> Result<Code, Stop> {
    match parse(args) {
        Ok(line) => {
            let outcome = line.run.run();
            Ok(code(&line.program, line.preserve, &outcome))
        }
        Err(Stop::Error(error)) => Ok(failed(&error.hint("timeout --help"))),
        Err(other) => Err(other),
    }
}

/// Prints an error under this name.
fn failed(error: &Error) -> Code {
    use std::io::Write as _;
    let _ = std::io::stderr().write_all(error.render(NAME).as_bytes());
    match error.code {
        exit::USAGE | exit::IO => gnu::FAILED,
        code => code,
    }
}

fn parse(args: &mut Args) -> Result<Line, Stop> {
    let (mut grace, mut stop, mut limit) = (Duration::ZERO, None, None);
    let (mut foreground, mut preserve, mut verbose) = (false, false, false);
    while let Some(arg) = args.next()? {
        let short = match arg {
            Arg::Short(c) => c,
            Arg::Long(name) => full(name)?,
            Arg::Value(text) => {
                limit = Some(duration(&text)?);
                break;
            }
        };
        match short {
            'k' => grace = duration(&args.value()?)?,
            's' => stop = Some(signal(&args.value()?)?),
            'f' => foreground = true,
            'p' => preserve = true,
            'v' => verbose = true,
            'h' => return Err(Stop::Help),
            'V' => return Err(Stop::Version),
            other => return Err(cli::unknown(Arg::Short(other))),
        }
    }
    let mut rest = args.rest()?;
    let (Some(limit), false) = (limit, rest.is_empty()) else {
        return Err(Error::usage("a duration and a command are needed").into());
    };
    let program = rest.remove(0);
    let terminal = if foreground { Terminal::Foreground } else { Terminal::Group };
    let mut run = Run::new(&program).args(rest).limit(limit).terminal(terminal).only_leader(foreground);
    run = run.stdin(Stdin::Inherit).leave(true).patient(grace.is_zero());
    if !grace.is_zero() {
        run = run.grace(grace);
    }
    if let Some(stop) = stop {
        run = run.signal(stop);
    }
    if verbose {
        let name = quoted(&program);
        run = run.told(move |s| note(NAME, &format!("sending signal {} to command {name}", signal_name(s))));
    }
    Ok(Line { run, program, preserve })
}

/// The short form of a long option, which may be cut as far as it stays the only one, as `getopt_long` has it.
fn full(given: &str) -> Result<char, Stop> {
    let mut fit = LONG.iter().filter(|name| name.starts_with(given));
    match (fit.next(), fit.next()) {
        (Some(&"version"), None) => Ok('V'),
        (Some(name), None) => Ok(name.chars().next().unwrap_or_default()),
        (Some(_), Some(_)) => Err(Error::usage(format!("option '--{given}' is ambiguous")).into()),
        _ => Err(cli::unknown(Arg::Long(given))),
    }
}

fn code(program: &std::ffi::OsStr, preserve: bool, outcome: &Outcome) -> Code {
    if let Some(cause) = &outcome.write_error {
        note(NAME, &format!("cannot write: {}", cause_of(cause)));
        return gnu::FAILED;
    }
    let stopped = match &outcome.cause {
        Cause::NotStarted(why) => {
            let code = match why {
                NotStarted::NotFound => gnu::NOT_FOUND,
                NotStarted::NotRunnable(_) => gnu::NOT_RUNNABLE,
            };
            return failed(&not_runnable(program, why, code));
        }
        Cause::Exited(_) | Cause::Signalled(_) | Cause::Interrupted(_) => false,
        Cause::Expired | Cause::Idle | Cause::OutputCap => true,
    };
    match (outcome.died_of, outcome.status) {
        (Some(signal), Some(status)) if !stopped => {
            die_of(signal);
            Code::transparent(status)
        }
        (_, Some(status)) if !stopped || preserve => Code::transparent(status),
        (Some(signal), _) if signal_name(signal) == "KILL" => gnu::KILLED,
        _ => gnu::EXPIRED,
    }
}
