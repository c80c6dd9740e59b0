//! A manifest of models that a test makes up, and the tool run against it.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::disallowed_methods, reason = "tests start programs and lay out files themselves")]

use std::path::PathBuf;
use std::process::Command;

use crate::private_home::Home;

/// `(role, file, bytes, sha256)`; a role that begins with `test` is marked as one.
pub(crate) type Pinned<'a> = (&'a str, &'a str, usize, Option<&'a str>);

/// Writes a manifest into `home`.
pub(crate) fn manifest(home: &Home, models: &[Pinned<'_>]) -> PathBuf {
    let models: Vec<String> = models
        .iter()
        .map(|(role, file, bytes, sha)| {
            let sha = sha.map_or("null".to_owned(), |sha| format!("\"{sha}\""));
            let test = role.starts_with("test");
            format!(
                "{{\"role\":\"{role}\",\"file\":\"{file}\",\"bytes\":{bytes},\"sha256\":{sha},\"base_s\":5,\
                 \"ms_per_token\":50,\"cap_s\":60,\"default_tps\":30,\"test\":{test}}}"
            )
        })
        .collect();
    let text = format!(
        "{{\"version\":1,\"models\":[\n{}\n],\"engine\":{{\"remote\":\"https://example.org/x\",\"tag\":\"b1\",\"archives\":[]}}}}\n",
        models.join(",\n")
    );
    home.file("manifest.json", text)
}

/// The tool in `home`, its models in `models/`, its manifest `manifest.json` where there is one.
pub(crate) fn tool(home: &Home) -> Command {
    let mut command = home.command(env!("CARGO_BIN_EXE_gguf-verify"));
    command.env("SELFHEAL_MODELS_DIR", home.path("models"));
    if home.path("manifest.json").exists() {
        command.env("SELFHEAL_MANIFEST", home.path("manifest.json"));
    }
    command
}

/// SHA-256 of bytes, as hexadecimal digits.
pub(crate) fn sha256(mut bytes: &[u8]) -> String {
    files::digest::of_reader(&mut bytes).unwrap().0.hex()
}
