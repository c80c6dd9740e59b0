//! `swr-audit`: finds what is worth protecting and is not.

mod find;

use std::path::PathBuf;
use std::process::ExitCode;

use contract::cli::{Arg, Stop, bytes, unknown};
use contract::message::quoted;
use contract::{Args, Code, Error, Kind, Report, State, Swr, Verdict, home};
use workspace::place::{open_root, root_path};
use workspace::{Manifest, Shape, escrow, read};

fn main() -> ExitCode {
    contract::run::<Swr>(include_str!("help.txt"), go)
}

fn go(args: &mut Args) -> Result<Code, Stop> {
    let (mut path, mut least, mut most, mut json) = (None::<PathBuf>, 1 << 20, find::MOST, false);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("manifest") => path = Some(args.value()?.into()),
            Arg::Long("json") => json = true,
            Arg::Long("all") => most = usize::MAX,
            Arg::Long("min-size") => {
                let text = args.value()?;
                let size = bytes(&text);
                least =
                    size.ok_or_else(|| Error::usage(format!("{} is not a count of bytes", quoted(&text))))?;
            }
            other => return Err(unknown(other)),
        }
    }
    let given = path.is_some();
    let path = match path {
        Some(path) => path,
        None => home::swr_home()?.join("manifest.jsonl"),
    };
    let mut report = Report::<Swr>::new(json);
    let manifest = if given || path.exists() {
        read::manifest(read::file(&path), &mut report)?
    } else {
        Manifest::empty(b"~")
    };
    let root = root_path(&manifest.header)?;
    let root = open_root(&root)?;
    for found in find::all(&root, &manifest, least, most) {
        report.say(&Verdict::new(found.state, found.kind, found.path, found.why))?;
    }
    let embedded = |line: &workspace::Line| match &line.entry.shape {
        Shape::File { size, escrow: Some(text), .. } => Some((*size, text.len())),
        _ => None,
    };
    let (count, size, text) = manifest
        .lines
        .iter()
        .filter_map(embedded)
        .fold((0, 0, 0), |(n, s, t), (size, len)| (n + 1, s + size, t + len));
    if count > 0 {
        let state = if size > escrow::TOTAL { State::Degraded } else { State::Ok };
        let detail = format!("{count} files of {size} bytes embedded, {text} bytes in the manifest");
        report.say(&Verdict::new(state, Kind::Manifest, "escrow", detail))?;
    }
    Ok(report.code())
}
