//! A home with a fake engine, small sound models and a manifest of its own: for failure paths only.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unreachable_pub, reason = "a module of two test programs, exported by none")]
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::private_home::{Home, Output, run};

/// What the fake engine's `--help` lists: the shape of today's help.
pub const HELP: &str = "-t,    --threads N   threads\n-c,    --ctx-size N   context\n\
    -n,    --predict, --n-predict N   tokens\n-f,    --file FNAME   a file\n-m,    --model FNAME   path\n\
    -e,    --escape, --no-escape   escapes\n--temp, --temperature N   temperature\n\
    --display-prompt, --no-display-prompt   display\n--warmup, --no-warmup   warm up\n\
    -cnv,  --conversation, -no-cnv, --no-conversation   conversation\n-st,   --single-turn   one turn\n\
    --jinja, --no-jinja   templates\n--chat-template-file FILE   template\n--simple-io   plain\n";

/// What every fake does before its body: records its arguments, its environment and the files it was given, and
/// offers `answer TEXT` (a complete output), `calls` (how many runs there were) and `$given` (its arguments).
const RECORD: &str = r#"f=$HOME/fake
given="$*"
printf '%s\n' "${0##*/} $*" >>"$f/calls"
env >"$f/env"
while [ $# -gt 0 ]; do
  case $1 in
  -f) cat "$2" >"$f/prompt" ;;
  --chat-template-file) cat "$2" >"$f/template" ;;
  esac
  shift
done
calls() { wc -l <"$f/calls"; }
answer() { printf '%s [end of text]\n\n\n' "$1"; echo 'common_perf_print: total' >&2; }
"#;

/// A template that can be told to stop thinking, and one that knows nothing of thoughts.
pub const SWITCHED: &str = "{% if add_generation_prompt %}{% if enable_thinking is false %}{{ '<think></think>' }}{% endif %}{% endif %}";
pub const PLAIN: &str = "{% if add_generation_prompt %}{{ '<|im_start|>assistant' }}{% endif %}";

/// A home with an engine whose `llama-completion` has this body.
pub struct Fake {
    pub home: Home,
}

impl Fake {
    /// The engine, the five roles of [`ROLES`] in the manifest, and the scout's model in its place.
    pub fn new(body: &str) -> Self {
        let fake = Self { home: Home::new() };
        fake.home.file("fake/help", HELP);
        fake.program("llama-completion", body);
        fake.manifest(1.0);
        fake.model("scout");
        fake
    }

    /// A program of the engine that tells its version and its options, or with `simple` its usage.
    pub fn program(&self, name: &str, body: &str) -> PathBuf {
        let known = if name == "llama-simple" {
            "--version) echo 'example usage:'; exit 1 ;;"
        } else {
            "--version) echo 'version: 7 (fake)' >&2; exit 0 ;;\n--help) cat \"$HOME/fake/help\"; exit 0 ;;"
        };
        self.raw_program(name, &format!("case $1 in\n{known}\nesac\n{RECORD}{body}"))
    }

    /// A program of the engine that is nothing but this script.
    pub fn raw_program(&self, name: &str, body: &str) -> PathBuf {
        self.home.script(&format!("llama.cpp/build/bin/{name}"), body)
    }

    /// Takes a program of the engine away.
    pub fn remove(&self, name: &str) {
        fs::remove_file(self.home.path("llama.cpp/build/bin").join(name)).unwrap();
    }

    /// Writes the manifest; each run may take `base_s` seconds and a hundredth per token.
    pub fn manifest(&self, base_s: f64) {
        let models: Vec<_> = ROLES
            .iter()
            .map(|(role, light, test)| {
                let bytes = gguf(role, Some(template(role))).len();
                format!(
                    "{{\"role\":\"{role}\",\"file\":\"{role}.gguf\",\"bytes\":{bytes},\"sha256\":null,\"light\":{light},\
                     \"test\":{test},\"base_s\":{base_s},\"ms_per_token\":10,\"cap_s\":20,\"default_tps\":30}}"
                )
            })
            .collect();
        let text = format!(
            "{{\"version\":1,\"models\":[{}],\"engine\":{{\"remote\":\"x\",\"tag\":\"x\",\"archives\":[]}}}}",
            models.join(",\n")
        );
        self.home.file("manifest.json", text);
    }

