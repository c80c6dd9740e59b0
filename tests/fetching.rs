//! A home with a manifest of its own, and `hf-fetch` run in it.
#![allow(dead_code, unreachable_pub, reason = "each test file is a crate and uses its part")]
#![allow(clippy::disallowed_methods, reason = "tests start programs and lay out files themselves")]

use std::path::PathBuf;
use std::process::Command;

use files::digest::{Sha, of_reader};

use crate::private_home::Home;

/// The revision that the manifests here pin.
pub const REVISION: &str = "0123456789abcdef0123456789abcdef01234567";

pub fn sha(mut bytes: &[u8]) -> Sha {
    of_reader(&mut bytes).unwrap().0
}

/// One model of a manifest: role `m`, file `m.gguf`, repository `o/n`.
pub struct Model {
    pub bytes: usize,
    pub sha: Option<Sha>,
    pub repository: Option<&'static str>,
    pub revision: Option<&'static str>,
}

impl Model {
    /// Pins this content.
    pub fn of(content: &[u8]) -> Self {
        Self {
            bytes: content.len(),
            sha: Some(sha(content)),
            repository: Some("o/n"),
            revision: Some(REVISION),
        }
    }
}

/// A home in which role `m` is this model.
pub fn home_with(model: &Model, mirrors: &[&str]) -> Home {
    let home = Home::new();
    let quoted = |text: Option<String>| text.map_or("null".into(), |t| format!("\"{t}\""));
    let mirrors = mirrors.iter().map(|m| format!("\"{m}\"")).collect::<Vec<_>>().join(",");
    let text = format!(
        r#"{{"version":1,"mirrors":[{mirrors}],"models":[
{{"role":"m","file":"m.gguf","bytes":{},"sha256":{},"repository":{},"revision":{},"light":true,"base_s":30,"ms_per_token":50,"cap_s":150,"default_tps":30}}
],"engine":{{"remote":"https://example.invalid/x.git","tag":"t","archives":[]}}}}"#,
        model.bytes,
        quoted(model.sha.map(|s| s.hex())),
        quoted(model.repository.map(str::to_owned)),
        quoted(model.revision.map(str::to_owned)),
    );
    home.file("manifest.json", text);
    home
}

/// A home in which role `m` has this content.
pub fn home_of(content: &[u8]) -> Home {
    home_with(&Model::of(content), &[])
}

/// `hf-fetch` with consent, asking `endpoint`.
pub fn fetch(home: &Home, endpoint: &str, args: &[&str]) -> Command {
    let mut command = home.command(env!("CARGO_BIN_EXE_hf-fetch"));
    command
        .env("SELFHEAL_MODE", "fix")
        .env("SELFHEAL_TEST_HTTP", "1")
        .env("SELFHEAL_MANIFEST", home.path("manifest.json"))
        .env("HF_ENDPOINT", endpoint)
        .args(args);
    command
}

/// Where the model will be.
pub fn target(home: &Home) -> PathBuf {
    home.path(".selfheal/models/m.gguf")
}

/// Where its partial file is.
pub fn partial(home: &Home, content: &[u8]) -> PathBuf {
    home.path(&format!(".selfheal/models/.m.gguf.{}.part", &sha(content).hex()[..12]))
}

/// The names in the models directory.
pub fn listing(home: &Home) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(home.path(".selfheal/models"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
