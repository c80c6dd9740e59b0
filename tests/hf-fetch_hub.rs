//! `hf-fetch` against the hub's own names, played by nginx behind a tunnel: what it asks, and pins it learns.
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

mod fetching;
mod private_home;
mod servers;

use std::fs;
use std::process::Command;

use fetching::*;
use private_home::*;
use servers::Tunnel;
use servers::behaviour::content;
use servers::real::{Authority, Process, nginx, nginx_log};

const COMMIT: &str = "fedcba9876543210fedcba9876543210fedcba98";

/// The hub: a large file answers with a redirect to a file server, which alone knows nothing of digests.
struct Hub {
    home: Home,
    tunnel: Tunnel,
    _nginx: Process,
}

impl Hub {
    /// Serves `content` and says of it what `linked` is; `None` without nginx or openssl.
    fn new(home: Home, content: &[u8], linked: &[u8]) -> Option<Self> {
        let ca = Authority::new(&home.path("ca"))?;
        ca.sign("hub", "DNS:huggingface.co,DNS:cdn-lfs.hf.co");
        let servers = format!(
            "ssl_certificate %DIR%/../ca/hub.pem; ssl_certificate_key %DIR%/../ca/hub.key;\n\
             server {{ listen 127.0.0.1:%PORT% ssl; server_name huggingface.co;\n\
             add_header x-linked-size {} always; add_header x-linked-etag '\"{}\"' always;\n\
             add_header x-repo-commit {COMMIT} always;\n\
             location /o/n/resolve/ {{ return 302 https://cdn-lfs.hf.co/repos/file?Signature=abc; }}\n\
             location / {{ return 404; }} }}\n\
             server {{ listen 127.0.0.1:%PORT% ssl; server_name cdn-lfs.hf.co; root %DIR%/www;\n\
             location / {{ try_files /file =404; }} }}",
            linked.len(),
            sha(linked).hex(),
        );
        let process = nginx(&home.path("nginx"), &servers)?;
        fs::write(home.path("nginx/www/file"), content).unwrap();
        let tunnel = Tunnel::start(Ok(process.address));
        Some(Self { home, tunnel, _nginx: process })
    }

    /// `hf-fetch` as a user has it: no endpoint, no test variable.
    fn fetch(&self, args: &[&str]) -> Command {
        let mut command = fetch(&self.home, "", args);
        command
            .env_remove("HF_ENDPOINT")
            .env_remove("SELFHEAL_TEST_HTTP")
            .env("HTTPS_PROXY", self.tunnel.address.to_string())
            .env("SSL_CERT_FILE", self.home.path("ca/ca.pem"));
        command
    }

    /// `METHOD HOST PATH` of every request so far.
    fn asked(&self) -> Vec<String> {
        let words = |line: &String| {
            let words: Vec<_> = line.split(' ').collect();
            format!("{} {} {}", words[2], words[1], words[3])
        };
        nginx_log(&self.home.path("nginx")).iter().map(words).collect()
    }

    fn pins(&self) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.home.path(".selfheal/state/pins.jsonl")).unwrap_or_default();
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    }
}

#[test]
fn a_pinned_model_is_asked_for_then_fetched_from_the_file_server() {
    let file = content(60, 200_000);
    let Some(hub) = Hub::new(home_of(&file), &file, &file) else { return };
    let output = run(&mut hub.fetch(&["m"]));
    assert_eq!((output.code, output.field(1)), (0, "healed".into()), "{output:?}");
    assert!(output.field(4).contains("from https://huggingface.co,"), "{output:?}");
    let path = format!("/o/n/resolve/{REVISION}/m.gguf");
    let expected = [
        format!("HEAD huggingface.co {path}"),
        format!("GET huggingface.co {path}"),
        "GET cdn-lfs.hf.co /file".to_owned(),
    ];
    assert_eq!(hub.asked(), expected);
    let tunnels: Vec<_> = hub.tunnel.asked().iter().map(|a| a.path.clone()).collect();
    assert!(tunnels.contains(&"huggingface.co:443".into()) && tunnels.contains(&"cdn-lfs.hf.co:443".into()));
    assert!(!output.err().contains("Signature"), "{output:?}");
}

#[test]
fn a_changed_upstream_is_known_from_the_redirect_alone() {
    let file = content(61, 200_000);
    let mut other = file.to_vec();
    other[7] ^= 1;
    let Some(hub) = Hub::new(home_of(&file), &other, &other) else { return };
    let output = run(&mut hub.fetch(&["m"]));
    assert_eq!((output.code, output.field(1)), (3, "bad".into()), "{output:?}");
    assert!(output.field(4).starts_with("changed: https://huggingface.co has sha256 "), "{output:?}");
    assert_eq!(hub.asked().len(), 1, "{:?}", hub.asked());
}

#[test]
fn a_file_that_the_hub_does_not_have_is_not_found() {
    let file = content(62, 1000);
    let home = home_with(&Model { repository: Some("o/gone"), ..Model::of(&file) }, &[]);
    let Some(hub) = Hub::new(home, &file, &file) else { return };
    let output = run(&mut hub.fetch(&["m"]));
    assert_eq!((output.code, output.field(1)), (3, "bad".into()), "{output:?}");
    assert!(output.field(4).starts_with("not found: https://huggingface.co/o/gone/resolve/"), "{output:?}");
}

