//! `manifest.json`, the only truth about models and engine sources; it is read and never written.

use std::path::{Path, PathBuf};

use contract::{Error, exit, home, message};
use files::digest::Sha;
use serde_json::Value;

/// A larger file is not a manifest.
const LIMIT: u64 = 1 << 20;

/// The whole manifest.
#[derive(Debug)]
pub struct Manifest {
    /// In file order.
    pub models: Vec<Model>,
    /// Where the engine's source comes from.
    pub engine: Engine,
    /// Addresses that serve the hub's paths too, asked after it and for pinned models alone: each stands for
    /// `https://huggingface.co`. Read as text here; who connects judges them.
    pub mirrors: Vec<String>,
}

/// One model and the role it plays.
#[derive(Clone, Debug)]
pub struct Model {
    /// The role, the model's name in the toolkit: lower-case letters, digits, `-`.
    pub role: String,
    /// The file name in the models directory; never a path.
    pub file: String,
    /// Exact size in bytes.
    pub bytes: u64,
    /// SHA-256 of the whole file; `None` where nobody published one.
    pub sha256: Option<Sha>,
    /// `owner/name` on the hub.
    pub repository: Option<String>,
    /// The hub commit to fetch from.
    pub revision: Option<String>,
    /// A package that carries the file instead of the hub.
    pub package: Option<Package>,
    /// Whether this is a light role (thinking off, shorter cap).
    pub light: bool,
    /// Seconds every inference gets.
    pub base_s: f64,
    /// Milliseconds added for each token asked for.
    pub ms_per_token: f64,
    /// Seconds no inference may exceed.
    pub cap_s: f64,
    /// Tokens per second assumed until it is measured.
    pub default_tps: f64,
    /// Counts only when named.
    pub test: bool,
}

/// A registry package that carries a model.
#[derive(Clone, Debug)]
pub struct Package {
    /// The package's name.
    pub name: String,
    /// Its exact version.
    pub version: String,
    /// The model's path inside the package, a zip.
    pub member: String,
    /// Size of the package in bytes.
    pub bytes: u64,
    /// SHA-256 of the package.
    pub sha256: Sha,
}

/// Where the engine's source comes from.
#[derive(Debug)]
pub struct Engine {
    /// The git remote.
    pub remote: String,
    /// The tag to check out.
    pub tag: String,
    /// Source archives that carry the same tree.
    pub archives: Vec<Archive>,
}

/// A gzip-compressed tar archive with an engine source tree inside.
#[derive(Clone, Debug)]
pub struct Archive {
    /// The package it is, for the person who fetches it.
    pub name: String,
    /// The package's version.
    pub version: String,
    /// Its file name.
    pub file: String,
    /// The directory inside that holds the tree.
    pub member: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the archive.
    pub sha256: Sha,
    /// The upstream tag or commit of the tree.
    pub tree: String,
}

impl Manifest {
    /// Reads the manifest of this installation. Missing is 69; unreadable or malformed is 74.
    pub fn load() -> Result<Self, Error> {
        Self::read(&home::manifest()?)
    }

