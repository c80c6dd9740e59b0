//! `swr-escrow`: embeds small files in the workspace manifest, and gives them back.

use std::io::Read as _;
use std::process::ExitCode;

use contract::cli::{Arg, Stop, unknown};
use contract::verdict::print;
use contract::{Args, Code, Error, Kind, Report, State, Swr, Verdict, exit};
use workspace::place::Places;
use workspace::{Entry, Manifest, Shape, escrow, read};

fn main() -> ExitCode {
    contract::run::<Swr>(include_str!("help.txt"), go)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Embed,
    Drop,
    List,
    Cat,
}

fn go(args: &mut Args) -> Result<Code, Stop> {
    let (mut action, mut json, mut ids) = (Action::Embed, false, Vec::new());
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("drop") => action = Action::Drop,
            Arg::Long("list") => action = Action::List,
            Arg::Long("cat") => action = Action::Cat,
            Arg::Long("json") => json = true,
            Arg::Value(id) => ids.push(id.to_string_lossy().into_owned()),
            other => return Err(unknown(other)),
        }
    }
    match (action, ids.len()) {
        (Action::List, 0) | (Action::Cat, 1) => {}
        (Action::Embed | Action::Drop, n) if n > 0 => {}
        (Action::List, _) => return Err(Error::usage("--list takes no id").into()),
        (Action::Cat, _) => return Err(Error::usage("--cat takes one id").into()),
        _ => return Err(Error::usage("no id is named").into()),
    }
    let mut manifest = Manifest::parse_or_bad(&read::stdin()?)?;
    if let Some(id) = ids.iter().find(|id| manifest.entry(id).is_none()) {
        return Err(Error::usage(format!("no entry has the id '{id}'")).into());
    }
    Ok(match action {
        Action::List => list(&manifest, json)?,
        Action::Cat => {
            print(&content(&manifest, &ids[0])?)?;
            exit::OK
        }
        Action::Embed | Action::Drop => {
            for id in &ids {
                let entry =
                    if action == Action::Embed { embed(&manifest, id)? } else { without(&manifest, id)? };
                manifest.put(entry);
            }
            check_total(&manifest)?;
            print(&manifest.to_bytes())?;
            exit::OK
        }
    })
}

fn entry(manifest: &Manifest, id: &str) -> Result<Entry<'static>, Error> {
    manifest.entry(id).cloned().ok_or_else(|| Error::usage(format!("no entry has the id '{id}'")))
}

/// The entry with its file's content in it.
fn embed(manifest: &Manifest, id: &str) -> Result<Entry<'static>, Error> {
    let mut entry = entry(manifest, id)?;
    let path = entry.clone();
    let Shape::File { size, sha256, escrow: text, .. } = &mut entry.shape else {
        return Err(Error::usage(format!("'{id}' is no file entry: only small files can be embedded")));
    };
    if *size > escrow::FILE {
        let why = format!("'{id}' has {size} bytes, more than the {} that can be embedded", escrow::FILE);
        return Err(Error::usage(why).hint("give it a recipe instead: swr add PATH --restore '...'"));
    }
    let places = Places::open(&manifest.header)?;
    let (root, below) = places.of(&path)?;
    let mut content = Vec::new();
    root.read(below)
        .and_then(|file| file.take(escrow::FILE + 1).read_to_end(&mut content))
        .map_err(|cause| Error::io("read", id.as_ref(), &cause))?;
    let packed = escrow::pack(&content).filter(|packed| escrow::unpack(packed, *size, *sha256).is_ok());
    *text = Some(packed.ok_or_else(|| {
        Error::new(exit::IO, format!("'{id}' is not as its entry says"))
            .hint("swr doctor, or swr add captures it anew")
    })?);
    Ok(entry)
}

fn without(manifest: &Manifest, id: &str) -> Result<Entry<'static>, Error> {
    let mut entry = entry(manifest, id)?;
    if let Shape::File { escrow, .. } = &mut entry.shape {
        *escrow = None;
    }
    Ok(entry)
}

/// Every entry with embedded content: its size and text.
fn embedded(manifest: &Manifest) -> impl Iterator<Item = (&Entry<'_>, u64, &str)> {
    manifest.lines.iter().filter_map(|line| match &line.entry.shape {
        Shape::File { size, escrow: Some(text), .. } => Some((&line.entry, *size, text.as_str())),
        _ => None,
    })
}

fn check_total(manifest: &Manifest) -> Result<(), Error> {
    let total: u64 = embedded(manifest).map(|(_, size, _)| size).sum();
    if total <= escrow::TOTAL {
        return Ok(());
    }
    let why = format!("{total} bytes would be embedded, more than {}", escrow::TOTAL);
    Err(Error::usage(why).hint("swr-escrow --list shows what weighs, --drop takes it out"))
}

fn content(manifest: &Manifest, id: &str) -> Result<Vec<u8>, Error> {
    match entry(manifest, id)?.shape {
        Shape::File { size, sha256, escrow: Some(text), .. } => escrow::unpack(&text, size, sha256)
            .map_err(|why| Error::new(exit::swr::MANIFEST, format!("{id}: {why}"))),
        _ => Err(Error::usage(format!("nothing is embedded for '{id}'"))),
    }
}

fn list(manifest: &Manifest, json: bool) -> Result<Code, Error> {
    let mut report = Report::<Swr>::new(json);
    for (entry, size, text) in embedded(manifest) {
        let Shape::File { sha256, .. } = entry.shape else { continue };
        let verdict = match escrow::unpack(text, size, sha256) {
            Ok(_) => (State::Ok, format!("{size} bytes, {} in the manifest", text.len())),
            Err(why) => (State::Bad, why),
        };
        report.say(&Verdict::new(verdict.0, Kind::File, &*entry.id, verdict.1))?;
    }
    Ok(report.code())
}
