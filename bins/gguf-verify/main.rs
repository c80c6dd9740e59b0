//! `gguf-verify`: prove a model's bytes, say what is wrong with them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use contract::cli::{self, Arg, Stop};
use contract::{Args, Code, Error, Guard, Kind, Report, State, Verdict, exit, home, message};
use files::digest::Sha;
use gguf::{Finding, Pin};
use models::{Manifest, Model};

fn main() -> ExitCode {
    contract::run::<Guard>(include_str!("help.txt"), go)
}

/// The command line.
#[derive(Default)]
struct Asked {
    deep: bool,
    json: bool,
    /// `--bytes` and `--sha256`: instead of what the manifest says.
    pin: Option<Pin>,
    operands: Vec<OsString>,
}

/// One line of the answer before it is known.
enum Subject<'a> {
    Role(&'a Model),
    Path(PathBuf),
    /// Neither a role nor a file.
    Nothing(OsString),
}

fn go(args: &mut Args) -> Result<Code, Stop> {
    let asked = read(args)?;
    let manifest = manifest(args.tool(), &asked)?;
    let subjects = subjects(&asked, manifest.as_ref());
    let mut report = Report::<Guard>::new(asked.json);
    for subject in &subjects {
        report.say(&verdict(subject, &asked, manifest.as_ref())?)?;
    }
    Ok(report.code())
}

fn read(args: &mut Args) -> Result<Asked, Stop> {
    let mut asked = Asked { deep: home::deep_verify(), ..Asked::default() };
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("deep") => asked.deep = true,
            Arg::Long("json") => asked.json = true,
            Arg::Long("bytes") => {
                let bytes =
                    cli::bytes(&args.value()?).ok_or_else(|| Error::usage("--bytes wants a count"))?;
                asked.pin.get_or_insert_default().bytes = Some(bytes);
            }
            Arg::Long("sha256") => {
                let sha = Sha::from_hex(&args.text()?);
                let sha = sha.ok_or_else(|| Error::usage("--sha256 wants 64 hexadecimal digits"))?;
                asked.pin.get_or_insert_default().sha256 = Some(sha);
                asked.deep = true;
            }
            Arg::Value(operand) => asked.operands.push(operand),
            other => return Err(cli::unknown(other)),
        }
    }
    if asked.pin.is_some() && asked.operands.len() != 1 {
        return Err(Error::usage("--bytes and --sha256 are about exactly one operand").into());
    }
    Ok(asked)
}

/// The manifest; `None` when nothing asked for depends on it and it cannot be had.
fn manifest(tool: &str, asked: &Asked) -> Result<Option<Manifest>, Error> {
    let needed = asked.operands.is_empty() || asked.operands.iter().any(|operand| !is_path(operand));
    match Manifest::load() {
        Ok(manifest) => Ok(Some(manifest)),
        Err(error) if needed => Err(error),
        Err(error) => {
            if error.code != exit::PROGRAM_MISSING || home::manifest_is_named() {
                message::note(tool, &format!("{}: no pins are known", error.message));
            }
            Ok(None)
        }
    }
}

/// Whether an operand is a path without asking the manifest: it has a slash, or there is such a file.
fn is_path(operand: &OsString) -> bool {
    operand.as_bytes().contains(&b'/') || Path::new(operand).symlink_metadata().is_ok()
}

fn subjects<'a>(asked: &Asked, manifest: Option<&'a Manifest>) -> Vec<Subject<'a>> {
    if asked.operands.is_empty() {
        return manifest.into_iter().flat_map(Manifest::everyday).map(Subject::Role).collect();
    }
    let subject = |operand: &OsString| {
        // A role has no slash, so a path can always be told from it.
        let role = operand.to_str().and_then(|role| manifest?.role(role));
        match role {
            Some(model) => Subject::Role(model),
            None if is_path(operand) => Subject::Path(operand.into()),
            None => Subject::Nothing(operand.clone()),
        }
    };
    asked.operands.iter().map(subject).collect()
}

fn verdict(subject: &Subject<'_>, asked: &Asked, manifest: Option<&Manifest>) -> Result<Verdict, Error> {
    let pin = |model: Option<&Model>| {
        let published = model.map(|m| Pin { bytes: Some(m.bytes), sha256: m.sha256 });
        asked.pin.or(published).unwrap_or_default()
    };
    let (name, found) = match subject {
        Subject::Role(model) => {
            (model.role.clone().into_bytes(), gguf::verify(&model.path()?, &pin(Some(model)), asked.deep))
        }
        Subject::Path(path) => {
            let name = path.file_name().and_then(|name| name.to_str());
            let model = name.and_then(|name| manifest?.file(name));
            (path.as_os_str().as_bytes().to_vec(), gguf::verify(path, &pin(model), asked.deep))
        }
        Subject::Nothing(operand) => {
            let roles = manifest.map(Manifest::role_names).unwrap_or_default();
            let detail = format!("no such file, and no role of that name; roles are {roles}");
            (operand.as_bytes().to_vec(), Finding { state: State::Missing, detail })
        }
    };
    Ok(Verdict::new(found.state, Kind::Model, name, found.detail))
}
