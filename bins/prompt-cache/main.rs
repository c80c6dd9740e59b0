//! `prompt-cache`: a prefix that answers a repeated prompt without inference.

mod entry;
mod events;
mod flight;
mod prefix;
mod room;
mod store;
mod verbs;

#[cfg(test)]
#[path = "../../tests/private_home.rs"]
mod private_home;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::time::Duration;

use contract::cli::{self, Arg, Stop};
use contract::{Args, Code, Error, Guard, message, mode};
use files::digest::Sha;

use crate::prefix::Ask;
use crate::room::Caps;
use crate::store::{Store, parse_key};
use crate::verbs::Which;

/// The name in messages and in selfheal.log.
pub(crate) const TOOL: &str = "prompt-cache";

/// The longest answer that is kept, in bytes: 16384 tokens are a tenth of it.
pub(crate) const LARGEST: usize = 1 << 20;

/// The same model gives the same answer for ever; a month is for what a key cannot know.
const TTL: Duration = Duration::from_secs(30 * 86_400);
/// How much is kept.
const CAPS: Caps = Caps { bytes: 64 << 20, entries: 4096 };
/// The longest that one inference may take.
const WAIT: Duration = Duration::from_secs(300);
/// What a command may take when the caller says nothing: not for ever.
const LIMIT: Duration = Duration::from_secs(86_400);

/// What is to be done.
enum Form {
    Prefix(Sha),
    Get(Sha),
    Put(Sha),
    Verb(OsString),
}

/// The command line, read.
struct Asked {
    form: Option<Form>,
    operands: Vec<OsString>,
    caps: Caps,
    ttl: Duration,
    wait: Duration,
    limit: Duration,
    all: bool,
    older: Option<Duration>,
    json: bool,
}

impl Asked {
    /// Takes what is to be done, once.
    fn choose(&mut self, form: Form) -> Result<(), Error> {
        match self.form.replace(form) {
            None => Ok(()),
            Some(_) => Err(Error::usage("-k, --get, --put and the verbs exclude each other")),
        }
    }
}

fn main() -> ExitCode {
    contract::run::<Guard>(include_str!("help.txt"), go)
}

fn go(args: &mut Args) -> Result<Code, Stop> {
    let command = args.command()?;
    let asked = read(args)?;
    let fix = mode::fix()?;
    let fix = fix.as_ref();
    let purges = matches!(&asked.form, Some(Form::Verb(verb)) if verb == "purge");
    if !purges && (asked.all || asked.older.is_some() || !asked.operands.is_empty()) {
        let what = asked.operands.first().map_or("--all or --older".into(), |o| message::quoted(o));
        return Err(Error::usage(format!("unexpected {what}")).hint("prompt-cache purge --older 7d").into());
    }
    if asked.json && !matches!(asked.form, Some(Form::Verb(_))) {
        return Err(Error::usage("--json changes nothing here").hint("prompt-cache stats --json").into());
    }
    let store = Store::at_home(asked.ttl)?;
    let code = match (asked.form, command) {
        (Some(Form::Prefix(key)), Some(command)) if !command.is_empty() => {
            let Asked { caps, wait, limit, .. } = asked;
            prefix::run(&store, fix, &Ask { key, command, caps, wait, limit })?
        }
        (Some(Form::Prefix(_)), _) => {
            return Err(Error::usage("no command behind '--'").hint("prompt-cache -k KEY -- COMMAND").into());
        }
        (_, Some(_)) => {
            return Err(Error::usage("a command is for -k").hint("prompt-cache -k KEY -- COMMAND").into());
        }
        (Some(Form::Get(key)), _) => verbs::get(&store, fix, &key)?,
        (Some(Form::Put(key)), _) => verbs::put(&store, fix, &key, asked.caps)?,
        (Some(Form::Verb(verb)), _) => match verb.as_encoded_bytes() {
            b"stats" => verbs::stats(&store, asked.json)?,
            b"list" => verbs::list(&store, asked.json)?,
            b"purge" => {
                verbs::purge(&store, fix, &which(&asked.operands, asked.all, asked.older)?, asked.json)?
            }
            _ => return Err(cli::unknown(Arg::Value(verb))),
        },
        (None, _) => return Err(Error::usage("nothing to do").into()),
    };
    Ok(code)
}

/// What `purge` is to remove.
fn which(operands: &[OsString], all: bool, older: Option<Duration>) -> Result<Which, Error> {
    match (operands, all, older) {
        ([], false, None) => Ok(Which::Useless),
        ([], true, None) => Ok(Which::All),
        ([], false, Some(age)) => Ok(Which::Older(age)),
        (keys, false, None) => keys.iter().map(|k| parse_key(k)).collect::<Result<_, _>>().map(Which::Keys),
        _ => Err(Error::usage("keys, --all and --older exclude each other")),
    }
}

fn read(args: &mut Args) -> Result<Asked, Stop> {
    let mut asked = Asked {
        form: None,
        operands: Vec::new(),
        caps: CAPS,
        ttl: TTL,
        wait: WAIT,
        limit: LIMIT,
        all: false,
        older: None,
        json: false,
    };
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Short('k') | Arg::Long("key") => asked.choose(Form::Prefix(key(args)?))?,
            Arg::Long("get") => asked.choose(Form::Get(key(args)?))?,
            Arg::Long("put") => asked.choose(Form::Put(key(args)?))?,
            Arg::Long("ttl") => asked.ttl = duration(args, "ttl")?,
            Arg::Long("wait") => asked.wait = duration(args, "wait")?,
            Arg::Long("limit") => {
                asked.limit = duration(args, "limit")?;
                if asked.limit.is_zero() {
                    return Err(Error::usage("--limit of 0 would be no bound").into());
                }
            }
            Arg::Long("max-bytes") => asked.caps.bytes = count(&args.value()?, "max-bytes")?,
            Arg::Long("max-entries") => asked.caps.entries = count(&args.value()?, "max-entries")?,
            Arg::Long("all") => asked.all = true,
            Arg::Long("older") => asked.older = Some(duration(args, "older")?),
            Arg::Long("json") => asked.json = true,
            Arg::Value(verb) if asked.form.is_none() => asked.form = Some(Form::Verb(verb)),
            Arg::Value(operand) => asked.operands.push(operand),
            other => return Err(cli::unknown(other)),
        }
    }
    Ok(asked)
}

fn key(args: &mut Args) -> Result<Sha, Stop> {
    Ok(parse_key(&args.value()?)?)
}

fn duration(args: &mut Args, option: &str) -> Result<Duration, Stop> {
    let value = args.value()?;
    cli::duration(&value).ok_or_else(|| {
        Error::usage(format!("--{option} is {}, not a duration", message::quoted(&value)))
            .hint("a number with s, m, h or d: 90, 1.5h, 7d")
            .into()
    })
}

/// A count above zero, with K, M or G.
fn count(text: &OsStr, option: &str) -> Result<u64, Error> {
    cli::bytes(text)
        .filter(|n| *n > 0)
        .ok_or_else(|| Error::usage(format!("--{option} is {}, not a count above 0", message::quoted(text))))
}
