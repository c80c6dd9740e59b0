//! Which file is wanted, what is known of it, and which addresses may have it.

use std::path::PathBuf;

use contract::{Error, home, message};
use files::digest::Sha;
use models::{Manifest, Model, pins};
use net::{Allow, Token, Url};

/// The hub itself.
const HUB: &str = "https://huggingface.co";

/// One file to bring.
pub(crate) struct Wanted {
    /// Field 3 of the verdict: the role, else the operand.
    pub subject: String,
    /// Where it will be.
    pub target: PathBuf,
    /// Exact size, when known.
    pub bytes: Option<u64>,
    /// The pin, when there is one.
    pub sha: Option<Sha>,
    /// `owner/name` on the hub.
    pub repository: Option<String>,
    /// The file's name there.
    pub file: String,
    /// The commit to ask for; without one `main`, and the pin decides.
    pub revision: Option<String>,
    /// Where to ask, in this order.
    pub sources: Vec<Url>,
    /// All addresses that may be asked, redirects included.
    pub allow: Allow,
    /// Why there is no source.
    pub nowhere: &'static str,
}

/// Reads an operand: a role, or `OWNER/REPOSITORY/FILE`.
pub(crate) fn of(operand: &str, manifest: &Manifest, learn: bool) -> Result<Wanted, Error> {
    let listed = match operand.rsplit_once('/') {
        None => Some(manifest.role(operand).ok_or_else(|| {
            Error::usage(format!("unknown role '{}'", message::one_line(operand)))
                .hint(format!("roles: {}; or OWNER/REPOSITORY/FILE", manifest.role_names()))
        })?),
        Some((repository, file)) => {
            check_path(operand, repository, file)?;
            manifest.models.iter().find(|m| m.repository.as_deref() == Some(repository) && m.file == file)
        }
    };
    let mut wanted = match (listed, operand.rsplit_once('/')) {
        (Some(model), _) => known(model)?,
        (None, Some((repository, file))) => unlisted(operand, repository, file, manifest)?,
        (None, None) => return Err(Error::usage("no file")),
    };
    learned(&mut wanted);
    place(&mut wanted, manifest, learn)?;
    Ok(wanted)
}

/// `OWNER/REPOSITORY/FILE`: three names, none of which is a way to somewhere else.
fn check_path(operand: &str, repository: &str, file: &str) -> Result<(), Error> {
    let plain = |name: &str| {
        !name.is_empty()
            && !name.starts_with('.')
            && name.len() <= 200
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.+".contains(&b))
    };
    let names = repository.split_once('/').is_some_and(|(owner, name)| plain(owner) && plain(name));
    if names && plain(file) {
        return Ok(());
    }
    Err(Error::usage(format!("'{}' is not OWNER/REPOSITORY/FILE", message::one_line(operand))))
}

fn known(model: &Model) -> Result<Wanted, Error> {
    Ok(Wanted {
        subject: model.role.clone(),
        target: model.path()?,
        bytes: Some(model.bytes),
        sha: model.sha256,
        repository: model.repository.clone(),
        file: model.file.clone(),
        revision: model.revision.clone(),
        sources: Vec::new(),
        allow: Allow::hub_and([]),
        nowhere: "it comes from a package, not from the hub: set HF_ENDPOINT to a server that has the file",
    })
}

/// A file that the manifest does not know. Its name must not be that of a pinned model in the same directory.
fn unlisted(operand: &str, repository: &str, file: &str, manifest: &Manifest) -> Result<Wanted, Error> {
    if let Some(model) = manifest.file(file) {
        return Err(Error::usage(format!("'{file}' is the name of {}, from another repository", model.role))
            .hint(format!("hf-fetch {}", model.role)));
    }
    Ok(Wanted {
        subject: operand.to_owned(),
        target: home::models_dir()?.join(file),
        bytes: None,
        sha: None,
        repository: Some(repository.to_owned()),
        file: file.to_owned(),
        revision: None,
        sources: Vec::new(),
        allow: Allow::hub_and([]),
        nowhere: "",
    })
}

/// Where nobody published a pin, takes the one that an earlier `--learn` measured, unless the manifest's size
/// contradicts it.
pub(crate) fn learned(wanted: &mut Wanted) {
    if wanted.sha.is_some() {
        return;
    }
    let pin = wanted.repository.as_deref().and_then(|r| pins::find(r, &wanted.file));
    if let Some(pin) = pin.filter(|p| wanted.bytes.is_none_or(|b| b == p.bytes)) {
        wanted.bytes = Some(pin.bytes);
        wanted.sha = Some(pin.sha256);
        wanted.revision = wanted.revision.take().or(pin.revision);
    }
}

/// Fills in the sources: the endpoint, then the mirrors. Without a pin nothing but the hub can be believed.
fn place(wanted: &mut Wanted, manifest: &Manifest, learn: bool) -> Result<(), Error> {
    let endpoint = endpoint()?;
    let hub = Url::parse(HUB).map_err(|f| Error::usage(f.to_string()))?;
    let mut bases = Vec::new();
    if wanted.sha.is_some() {
        bases.extend(endpoint.clone().or_else(|| wanted.repository.is_some().then(|| hub.clone())));
        for mirror in &manifest.mirrors {
            bases.push(address("a mirror of manifest.json", mirror)?);
        }
    } else if learn {
        if endpoint.is_some_and(|e| e.origin != hub.origin) {
            let text = "without a pin only huggingface.co is asked, HF_ENDPOINT is left aside";
            message::note("hf-fetch", text);
        }
        bases.push(hub);
    }
    let revision = wanted.revision.as_deref().unwrap_or("main");
    wanted.allow = Allow::hub_and(&bases);
    wanted.sources = bases
        .iter()
        .map(|base| match wanted.repository.as_deref().and_then(|r| r.split_once('/')) {
            Some((owner, name)) => base.below(&[owner, name, "resolve", revision, &wanted.file]),
            None => base.below(&[&wanted.file]),
        })
        .collect();
    Ok(())
}

/// `HF_ENDPOINT` as an address.
fn endpoint() -> Result<Option<Url>, Error> {
    home::hub_endpoint().map(|value| address("HF_ENDPOINT", &value.to_string_lossy())).transpose()
}

fn address(what: &str, text: &str) -> Result<Url, Error> {
    Url::parse(text).map_err(|failure| Error::usage(format!("{what} is {}", failure.detail)))
}

/// `HF_TOKEN`, for the endpoint that the caller set, else for the hub: nobody else ever gets it.
pub(crate) fn token() -> Result<Option<Token>, Error> {
    let Some(value) = home::hub_token() else { return Ok(None) };
    let home = match endpoint()? {
        Some(url) => url,
        None => address("the hub", HUB)?,
    };
    let token = Token::new(&value, &home.origin);
    token.map(Some).map_err(|failure| Error::usage(failure.detail))
}