#[test]
fn what_was_learned_is_held_to() {
    let file = content(63, 200_000);
    let home = home_with(&Model { sha: None, revision: None, ..Model::of(&file) }, &[]);
    let Some(hub) = Hub::new(home, &file, &file) else { return };
    // In check mode it is only said.
    let output = run(hub.fetch(&["m", "--learn"]).env("SELFHEAL_MODE", "check"));
    assert_eq!((output.code, output.field(1), hub.asked().len()), (5, "would".into(), 0), "{output:?}");
    // An endpoint could say anything: without a pin it is left aside.
    let output = run(hub.fetch(&["m", "--learn"]).env("HF_ENDPOINT", "https://mirror.example"));
    assert_eq!((output.code, output.field(1)), (0, "healed".into()), "{output:?}");
    assert!(output.err().contains("HF_ENDPOINT is left aside"), "{output:?}");
    let pins = hub.pins();
    assert_eq!(pins.len(), 1);
    assert_eq!(pins[0]["sha256"], sha(&file).hex().as_str());
    assert_eq!((pins[0]["bytes"].as_u64(), pins[0]["revision"].as_str()), (Some(200_000), Some(COMMIT)));
    // Right now without a request; gone, it comes back by the pin and its commit, without --learn.
    let asked = hub.asked().len();
    assert_eq!(run(&mut hub.fetch(&["m"])).field(1), "ok");
    assert_eq!(hub.asked().len(), asked);
    fs::remove_file(target(&hub.home)).unwrap();
    let output = run(&mut hub.fetch(&["m"]));
    assert_eq!((output.code, output.field(1)), (0, "healed".into()), "{output:?}");
    assert_eq!(hub.asked()[asked], format!("HEAD huggingface.co /o/n/resolve/{COMMIT}/m.gguf"));
    assert_eq!(hub.pins().len(), 1);
    // Another file of the same size upstream is refused: that is what the pin is for.
    fs::remove_file(target(&hub.home)).unwrap();
    let mut other = file.to_vec();
    other[100] ^= 1;
    fs::write(hub.home.path("nginx/www/file"), &other).unwrap();
    let output = run(&mut hub.fetch(&["m", "--learn"]));
    assert_eq!((output.code, output.field(1)), (3, "failed".into()), "{output:?}");
    assert!(output.field(4).starts_with("corrupt: "), "{output:?}");
}

#[test]
fn learning_believes_the_digest_that_the_hub_gives_over_the_bytes_that_came() {
    let file = content(64, 200_000);
    let mut damaged = file.to_vec();
    damaged[100] ^= 1;
    let home = home_with(&Model { sha: None, ..Model::of(&file) }, &[]);
    let Some(hub) = Hub::new(home, &damaged, &file) else { return };
    let output = run(&mut hub.fetch(&["m", "--learn"]));
    assert!(output.field(4).starts_with("corrupt: "), "{output:?}");
    assert!(hub.pins().is_empty() && listing(&hub.home).is_empty());
    // A model that is there and is what the hub has is learned without fetching it.
    hub.home.file(".selfheal/models/m.gguf", &**file);
    let output = run(&mut hub.fetch(&["m", "--learn"]));
    assert_eq!((output.code, output.field(1)), (0, "ok".into()), "{output:?}");
    assert_eq!(hub.pins()[0]["sha256"], sha(&file).hex().as_str());
}

#[test]
fn a_size_that_contradicts_the_manifest_is_not_learned() {
    let file = content(65, 200_000);
    let home = home_with(&Model { sha: None, bytes: 200_001, ..Model::of(&file) }, &[]);
    let Some(hub) = Hub::new(home, &file, &file) else { return };
    let output = run(&mut hub.fetch(&["m", "--learn"]));
    assert_eq!((output.code, output.field(1)), (3, "bad".into()), "{output:?}");
    assert!(output.field(4).starts_with("changed: "), "{output:?}");
    assert!(hub.pins().is_empty());
}

#[test]
fn a_file_outside_the_manifest_is_learned_by_its_path() {
    let file = content(66, 200_000);
    let Some(hub) = Hub::new(home_of(b"x"), &file, &file) else { return };
    let output = run(&mut hub.fetch(&["o/n/other.gguf"]));
    assert_eq!((output.code, output.field(1), hub.asked().len()), (3, "bad".into(), 0), "{output:?}");
    let output = run(&mut hub.fetch(&["o/n/other.gguf", "--learn"]));
    assert_eq!(
        (output.code, output.field(1), output.field(3)),
        (0, "healed".into(), "o/n/other.gguf".into())
    );
    assert_eq!(listing(&hub.home), ["other.gguf"]);
    let output = run(&mut hub.fetch(&["o/n/other.gguf"]));
    assert_eq!((output.code, output.field(1)), (0, "ok".into()), "{output:?}");
}

/// Callers that learn the same file at once: one fetches it.
#[test]
fn parallel_learners_fetch_once() {
    let file = content(67, 5_000_000);
    let home = home_with(&Model { sha: None, ..Model::of(&file) }, &[]);
    let Some(hub) = Hub::new(home, &file, &file) else { return };
    let codes: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> =
            (0..4).map(|_| scope.spawn(|| run(&mut hub.fetch(&["m", "--learn"])).code)).collect();
        started.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(codes, [0; 4]);
    assert_eq!(
        hub.asked().iter().filter(|a| *a == "GET cdn-lfs.hf.co /file").count(),
        1,
        "{:?}",
        hub.asked()
    );
}
