//! llama-rebuild: rebuild the inference engine from a source that is proven, for this CPU.

mod archive;
mod cache;
mod cmake_cache;
mod compile;
mod condition;
mod configure;
mod halt;
mod install;
mod log;
mod machine;
mod rebuild;
mod remote;
mod source;
mod tree;
mod unity;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use contract::cli::{self, Arg, Stop};
use contract::{Args, Code, Error, Guard, Kind, Report, Verdict, message, mode};

use crate::halt::Halt;
use crate::rebuild::Wish;

/// A first build takes 45 minutes on two loaded cores.
const LIMIT: Duration = Duration::from_secs(3600);

fn main() -> ExitCode {
    contract::run::<Guard>(include_str!("help.txt"), go)
}

fn go(args: &mut Args) -> Result<Code, Stop> {
    let mut wish =
        Wish { force: false, portable: false, archive: None, ccache: None, jobs: None, limit: LIMIT };
    let (mut json, mut status) = (false, false);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("json") => json = true,
            Arg::Long("status") => status = true,
            Arg::Long("force") => wish.force = true,
            Arg::Long("portable") => wish.portable = true,
            Arg::Long("from-archive") => wish.archive = Some(absolute(args)?),
            Arg::Long("keep-ccache") => wish.ccache = Some(absolute(args)?),
            Arg::Long("jobs") | Arg::Short('j') => wish.jobs = Some(jobs(args)?),
            Arg::Long("limit") => wish.limit = limit(args)?,
            other => return Err(cli::unknown(other)),
        }
    }
    let fix = mode::fix()?;
    let said = if status {
        condition::look(wish.portable).map(|c| (c.state, c.words)).map_err(Halt::from)
    } else {
        rebuild::rebuild(&wish, fix.as_ref())
    };
    let (state, detail, hint) = match said {
        Ok((state, detail)) => (state, detail, None),
        Err(Halt::Verdict { state, detail, hint }) => (state, detail, hint),
        Err(Halt::Error(error)) => return Err(error.into()),
    };
    let mut report = Report::<Guard>::new(json);
    report.say(&Verdict::new(state, Kind::Binary, "engine", detail))?;
    if let Some(hint) = hint {
        message::hint(&hint);
    }
    Ok(report.code())
}

/// The option's value as an absolute path: programs are started in other directories.
fn absolute(args: &mut Args) -> Result<PathBuf, Stop> {
    let value = args.value()?;
    std::path::absolute(&value).map_err(|cause| Error::io("resolve", &value, &cause).into())
}

fn jobs(args: &mut Args) -> Result<usize, Stop> {
    let text = args.text()?;
    let number = text.parse().ok().filter(|n| (1..=1024).contains(n));
    number.ok_or_else(|| Error::usage(format!("'{text}' is not a number of jobs, 1 to 1024")).into())
}

fn limit(args: &mut Args) -> Result<Duration, Stop> {
    let value = args.value()?;
    cli::duration(&value)
        .filter(|d| !d.is_zero())
        .ok_or_else(|| Error::usage(format!("{} is not a duration", message::quoted(&value))).into())
}