    /// Reads a manifest file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        use std::io::Read as _;
        let name = path.as_os_str();
        let (file, meta) = files::open::regular(path).map_err(|refusal| match refusal {
            files::open::Refusal::Io(cause) => Error::io("read", name, &cause),
            files::open::Refusal::NotAFile(what) => {
                Error::new(exit::IO, format!("cannot read {}: it is {}", message::quoted(name), what.words()))
            }
        })?;
        let malformed = |what: &str| {
            Error::new(exit::IO, format!("{} is not a model manifest: {what}", message::quoted(name)))
                .hint("restore it: git checkout manifest.json, or reinstall")
        };
        if meta.len() > LIMIT {
            return Err(malformed("larger than 1 MiB"));
        }
        let mut text = Vec::new();
        file.take(LIMIT).read_to_end(&mut text).map_err(|cause| Error::io("read", name, &cause))?;
        let value: Value = serde_json::from_slice(&text).map_err(|cause| malformed(&cause.to_string()))?;
        parse(&value).map_err(|what| malformed(&what))
    }

    /// The model of a role.
    pub fn role(&self, role: &str) -> Option<&Model> {
        self.models.iter().find(|m| m.role == role)
    }

    /// The model whose file name this is.
    pub fn file(&self, name: &str) -> Option<&Model> {
        self.models.iter().find(|m| m.file == name)
    }

    /// The roles that count without being named.
    pub fn everyday(&self) -> impl Iterator<Item = &Model> {
        self.models.iter().filter(|m| !m.test)
    }

    /// Every role, for messages: `scout, spark, ...`.
    pub fn role_names(&self) -> String {
        self.models.iter().map(|m| m.role.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl Model {
    /// Where this model lives.
    pub fn path(&self) -> Result<PathBuf, Error> {
        Ok(home::models_dir()?.join(&self.file))
    }
}

fn parse(value: &Value) -> Result<Manifest, String> {
    if value.get("version").and_then(Value::as_u64) != Some(1) {
        return Err("version is not 1".into());
    }
    let list = |v: &Value, key: &str| {
        v.get(key).and_then(Value::as_array).cloned().ok_or(format!("no list '{key}'"))
    };
    let mut models = Vec::new();
    for item in list(value, "models")? {
        let model = model(&item)?;
        if models.iter().any(|m: &Model| m.role == model.role || m.file == model.file) {
            return Err(format!("role or file of '{}' stands twice", model.role));
        }
        models.push(model);
    }
    let engine = value.get("engine").ok_or("no 'engine'")?;
    let archives = list(engine, "archives")?.iter().map(archive).collect::<Result<_, _>>()?;
    let mirrors = match value.get("mirrors") {
        None | Some(Value::Null) => Vec::new(),
        Some(_) => list(value, "mirrors")?
            .iter()
            .map(|m| m.as_str().map(str::to_owned).ok_or("a mirror that is not text"))
            .collect::<Result<_, _>>()?,
    };
    Ok(Manifest {
        mirrors,
        models,
        engine: Engine { remote: text(engine, "remote")?, tag: text(engine, "tag")?, archives },
    })
}

fn model(item: &Value) -> Result<Model, String> {
    let role = text(item, "role")?;
    if role == "auto"
        || role.is_empty()
        || !role.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    {
        return Err(format!("'{role}' is not a role name"));
    }
    let positive = |key: &str| {
        let number = item.get(key).and_then(Value::as_f64).filter(|n| *n > 0.0 && *n < 1e6);
        number.ok_or(format!("'{key}' of {role} is not a positive number"))
    };
    let package = match item.get("package") {
        None | Some(Value::Null) => None,
        Some(p) => Some(Package {
            name: text(p, "name")?,
            version: text(p, "version")?,
            member: text(p, "member")?,
            bytes: number(p, "bytes")?,
            sha256: sha(p)?.ok_or("a package without sha256")?,
        }),
    };
    Ok(Model {
        file: plain_name(text(item, "file")?)?,
        bytes: number(item, "bytes")?,
        sha256: sha(item)?,
        repository: optional(item, "repository")?,
        revision: optional(item, "revision")?,
        package,
        light: flag(item, "light"),
        base_s: positive("base_s")?,
        ms_per_token: positive("ms_per_token")?,
        cap_s: positive("cap_s")?,
        default_tps: positive("default_tps")?,
        test: flag(item, "test"),
        role,
    })
}

fn archive(item: &Value) -> Result<Archive, String> {
    Ok(Archive {
        name: text(item, "name")?,
        version: text(item, "version")?,
        file: plain_name(text(item, "file")?)?,
        member: text(item, "member")?,
        bytes: number(item, "bytes")?,
        sha256: sha(item)?.ok_or("an archive without sha256")?,
        tree: text(item, "tree")?,
    })
}

fn text(item: &Value, key: &str) -> Result<String, String> {
    item.get(key).and_then(Value::as_str).map(str::to_owned).ok_or(format!("'{key}' is missing or not text"))
}

/// A text, or `None` for null or absence.
fn optional(item: &Value, key: &str) -> Result<Option<String>, String> {
    match item.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => text(item, key).map(Some),
    }
}

fn number(item: &Value, key: &str) -> Result<u64, String> {
    item.get(key).and_then(Value::as_u64).ok_or(format!("'{key}' is missing or not a count"))
}

fn flag(item: &Value, key: &str) -> bool {
    item.get(key) == Some(&Value::Bool(true))
}

fn sha(item: &Value) -> Result<Option<Sha>, String> {
    match optional(item, "sha256")? {
        None => Ok(None),
        Some(hex) => Sha::from_hex(&hex).map(Some).ok_or(format!("'{hex}' is not a sha256")),
    }
}

/// A file name that cannot leave the directory it is put in.
fn plain_name(name: String) -> Result<String, String> {
    let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0', '\n']);
    if plain { Ok(name) } else { Err(format!("'{}' is not a plain file name", message::one_line(&name))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped() -> String {
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifest.json")).unwrap()
    }

    fn parsed(text: &str) -> Result<Manifest, String> {
        parse(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn the_shipped_manifest_is_valid_and_names_the_four_roles() {
        let manifest = parsed(&shipped()).unwrap();
        let roles: Vec<_> = manifest.everyday().map(|m| m.role.as_str()).collect();
        assert_eq!(roles, ["scout", "spark", "forge", "sage"]);
        assert!(manifest.role("demo").unwrap().test);
        assert_eq!(manifest.engine.archives.len(), 2);
    }

    /// An earlier specification named the scout's file without its `Qwen_` prefix, which the hub answers with 404.
    #[test]
    fn scouts_file_carries_the_prefix_of_its_repository() {
        let manifest = parsed(&shipped()).unwrap();
        assert_eq!(manifest.role("scout").unwrap().file, "Qwen_Qwen3-0.6B-Q4_K_M.gguf");
    }

    /// An earlier specification matched the coder's file by a pattern `Coder*` that no name begins with.
    #[test]
    fn the_coders_file_is_found_by_its_name() {
        let manifest = parsed(&shipped()).unwrap();
        assert_eq!(manifest.file("Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.gguf").unwrap().role, "forge");
    }

    /// The shell reads one model per line with one `sed`.
    #[test]
    fn every_model_stands_on_a_line_of_its_own() {
        let text = shipped();
        let lines = text.lines().filter(|l| l.starts_with("{\"role\":\"")).count();
        assert_eq!(lines, parsed(&text).unwrap().models.len());
    }

    #[test]
    fn a_hostile_manifest_is_refused() {
        let good = shipped();
        let changes = [
            ("\"version\":1", "\"version\":2"),
            ("\"file\":\"Qwen_", "\"file\":\"../Qwen_"),
            ("\"role\":\"spark\"", "\"role\":\"scout\""),
            ("\"role\":\"spark\"", "\"role\":\"auto\""),
            ("\"role\":\"spark\"", "\"role\":\"a b\""),
            ("\"bytes\":484220320", "\"bytes\":-1"),
            ("\"bytes\":484220320", "\"bytes\":1e99"),
            ("\"cap_s\":150", "\"cap_s\":0"),
            ("9acfc1e0", "zzzzzzzz"),
            ("\"engine\":", "\"motor\":"),
            ("\"engine\":", "\"mirrors\":\"https://x\",\"engine\":"),
            ("\"engine\":", "\"mirrors\":[1],\"engine\":"),
        ];
        for (from, to) in changes {
            assert!(good.contains(from), "{from}");
            assert!(parsed(&good.replacen(from, to, 1)).is_err(), "{to}");
        }
    }
}