    /// Replaces the first occurrence of a text in the manifest.
    pub fn edit_manifest(&self, from: &str, to: &str) {
        let text = fs::read_to_string(self.home.path("manifest.json")).unwrap();
        assert!(text.contains(from), "{from}");
        self.home.file("manifest.json", text.replacen(from, to, 1));
    }

    /// Puts a role's model in its place.
    pub fn model(&self, role: &str) -> PathBuf {
        self.home.file(&format!(".selfheal/models/{role}.gguf"), gguf(role, Some(template(role))))
    }

    /// All of [`ROLES`] in their places.
    pub fn all_models(&self) {
        for (role, ..) in ROLES {
            self.model(role);
        }
    }

    /// `run-guarded` with these operands.
    pub fn command(&self, operands: &[&str]) -> Command {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_run-guarded"));
        command.args(operands).env("SELFHEAL_MANIFEST", self.home.path("manifest.json"));
        command
    }

    /// Runs it to the end.
    pub fn ask(&self, operands: &[&str]) -> Output {
        run(&mut self.command(operands))
    }

    /// The command lines of the runs so far, the program's name first.
    pub fn calls(&self) -> Vec<String> {
        self.recorded("calls").lines().map(str::to_owned).collect()
    }

    /// What the last run recorded: `env`, `prompt`, `template`.
    pub fn recorded(&self, what: &str) -> String {
        fs::read_to_string(self.home.path("fake").join(what)).unwrap_or_default()
    }

    /// The home without what the fake engine records.
    pub fn census(&self) -> Vec<String> {
        self.home.census().into_iter().filter(|line| !line.contains("/fake")).collect()
    }
}

/// Role, light, test.
pub const ROLES: [(&str, bool, bool); 5] = [
    ("scout", true, false),
    ("spark", true, false),
    ("forge", true, false),
    ("sage", false, false),
    ("demo", true, true),
];

/// The template of a role's model: the slow one thinks.
pub fn template(role: &str) -> &'static str {
    if role == "sage" { SWITCHED } else { PLAIN }
}

/// A sound GGUF file with one tensor of 32 floats, 1024 tokens of context, and a name that makes it this role's.
pub fn gguf(role: &str, template: Option<&str>) -> Vec<u8> {
    aligned_gguf(role, template, 32)
}

/// The same with another alignment: below 32 it is sound and may abort the engine.
pub fn aligned_gguf(role: &str, template: Option<&str>, alignment: u32) -> Vec<u8> {
    fn string(text: &str) -> Vec<u8> {
        [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
    }
    let mut keys = vec![
        [string("general.architecture"), 8_u32.to_le_bytes().to_vec(), string("llama")].concat(),
        [string("general.name"), 8_u32.to_le_bytes().to_vec(), string(role)].concat(),
        [string("llama.context_length"), 4_u32.to_le_bytes().to_vec(), 1024_u32.to_le_bytes().to_vec()]
            .concat(),
        [string("general.alignment"), 4_u32.to_le_bytes().to_vec(), alignment.to_le_bytes().to_vec()]
            .concat(),
    ];
    if let Some(template) = template {
        keys.push(
            [string("tokenizer.chat_template"), 8_u32.to_le_bytes().to_vec(), string(template)].concat(),
        );
    }
    let mut bytes = b"GGUF".to_vec();
    bytes.extend(3_u32.to_le_bytes());
    bytes.extend(1_u64.to_le_bytes());
    bytes.extend((keys.len() as u64).to_le_bytes());
    bytes.extend(keys.concat());
    bytes.extend(string("token_embd.weight"));
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(32_u64.to_le_bytes());
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(0_u64.to_le_bytes());
    bytes.resize(bytes.len().next_multiple_of(alignment as usize), 0);
    bytes.extend((0..32_u8).flat_map(|n| f32::from(n).to_le_bytes()));
    bytes
}
