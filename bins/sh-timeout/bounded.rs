//! Under its own name: bounded input, output and time, and the contract's numbers.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use child::{Cause, NotStarted, Outcome, Run, Stdin, Terminal, die_of, signal_name, signal_number};
use contract::cli::{self, Arg, Stop};
use contract::message::{cause_of, note, quoted};
use contract::{Args, Code, Error, exit};

use crate::report::Report;

/// What the command line asks for besides the run itself.
struct Line {
    run: Run,
    program: OsString,
    limit: Duration,
    preserve: bool,
    report: Option<PathBuf>,
    counted: bool,
}

/// Runs the command line.
pub(crate) fn go(args: &mut Args) -> Result<Code, Stop> {
    let tool = args.tool();
    let line = parse(args)?;
    // Before anything is started: a run whose report cannot be kept is not made.
    let report = line.report.as_deref().map(Report::begin).transpose()?;
    let outcome = line.run.run();
    let kept = report.map_or(Ok(()), |report| report.write(&outcome, line.counted));
    let code = code(tool, &line.program, line.limit, line.preserve, &outcome)?;
    kept?;
    match (&outcome.cause, outcome.died_of) {
        (Cause::Interrupted(signal), Some(died)) if *signal == died => die_of(died),
        _ => {}
    }
    Ok(code)
}

/// A duration, or the usage error that names it.
pub(crate) fn duration(text: &OsStr) -> Result<Duration, Error> {
    cli::duration(text).ok_or_else(|| Error::usage(format!("invalid duration {}", quoted(text))))
}

/// A signal, or the usage error that names it.
pub(crate) fn signal(text: &OsStr) -> Result<i32, Error> {
    let number = text.to_str().and_then(signal_number);
    number.ok_or_else(|| Error::usage(format!("unknown signal {}", quoted(text))))
}

fn parse(args: &mut Args) -> Result<Line, Stop> {
    let (mut grace, mut idle, mut most) = (None, None, None);
    let (mut stop, mut report, mut limit) = (None, None, None);
    let (mut foreground, mut preserve, mut stdin, mut leave) = (false, false, false, false);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Short('k') | Arg::Long("kill-after") => grace = Some(duration(&args.value()?)?),
            Arg::Short('s') | Arg::Long("signal") => stop = Some(signal(&args.value()?)?),
            Arg::Short('f') | Arg::Long("foreground") => foreground = true,
            Arg::Short('p') | Arg::Long("preserve-status") => preserve = true,
            Arg::Long("idle") => idle = Some(bound("--idle", &args.value()?)?),
            Arg::Long("max-output") => {
                let text = args.value()?;
                let bytes = cli::bytes(&text);
                most = Some(
                    bytes
                        .ok_or_else(|| Error::usage(format!("invalid number of bytes {}", quoted(&text))))?,
                );
            }
            Arg::Long("stdin") => stdin = true,
            Arg::Long("leave") => leave = true,
            Arg::Long("report") => report = Some(PathBuf::from(args.value()?)),
            Arg::Value(text) => {
                limit = Some(bound("a bound", &text)?);
                break;
            }
            other => return Err(cli::unknown(other)),
        }
    }
    let limit = limit.ok_or_else(|| Error::usage("a duration and a command are missing"))?;
    let mut rest = args.rest()?;
    if rest.first().is_some_and(|first| first == "--") {
        rest.remove(0);
    }
    if rest.is_empty() {
        return Err(Error::usage("a command is missing").into());
    }
    let program = rest.remove(0);
    let terminal = match (foreground, stdin) {
        (true, _) => Terminal::Foreground,
        (false, true) => Terminal::Group,
        (false, false) => Terminal::Detached,
    };
    let mut run = Run::new(&program).args(rest).limit(limit).leave(leave).terminal(terminal);
    // At the terminal the command may have a use for Ctrl-C.
    run = run.patient(foreground && grace.is_none());
    run = run.stdin(if stdin { Stdin::Inherit } else { Stdin::Null });
    if let Some(grace) = grace {
        run = run.grace(grace);
    }
    if let Some(stop) = stop {
        run = run.signal(stop);
    }
    if let Some(idle) = idle {
        run = run.idle(idle);
    }
    if let Some(most) = most {
        run = run.max_output(most);
    }
    Ok(Line { run, program, limit, preserve, report, counted: idle.is_some() || most.is_some() })
}

/// A duration that is a bound: zero would be none.
fn bound(what: &str, text: &OsStr) -> Result<Duration, Error> {
    let time = duration(text)?;
    if time.is_zero() {
        let none = Error::usage(format!("{what} of 0 would be no bound"));
        return Err(none.hint("the longest that is of use: 365d"));
    }
    Ok(time)
}

/// Says what happened, where the command did not end by itself, and picks the number.
fn code(
    tool: &str,
    program: &OsStr,
    limit: Duration,
    preserve: bool,
    outcome: &Outcome,
) -> Result<Code, Error> {
    let name = quoted(program);
    if let Some(cause) = &outcome.write_error {
        return Err(Error::new(exit::IO, format!("cannot write the output of {name}: {}", cause_of(cause))));
    }
    let why = match &outcome.cause {
        Cause::NotStarted(why) => return Err(not_runnable(program, why, exit::guard::BINARY)),
        Cause::Exited(_) | Cause::Signalled(_) | Cause::Interrupted(_) => None,
        Cause::Expired => Some(format!("{name} did not end within {limit:?}")),
        Cause::Idle => Some(format!("{name} wrote nothing for too long")),
        Cause::OutputCap => Some(format!("{name} wrote more than {} bytes", outcome.bytes)),
    };
    if let Some(why) = &why {
        let how = match outcome.died_of {
            Some(signal) => format!("died of {}", signal_name(signal)),
            None if outcome.status.is_none() => "cannot be killed".to_owned(),
            None => "was stopped".to_owned(),
        };
        note(tool, &format!("{why} and {how}"));
    }
    Ok(match outcome.status {
        Some(status) if why.is_none() || preserve => Code::transparent(status),
        _ => exit::guard::INFERENCE,
    })
}

/// The error for a command that could not be started.
pub(crate) fn not_runnable(program: &OsStr, why: &NotStarted, code: Code) -> Error {
    let name = quoted(program);
    match why {
        NotStarted::NotFound => Error::new(code, format!("cannot run {name}: no such file or directory"))
            .hint("command -v says what a shell would find; a script needs the interpreter it names"),
        NotStarted::NotRunnable(cause) => Error::new(code, format!("cannot run {name}: {}", cause_of(cause)))
            .hint("ls -l shows whether it is a file with its execute bit"),
    }
}
