//! `swr-verify`: compares the disk with the workspace manifest.

mod look;

use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use contract::cli::{Arg, Stop, unknown};
use contract::message::{hint, note};
use contract::{Args, Code, Error, Kind, Report, State, Swr, Verdict, exit, home};
use seal::standing;
use workspace::cache::{self, Cache};
use workspace::{Signed, content, order, read, reading, wipe};

use look::Seen;

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
    let Seen { lines, looked, is_met, .. } = &*kept;
    for part in looked {
        report.say_part(&part.text)?;
    }
    let all = || lines.iter().flat_map(|l| &l.entries).map(|l| &l.entry);
    let chosen = all().filter(|e| look::is_chosen(e, &options.only));
    let looked: Vec<_> = chosen.zip(looked.iter().flat_map(|part| &part.found)).collect();
    if all().next().is_none() {
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
    let mut faults = if *is_met { Vec::new() } else { order::faults(all()) };
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
        if report.code() == exit::OK && !looked.is_empty() {
            foresee(&home, &bytes, &kept);
        }
    }
    Ok(report.code())
}

/// Says of a healthy workspace what would keep `swr-restore` from running, while there is time.
fn foresee(home: &Path, bytes: &[u8], seen: &Seen) {
    let (signatures, end) = reading::signatures(&seen.lines, bytes);
    let signed = Signed { seq: seen.header.seq, body: &bytes[..end], signatures: &signatures };
    match standing::refusal(home, signed) {
        Ok(None) => {}
        Ok(Some((why, way_out))) => {
            note("swr-verify", &format!("after damage nothing would be restored: {why}"));
            hint(&way_out);
        }
        Err(trouble) => note("swr-verify", &trouble.message),
    }
}

/// The end with an error; one of the manifest itself is said as a line.
fn bad(error: Error, report: &mut Report<Swr>) -> Result<Code, Stop> {
    Err(read::bad_line(error, "manifest", report)?.into())
}

fn look<'a>(bytes: &'a [u8], options: &Options, cache: &Cache) -> Result<Seen<'a>, Error> {
    let settings = options.settings();
    if bytes.len() >= look::LARGE && options.only.is_empty() {
        look::all(bytes, &settings, cache)
    } else {
        look::some(bytes, &options.only, &settings, cache)
    }
}

impl Options {
    fn settings(&self) -> look::Settings {
        let jobs = self.jobs.map_or_else(content::jobs, |n| n.clamp(1, 8));
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
