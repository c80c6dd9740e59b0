//! `swr-why`: says cause, risk, dependents and fix of damage in plain words.

mod explain;

use std::path::PathBuf;
use std::process::ExitCode;

use contract::cli::{Arg, Stop, unknown};
use contract::verdict::print;
use contract::{Args, Code, Error, Kind, State, Swr, Verdict, exit, home};
use workspace::history::{self, Survival, survival};
use workspace::verdicts::Verdicts;
use workspace::{Manifest, read};

fn main() -> ExitCode {
    contract::run::<Swr>(include_str!("help.txt"), go)
}

fn go(args: &mut Args) -> Result<Code, Stop> {
    let (mut path, mut ids): (Option<PathBuf>, Vec<String>) = (None, Vec::new());
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("manifest") => path = Some(args.value()?.into()),
            Arg::Value(id) => ids.push(id.to_string_lossy().into_owned()),
            other => return Err(unknown(other)),
        }
    }
    let home = home::swr_home()?;
    let path = path.unwrap_or_else(|| home.join("manifest.jsonl"));
    let manifest = Manifest::parse_or_bad(&read::file(&path)?)?;
    // A history that cannot be read takes nothing away but its own words.
    let past = history::read(&home.join("history.jsonl")).map_or_else(|_| Vec::new(), |t| survival(&t));
    if ids.is_empty() {
        return Ok(from_verdicts(&manifest, &past)?);
    }
    for id in &ids {
        let entry = manifest.entry(id).ok_or_else(|| Error::usage(format!("no entry has the id '{id}'")))?;
        print(explain::entry(&manifest, entry, &past, &[]).as_bytes())?;
    }
    Ok(exit::OK)
}

/// Explains what the verdict lines on standard input say, entry by entry, in the order they come.
fn from_verdicts(manifest: &Manifest, past: &[Survival]) -> Result<Code, Error> {
    let mut pending: Vec<Verdict> = Vec::new();
    let mut input = Verdicts::open("swr why ID explains an entry; or swr check | swr why")?;
    loop {
        let read = input.read()?.map(|piece| piece.verdict);
        let is_end = read.is_none();
        let verdict = read.flatten();
        let same = verdict.as_ref().is_some_and(|v| pending.first().is_none_or(|p| p.subject == v.subject));
        if !same {
            flush(manifest, past, &pending)?;
            pending.clear();
        }
        if is_end {
            return Ok(input.end("swr-why", false));
        }
        pending.extend(verdict);
    }
}

fn flush(manifest: &Manifest, past: &[Survival], verdicts: &[Verdict]) -> Result<(), Error> {
    let is_well = |v: &&Verdict| matches!(v.state, State::Ok | State::Healed);
    let found: Vec<Verdict> = verdicts.iter().filter(|v| !is_well(v)).cloned().collect();
    let Some(first) = found.first() else { return Ok(()) };
    let subject = String::from_utf8_lossy(&first.subject);
    let text = match manifest.entry(&subject) {
        _ if first.kind == Kind::Manifest => explain::signature(&subject, &first.detail),
        Some(entry) => explain::entry(manifest, entry, past, &found),
        None => format!("{subject}: {} - the manifest has no such entry\n\n", first.detail),
    };
    print(text.as_bytes())
}
