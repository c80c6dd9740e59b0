//! `model-budget`: the seconds that one inference may take here, from measured tokens per second.

mod measure;
mod show;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use contract::cli::{self, Arg, Stop};
use contract::exit::{self, guard};
use contract::message::quoted;
use contract::{Args, Code, Error, Guard, mode, verdict};
use models::budget::{self, MOST_TOKENS};
use models::{Manifest, Model, routing, tps};

/// The name in messages and in selfheal.log.
pub(crate) const TOOL: &str = "model-budget";

/// What a measurement is bound to: the CPU and, where there is one, the engine.
pub(crate) struct Here {
    pub(crate) cpu: String,
    pub(crate) engine: Option<String>,
}

impl Here {
    fn find() -> Result<Self, Error> {
        let engine = engine::find()?.map(|engine| engine.label());
        Ok(Self { cpu: engine::cpu().id, engine })
    }

    /// The measured speed of a role; nothing without an engine to have it.
    fn tps(&self, role: &str) -> Result<Option<f64>, Error> {
        let path = tps::path()?;
        Ok(self.engine.as_deref().and_then(|engine| tps::measured(&path, role, &self.cpu, engine)))
    }
}

/// The command line, read.
#[derive(Default)]
struct Asked {
    operands: Vec<OsString>,
    bytes: Option<usize>,
    json: bool,
}

fn main() -> ExitCode {
    contract::run::<Guard>(include_str!("help.txt"), go)
}

fn go(args: &mut Args) -> Result<Code, Stop> {
    let asked = read(args)?;
    let fix = mode::fix()?;
    let verb = asked.operands.first().map_or(&b""[..], |o| o.as_encoded_bytes());
    let is_query = !matches!(verb, b"record" | b"show" | b"reset");
    if !is_query && asked.bytes.is_some() {
        return Err(Error::usage("--bytes is for ROLE N").hint("model-budget scout 80 --bytes 5000").into());
    }
    if is_query && asked.json {
        return Err(Error::usage("--json changes nothing here").hint("model-budget show --json").into());
    }
    let manifest = Manifest::load()?;
    let known = |name: &OsStr| {
        manifest
            .models
            .iter()
            .find(|m| name == m.role.as_str())
            .ok_or_else(|| Error::usage(format!("no role {}", quoted(name))).hint(manifest.role_names()))
    };
    let rest = asked.operands.get(1..).unwrap_or_default();
    Ok(match (verb, rest) {
        (b"record", [role, speed]) => {
            measure::record(fix.as_ref(), &Here::find()?, &known(role)?.role, credible(speed)?, asked.json)?
        }
        (b"record", _) => return Err(operands("model-budget record ROLE TPS").into()),
        (b"reset", [role]) => measure::reset(fix.as_ref(), &known(role)?.role, asked.json)?,
        (b"reset", _) => return Err(operands("model-budget reset ROLE").into()),
        (b"show", []) => show::all(&Here::find()?, manifest.models.iter(), asked.json)?,
        (b"show", [role]) => show::all(&Here::find()?, std::iter::once(known(role)?), asked.json)?,
        (b"show", _) => return Err(operands("model-budget show ROLE").into()),
        (_, [tokens]) => {
            let role = &asked.operands[0];
            let (tokens, bytes) = (count(tokens)?, asked.bytes.unwrap_or(0));
            // Who answers under auto is not known without the prompt: the longest of those who may.
            let models: Vec<&Model> = if role == routing::AUTO {
                manifest.everyday().filter(|m| m.light).collect()
            } else {
                vec![known(role)?]
            };
            seconds(&models, tokens, bytes)?
        }
        _ => return Err(operands("model-budget scout 80").into()),
    })
}

fn operands(right: &str) -> Error {
    Error::usage("operands are missing, or there are too many").hint(right)
}

/// Prints the longest budget in whole seconds, rounded up.
fn seconds(models: &[&Model], tokens: u32, bytes: usize) -> Result<Code, Error> {
    let here = Here::find()?;
    let mut longest = None;
    for model in models {
        longest = longest.max(Some(budget::of(model, tokens, bytes, here.tps(&model.role)?)));
    }
    let Some(longest) = longest else {
        return Err(Error::new(guard::MODEL, "no usable model: the manifest has no light role"));
    };
    let seconds = longest.as_secs() + u64::from(longest.subsec_nanos() > 0);
    verdict::print(format!("{seconds}\n").as_bytes())?;
    Ok(exit::OK)
}

fn read(args: &mut Args) -> Result<Asked, Stop> {
    let mut asked = Asked::default();
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("bytes") => {
                let text = args.value()?;
                let bytes = cli::bytes(&text).and_then(|n| usize::try_from(n).ok());
                asked.bytes = Some(bytes.ok_or_else(|| {
                    Error::usage(format!("--bytes is {}, not a number of bytes", quoted(&text)))
                })?);
            }
            Arg::Long("json") => asked.json = true,
            Arg::Value(operand) => asked.operands.push(operand),
            other => return Err(cli::unknown(other)),
        }
    }
    Ok(asked)
}

fn count(text: &OsStr) -> Result<u32, Error> {
    text.to_str()
        .filter(|t| t.bytes().all(|b| b.is_ascii_digit()))
        .and_then(|t| t.parse().ok())
        .filter(|n| (1..=MOST_TOKENS).contains(n))
        .ok_or_else(|| Error::usage(format!("N is {}, not a count from 1 to {MOST_TOKENS}", quoted(text))))
}

/// Tokens per second as a measurement gives them.
fn credible(text: &OsStr) -> Result<f64, Error> {
    let plain = |t: &&str| t.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.to_str()
        .filter(plain)
        .and_then(|t| t.parse().ok())
        .filter(|tps| tps::CREDIBLE.contains(tps))
        .ok_or_else(|| {
            let (least, most) = (tps::CREDIBLE.start(), tps::CREDIBLE.end());
            Error::usage(format!("TPS is {}, not tokens per second from {least} to {most}", quoted(text)))
        })
}
