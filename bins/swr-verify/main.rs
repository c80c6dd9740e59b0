//! `swr-verify`: compares the disk with the workspace manifest.

mod look;

use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::process::ExitCode;

use contract::cli::{Arg, Stop, unknown};
use contract::message::{hint, note};
use contract::{Args, Code, Error, Kind, Report, State, Swr, Verdict, home};
use workspace::cache::{self, Cache};
use workspace::reading::Lines;
use workspace::{Entry, Manifest, order, read, wipe};

use look::Looked;

fn main() -> ExitCode {
    contract::run::<Swr>(include_str!("help.txt"), go)
}

#[derive(Default)]
struct Options {
    manifest: Option<PathBuf>,
    only: Vec<String>,
    deep: bool,
    no_cache: bool,
    update_cache: bool,
    jobs: Option<usize>,
    json: bool,
}

fn go(args: &mut Args) -> Result<Code, Stop> {
    let options = options(args)?;
    let home = home::swr_home()?;
    let path = options.manifest.clone().unwrap_or_else(|| home.join("manifest.jsonl"));
    let mut report = Report::<Swr>::new(options.json);
    let bytes = if path.as_os_str() == "-" { read::stdin() } else { read::file(&path) };
    let cache_path = home.join("verify.cache");
    let known = if options.no_cache { String::new() } else { cache::text(&cache_path) };
    let mut cache = Cache::of(&known);
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) => return bad(error, &mut report),
    };
    // The process ends before it: giving back thousands of pieces of memory would be a tenth of a look.
    let kept = match look(&bytes, &options, &cache) {
        Ok(looked) => ManuallyDrop::new(looked),
        Err(error) => return bad(error, &mut report),
    };
    let (lines, looked) = &*kept;
    for part in looked {
        report.say_part(&part.text)?;
    }
    let chosen = lines.iter().flat_map(|l| &l.entries).map(|l| &l.entry).filter(|e| options.chooses(e));
    let looked: Vec<_> = chosen.zip(looked.iter().flat_map(|part| &part.found)).collect();
    if lines.iter().all(|l| l.entries.is_empty()) {
        note("swr-verify", "the manifest has no entries: nothing is protected");
        hint("swr autopilot tracks what is here, swr add PATH one thing");
    }
    let damaged = looked.iter().any(|(_, found)| !found.findings.is_empty());
    if damaged && options.only.is_empty() {
        let found: Vec<_> = looked.iter().map(|(e, found)| (*e, found.findings.as_slice())).collect();
        if let Some(signature) = wipe::signature(&found) {
            report.say(&Verdict::new(State::Degraded, Kind::Manifest, signature.name, signature.why))?;
        }
    }
    let mut faults = order::faults(lines.iter().flat_map(|l| &l.entries).map(|l| &l.entry));
    faults.retain(|f| f.concerns(&options.only));
    for fault in &faults {
        report.say(&fault.verdict())?;
    }
    if let Some(fault) = faults.first() {
        hint(&fault.way_out());
    }
    // Which machine this is matters only here, and takes reading about every processor.
    let host = if damaged || options.update_cache { Some(look::host()) } else { None };
    let moved = cache.host().is_some_and(|before| host.is_some_and(|now| now != before));
    if moved && damaged {
        let why = "the cpu or machine is another than at the last look";
        report.say(&Verdict::new(State::Degraded, Kind::Manifest, "moved-host", why))?;
    }
    if let Some(host) = host.filter(|_| options.update_cache) {
        look::remember(&mut cache, lines, &looked, host);
        // What was not remembered is hashed again; a full disk takes no verdict away.
        if let Err(trouble) = look::save(&cache, &home, &cache_path) {
            note("swr-verify", &trouble.message);
        }
    }
    Ok(report.code())
}

/// The end with an error; one of the manifest itself is said as a line.
fn bad(error: Error, report: &mut Report<Swr>) -> Result<Code, Stop> {
    Err(read::bad_line(error, "manifest", report)?.into())
}

/// The manifest's lines, and what each entry looks like, or each one chosen.
fn look<'a>(
    bytes: &'a [u8],
    options: &Options,
    cache: &Cache,
) -> Result<(Vec<Lines<'a>>, Vec<Looked>), Error> {
    let settings = options.settings();
    if bytes.len() >= look::LARGE && options.only.is_empty() {
        return look::all(bytes, &settings, cache);
    }
    let manifest = Manifest::parse_or_bad(bytes)?;
    if let Some(id) = options.only.iter().find(|id| manifest.entry(id).is_none()) {
        return Err(Error::usage(format!("no entry has the id '{id}'")).hint("swr check names every id"));
    }
    let entries: Vec<_> = manifest.lines.iter().map(|l| &l.entry).filter(|e| options.chooses(e)).collect();
    let looked = look::some(&manifest.header, &entries, &settings, cache)?;
    Ok((vec![Lines::of(manifest.lines)], looked))
}

impl Options {
    fn chooses(&self, entry: &Entry) -> bool {
        self.only.is_empty() || self.only.iter().any(|id| *id == entry.id)
    }

    fn settings(&self) -> look::Settings {
        let jobs = self.jobs.unwrap_or_else(engine::threads::available).clamp(1, 8);
        look::Settings { deep: self.deep, json: self.json, jobs }
    }
}

fn options(args: &mut Args) -> Result<Options, Stop> {
    let mut options = Options::default();
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("manifest") => options.manifest = Some(args.value()?.into()),
            Arg::Long("only") => options.only.push(args.text()?),
            Arg::Long("deep") => options.deep = true,
            Arg::Long("no-cache") => options.no_cache = true,
            Arg::Long("update-cache") => options.update_cache = true,
            Arg::Long("json") => options.json = true,
            Arg::Long("jobs") => {
                let text = args.text()?;
                let jobs = text.parse().ok().filter(|n| (1..=64).contains(n));
                options.jobs =
                    Some(jobs.ok_or_else(|| Error::usage(format!("'{text}' is not 1 to 64 jobs")))?);
            }
            other => return Err(unknown(other)),
        }
    }
    Ok(options)
}
