//! `breaker`: a filter of verdict lines, or a prefix, that stops repeating what keeps failing.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::process::ExitCode;
use std::time::Duration;

use contract::cli::{self, Arg, Stop};
use contract::{Args, Code, Error, Guard, message, mode};

use crate::machine::Rules;
use crate::prefix::Ask;
use crate::store::Store;

mod content;
mod filter;
mod lines;
mod machine;
mod pending;
mod prefix;
mod record;
mod report;
mod room;
mod store;
mod subject;
mod words;

/// The name in messages and in selfheal.log.
pub(crate) const TOOL: &str = "breaker";

/// What a command may take when the caller says nothing: long enough for any download, and not for ever.
const LIMIT: Duration = Duration::from_secs(86_400);

/// The command line, read.
struct Asked {
    operands: Vec<OsString>,
    rules: Rules,
    verdicts: bool,
    json: bool,
    limit: Option<Duration>,
}

fn main() -> ExitCode {
    contract::run::<Guard>(include_str!("help.txt"), go)
}

fn go(args: &mut Args) -> Result<Code, Stop> {
    let command = args.command()?;
    let asked = read(args)?;
    let fix = mode::fix()?;
    let fix = fix.as_ref();
    let store = Store::at_home();
    if let Some(command) = command {
        let ask = prefix(asked, command)?;
        return Ok(prefix::run(&store?, fix, &ask)?);
    }
    if asked.verdicts || asked.limit.is_some() {
        return Err(Error::usage("--verdicts and --limit are for a command")
            .hint("breaker --verdicts SUBJECT -- COMMAND")
            .into());
    }
    let Asked { operands, rules, json, .. } = asked;
    let mut operands = operands.into_iter();
    let verb = operands.next();
    let subject = operands.next().map(checked).transpose()?;
    if let Some(more) = operands.next() {
        return Err(cli::unknown(Arg::Value(more)));
    }
    match (verb.as_deref().map(OsStr::as_encoded_bytes), subject) {
        (None, _) => filter::run(store, fix, rules, json),
        (Some(b"status"), subject) => Ok(report::status(&store?, subject.as_deref(), rules, json)?),
        (Some(b"reset"), Some(subject)) => Ok(report::reset(&store?, fix, &subject, rules, json)?),
        (Some(b"reset"), None) => {
            Err(Error::usage("no subject to reset").hint("breaker status lists them").into())
        }
        _ => {
            let name = message::quoted(&verb.unwrap_or_default());
            Err(Error::usage(format!("no command for {name}")).hint("breaker SUBJECT -- COMMAND").into())
        }
    }
}

fn read(args: &mut Args) -> Result<Asked, Stop> {
    let mut asked =
        Asked { operands: Vec::new(), rules: Rules::default(), verdicts: false, json: false, limit: None };
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("verdicts") => asked.verdicts = true,
            Arg::Long("json") => asked.json = true,
            Arg::Long("failures") => {
                let text = args.text()?;
                let count = text.parse().ok().filter(|n| (1..=1000).contains(n));
                asked.rules.failures =
                    count.ok_or_else(|| Error::usage(format!("--failures is '{text}', not 1 to 1000")))?;
            }
            Arg::Long("cooldown") => {
                let span = duration(args, "cooldown", record::LONGEST_COOLDOWN.into())?;
                let whole = span.as_secs() + u64::from(span.subsec_nanos() > 0);
                asked.rules.cooldown = u32::try_from(whole).unwrap_or(record::LONGEST_COOLDOWN);
            }
            Arg::Long("limit") => asked.limit = Some(duration(args, "limit", u64::MAX)?),
            Arg::Value(operand) => asked.operands.push(operand),
            other => return Err(cli::unknown(other)),
        }
    }
    Ok(asked)
}

/// The value of an option that is a duration: longer than nothing, at most so many seconds.
fn duration(args: &mut Args, option: &str, most: u64) -> Result<Duration, Stop> {
    let value = args.value()?;
    cli::duration(&value).filter(|d| !d.is_zero() && *d <= Duration::from_secs(most)).ok_or_else(|| {
        let most =
            if most == u64::MAX { String::new() } else { format!(" of at most {}", words::span(most)) };
        Error::usage(format!("--{option} is {}, not a duration{most}", message::quoted(&value)))
            .hint("a number above 0, with s, m, h or d: 90, 1.5h")
            .into()
    })
}

fn prefix(asked: Asked, command: Vec<OsString>) -> Result<Ask, Error> {
    let mut operands = asked.operands.into_iter();
    let subject = match (operands.next(), operands.next()) {
        (Some(subject), None) => checked(subject)?,
        (None, _) => return Err(Error::usage("no subject before '--'").hint("breaker SUBJECT -- COMMAND")),
        (_, Some(more)) => {
            let more = message::quoted(&more);
            return Err(Error::usage(format!("unexpected argument {more} before '--'"))
                .hint("breaker SUBJECT -- COMMAND"));
        }
    };
    if asked.json {
        return Err(Error::usage("--json changes nothing for a command").hint("breaker status --json"));
    }
    if command.is_empty() {
        return Err(Error::usage("no command behind '--'").hint("breaker SUBJECT -- COMMAND"));
    }
    let limit = asked.limit.unwrap_or(LIMIT);
    Ok(Ask { subject, command, rules: asked.rules, verdicts: asked.verdicts, limit })
}

/// A subject that can have a breaker.
fn checked(subject: OsString) -> Result<Vec<u8>, Error> {
    let subject = subject.into_vec();
    match subject.len() {
        0 => Err(Error::usage("the subject is empty")),
        1..=subject::LONGEST => Ok(subject),
        n => Err(Error::usage(format!("the subject has {n} bytes, more than {}", subject::LONGEST))),
    }
}
