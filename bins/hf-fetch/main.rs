//! `hf-fetch`: brings a pinned model, resumable, and gives it its name only when its bytes are proven.

mod ask;
mod download;
mod fetch;
mod hashing;
mod held;
mod present;
mod progress;
mod segments;
mod wanted;

use std::process::ExitCode;
use std::time::Duration;

use contract::cli::{self, Arg, Stop};
use contract::{Args, Code, Error, Guard, Report};
use models::Manifest;

/// What the command line asks for.
struct Options {
    operands: Vec<String>,
    json: bool,
    /// Fetch from the hub what nobody pinned, and write down what was measured.
    learn: bool,
    /// Parallel ranges.
    segments: usize,
    /// Everything, waiting included.
    limit: Duration,
    /// Without bytes.
    stall: Duration,
}

const MOST_SEGMENTS: usize = 8;

fn main() -> ExitCode {
    contract::names::by_files_and_dns();
    contract::run::<Guard>(include_str!("help.txt"), go)
}

fn go(args: &mut Args) -> Result<Code, Stop> {
    let options = options(args)?;
    let manifest = Manifest::load()?;
    let fix = contract::mode::fix()?;
    files::space::survive_size_limit();
    let wanted: Vec<_> = options
        .operands
        .iter()
        .map(|operand| wanted::of(operand, &manifest, options.learn))
        .collect::<Result<_, Error>>()?;
    let mut report = Report::<Guard>::new(options.json);
    for wanted in wanted {
        report.say(&fetch::run(wanted, &options, fix.as_ref())?)?;
    }
    Ok(report.code())
}

fn options(args: &mut Args) -> Result<Options, Stop> {
    let mut options = Options {
        operands: Vec::new(),
        json: false,
        learn: false,
        segments: 1,
        limit: Duration::from_secs(3600),
        stall: Duration::from_secs(30),
    };
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("json") => options.json = true,
            Arg::Long("learn") => options.learn = true,
            Arg::Long("segments") => {
                let text = args.text()?;
                let count = text.parse().ok().filter(|n| (1..=MOST_SEGMENTS).contains(n));
                options.segments = count.ok_or_else(|| {
                    Error::usage(format!("'{text}' is not a number of segments from 1 to {MOST_SEGMENTS}"))
                })?;
            }
            Arg::Long("limit") => options.limit = bound(args)?,
            Arg::Long("stall") => options.stall = bound(args)?,
            Arg::Value(value) => {
                let operand = value.into_string();
                options.operands.push(
                    operand.map_err(|v| {
                        Error::usage(format!("{} is not UTF-8", contract::message::quoted(&v)))
                    })?,
                );
            }
            other => return Err(cli::unknown(other)),
        }
    }
    if options.operands.is_empty() {
        return Err(Error::usage("name a role, or OWNER/REPOSITORY/FILE").into());
    }
    Ok(options)
}

/// A duration that ends: nothing here waits for ever.
fn bound(args: &mut Args) -> Result<Duration, Stop> {
    let value = args.value()?;
    cli::duration(&value).filter(|d| !d.is_zero()).ok_or_else(|| {
        Error::usage(format!("{} is not a duration above zero", contract::message::quoted(&value))).into()
    })
}
