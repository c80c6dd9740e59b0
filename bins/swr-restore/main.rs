//! `swr-restore`: brings back what is damaged, in order, and nothing else.

mod below;
mod gate;
mod journal;
mod native;
mod quarantine;
mod recipe;
mod repair;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use contract::cli::{Arg, Stop, duration, unknown};
use contract::message::quoted;
use contract::{Args, Code, Error, Kind, Report, State, Swr, Verdict, home, mode};
use files::digest::Sha;

fn main() -> ExitCode {
    contract::run::<Swr>(include_str!("help.txt"), go)
}

/// What the command line asks for.
struct Options {
    manifest: Option<PathBuf>,
    only: Vec<String>,
    dry_run: bool,
    resume: bool,
    deep: bool,
    quarantine: bool,
    wait: Duration,
    trust: Option<Sha>,
    json: bool,
}

fn go(args: &mut Args) -> Result<Code, Stop> {
    let options = options(args)?;
    let home = home::swr_home()?;
    let path = options.manifest.clone().unwrap_or_else(|| home.join("manifest.jsonl"));
    let mut report = Report::<Swr>::new(options.json);
    let fix = mode::by_name();
    let (manifest, accepted, access) = match gate::open(&path, &home, options.trust, &mut report)? {
        gate::Gate::Open { manifest, accepted, access } => (manifest, accepted, access),
        gate::Gate::Closed { why, hint } => {
            report.say(&Verdict::new(State::Bad, Kind::Manifest, "signature", why))?;
            return Err(Error::quiet(report.code()).hint(hint).into());
        }
    };
    if let Some(id) = options.only.iter().find(|id| manifest.entry(id).is_none()) {
        return Err(Error::usage(format!("no entry has the id '{id}'"))
            .hint("swr check names every id")
            .into());
    }
    if let Some(accepted) = accepted.filter(|_| !options.dry_run)
        && let Err(trouble) = accepted.remember(&fix)
    {
        let why = format!("nothing is run, because it cannot be noted as accepted: {}", trouble.message);
        report.say(&Verdict::new(State::Failed, Kind::Manifest, "signature", why))?;
        return Err(Error::quiet(report.code()).hint(trouble.hint.unwrap_or_default()).into());
    }
    seal::standing::tend("swr-restore", Some(&fix).filter(|_| !options.dry_run), &home, access);
    run::run(&fix, &manifest, &home, &options, &mut report)?;
    Ok(report.code())
}

fn options(args: &mut Args) -> Result<Options, Stop> {
    let mut options = Options {
        manifest: None,
        only: Vec::new(),
        dry_run: false,
        resume: false,
        deep: false,
        quarantine: true,
        wait: Duration::from_secs(600),
        trust: None,
        json: false,
    };
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("manifest") => options.manifest = Some(args.value()?.into()),
            Arg::Long("only") => options.only.push(args.text()?),
            Arg::Long("dry-run") => options.dry_run = true,
            Arg::Long("deep") => options.deep = true,
            Arg::Long("resume") => options.resume = true,
            Arg::Long("quarantine") => options.quarantine = true,
            Arg::Long("no-quarantine") => options.quarantine = false,
            Arg::Long("json") => options.json = true,
            Arg::Long("wait") => {
                let text = args.value()?;
                let wait = duration(&text);
                options.wait =
                    wait.ok_or_else(|| Error::usage(format!("{} is not a duration", quoted(&text))))?;
            }
            Arg::Long("trust") => {
                let text = args.text()?;
                options.trust = Some(Sha::from_hex(&text).ok_or_else(|| {
                    Error::usage("--trust takes the full sha256 of one manifest body")
                        .hint("swr-restore names it when it refuses a manifest")
                })?);
            }
            other => return Err(unknown(other)),
        }
    }
    Ok(options)
}
