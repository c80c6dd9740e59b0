//! `swr-add`: captures entries of a workspace manifest from the healthy disk.

mod add;
mod retighten;
mod untracked;

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use contract::cli::{Arg, Stop, unknown};
use contract::message::quoted;
use contract::verdict::print;
use contract::{Args, Code, Error, Swr, exit};
use workspace::capture::As;
use workspace::entry::is_id;
use workspace::{Entry, Manifest, order, read};

fn main() -> ExitCode {
    contract::run::<Swr>(include_str!("help.txt"), go)
}

/// What to do with the operands.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Action {
    #[default]
    Add,
    Retighten,
    FromModels,
    Untracked,
    Remove,
    Empty,
}

/// What the command line asks for; `None` and empty mean: not given.
#[derive(Default)]
pub(crate) struct Options {
    action: Action,
    operands: Vec<Vec<u8>>,
    root: Option<Vec<u8>>,
    list: PathBuf,
    pub(crate) id: Option<String>,
    pub(crate) kind: Option<As>,
    pub(crate) tier: Option<u8>,
    pub(crate) sentinels: Vec<Vec<u8>>,
    pub(crate) count: Vec<Vec<u8>>,
    pub(crate) hash: bool,
    pub(crate) needs: Option<Vec<String>>,
    pub(crate) restore: Option<String>,
    pub(crate) timeout_s: Option<u64>,
    pub(crate) notes: Option<String>,
}

fn go(args: &mut Args) -> Result<Code, Stop> {
    let options = options(args)?;
    let bytes = read::stdin()?;
    let mut manifest = if bytes.is_empty() {
        let root = options.root.as_deref().unwrap_or(b"~");
        let new = Manifest::empty(root);
        Manifest::parse(&new.body).map_err(|_| Error::usage("--root is neither absolute nor below ~"))?
    } else {
        if options.root.is_some() {
            return Err(Error::usage("--root is for a new manifest, this one has its root").into());
        }
        Manifest::parse_or_bad(&bytes)?
    };
    let before = order::faults(entries(&manifest));
    match options.action {
        Action::Add => add::paths(&mut manifest, &options, &options.operands)?,
        Action::Retighten => {
            let ids = ids(&manifest, &options.operands)?;
            retighten::entries(&mut manifest, &ids)?;
        }
        Action::FromModels => add::models(&mut manifest)?,
        Action::Untracked => untracked::lines(&mut manifest, &options, &options.list)?,
        Action::Empty => {}
        Action::Remove => {
            let ids = ids(&manifest, &options.operands)?;
            manifest.lines.retain(|l| !ids.iter().any(|id| *id == l.entry.id));
            manifest.rebuild();
        }
    }
    // Faults that were there before are said by whoever looks; no change adds one.
    if let Some(fault) = order::faults(entries(&manifest)).into_iter().find(|f| !before.contains(f)) {
        return Err(Error::usage(fault.words()).hint(fault.way_out()).into());
    }
    let bytes = manifest.to_bytes();
    // What is written must be readable: a bound that the whole exceeds is found here, before it is anybody's truth.
    Manifest::parse_or_bad(&bytes)?;
    print(&bytes)?;
    Ok(exit::OK)
}

fn entries(manifest: &Manifest) -> impl Iterator<Item = &Entry<'_>> + Clone {
    manifest.lines.iter().map(|l| &l.entry)
}

/// Text that cannot be an id.
pub(crate) fn no_id(text: &str) -> Error {
    Error::usage(format!("{} is not an id", quoted(text.as_ref())))
        .hint("letters, digits, '.', '_' and '-', at most 64, the first a letter or digit")
}

/// Operands that must be ids of the manifest.
fn ids(manifest: &Manifest, operands: &[Vec<u8>]) -> Result<Vec<String>, Error> {
    let known = |bytes: &Vec<u8>| {
        let id = String::from_utf8_lossy(bytes).into_owned();
        match manifest.entry(&id) {
            Some(_) => Ok(id),
            None => Err(Error::usage(format!("no entry has the id {}", quoted(id.as_ref())))),
        }
    };
    operands.iter().map(known).collect()
}

fn options(args: &mut Args) -> Result<Options, Stop> {
    let mut o = Options::default();
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Value(value) => o.operands.push(value.as_bytes().to_vec()),
            Arg::Long("retighten") => o.action = Action::Retighten,
            Arg::Long("from-models") => o.action = Action::FromModels,
            Arg::Long("untracked") => {
                o.action = Action::Untracked;
                o.list = args.value()?.into();
            }
            Arg::Long("empty") => o.action = Action::Empty,
            Arg::Long("remove") => o.action = Action::Remove,
            Arg::Long("root") => o.root = Some(args.value()?.as_bytes().to_vec()),
            Arg::Long("id") => o.id = Some(args.text()?),
            Arg::Long("kind") => {
                let text = args.text()?;
                o.kind = Some(match text.as_str() {
                    "file" => As::File,
                    "blob" => As::Blob,
                    "tree" => As::Tree,
                    _ => return Err(Error::usage(format!("'{text}' is not file, blob or tree")).into()),
                });
            }
            Arg::Long("tier") => {
                let text = args.text()?;
                let tier = text.parse().ok().filter(|t| *t <= 4);
                o.tier =
                    Some(tier.ok_or_else(|| Error::usage(format!("'{text}' is not a tier from 0 to 4")))?);
            }
            Arg::Long("sentinel") => o.sentinels.push(args.value()?.as_bytes().to_vec()),
            Arg::Long("count-name") => o.count.push(args.value()?.as_bytes().to_vec()),
            Arg::Long("hash") => o.hash = true,
            Arg::Long("needs") => {
                let text = args.text()?;
                // An empty one: none any more.
                if !text.is_empty() && !is_id(&text) {
                    return Err(no_id(&text).into());
                }
                o.needs.get_or_insert_default().extend(Some(text).filter(|t| !t.is_empty()));
            }
            Arg::Long("restore") => o.restore = Some(args.text()?),
            Arg::Long("timeout") => {
                let text = args.text()?;
                let seconds = text.parse().ok().filter(|s| (1..=86_400).contains(s));
                o.timeout_s =
                    Some(seconds.ok_or_else(|| Error::usage(format!("'{text}' is not 1 to 86400 seconds")))?);
            }
            Arg::Long("notes") => o.notes = Some(args.text()?),
            other => return Err(unknown(other)),
        }
    }
    let needs_operands = matches!(o.action, Action::Add | Action::Remove);
    if needs_operands && o.operands.is_empty() {
        return Err(Error::usage("nothing is named").into());
    }
    if o.action == Action::Untracked && !o.operands.is_empty() {
        return Err(Error::usage("--untracked takes its paths from the list alone").into());
    }
    if o.id.is_some() && o.operands.len() != 1 {
        return Err(Error::usage("--id goes with one path").into());
    }
    Ok(o)
}
