//! The engine's command line: which options, which environment, how the prompt is handed over.

use std::fs::File;
use std::path::Path;

use child::Run;
use contract::Error;

use crate::model::Ready;
use crate::programs::Full;
use crate::prompt::{Prompt, in_memory};
use crate::template::{self, Thoughts};

/// How the prompt is put to the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Style {
    /// In the model's own template, rendered as it stands.
    Own,
    /// In the model's own template with thinking off.
    Unthinking,
    /// In the built-in template that the engine recognises the model's own as. It leaves out the system text that
    /// some templates put in front of every conversation.
    Known,
    /// As it stands.
    Raw,
}

/// One way to run a model.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// How the prompt is put.
    pub(crate) style: Style,
    /// Tokens of the prompt when an earlier run counted them.
    pub(crate) counted: Option<u32>,
    /// With the fewest options, on the simplest program that may have the prompt.
    pub(crate) minimal: bool,
}

/// Room for what a template puts around the prompt, in tokens.
const TEMPLATE: u64 = 256;
/// Contexts come in multiples of this.
const ROUND: u64 = 256;
/// The smallest context asked for.
const LEAST: u64 = 512;

/// The first step for a model: its chat template in a single turn where the engine can, thinking off for a light
/// role, else the prompt as it stands.
pub(crate) fn first(full: &Full, ready: &Ready) -> Step {
    let style = match &ready.chat_template {
        Some(template) if full.has("-st") => {
            if !template::thinks(template) || !renders(full) {
                Style::Known
            } else if ready.model.light {
                Style::Unthinking
            } else {
                Style::Own
            }
        }
        _ => Style::Raw,
    };
    Step { style, counted: None, minimal: false }
}

/// Whether the engine renders templates, and a changed one too.
pub(crate) fn renders(full: &Full) -> bool {
    full.has("--jinja") && full.has("--chat-template-file")
}

/// Where the thoughts of an answer begin that was made in this style.
pub(crate) fn thoughts(style: Style, ready: &Ready) -> Thoughts {
    match (style, &ready.chat_template) {
        (Style::Own, Some(template)) => template::thoughts(template),
        (Style::Known, Some(template)) if template::thinks(template) => Thoughts::ByModel,
        _ => Thoughts::Unexpected,
    }
}

/// A command, and the files it reads, which must stay open while it runs.
pub(crate) struct Line {
    pub(crate) run: Run,
    files: Vec<File>,
}

impl Line {
    fn new(program: &Path) -> Self {
        // Threads that wait spin by default: on a shared core that costs up to nine tenths of the speed.
        let run = engine::unswayed(program).quiet_env();
        let run = run.env("OMP_WAIT_POLICY", "passive").env("GGML_NO_BACKTRACE", "1");
        Self { run, files: Vec::new() }
    }

    fn args<const N: usize>(mut self, args: [&str; N]) -> Self {
        self.run = self.run.args(args);
        self
    }

    /// An option with a file in memory as its value.
    fn file(mut self, option: &str, file: File) -> Self {
        self.run = self.run.inherit(&file).arg(option).arg(files::memory::path(&file));
        self.files.push(file);
        self
    }

    /// An option without a value, where the program has it.
    fn maybe(self, full: &Full, option: &str) -> Self {
        if full.has(option) { self.args([option]) } else { self }
    }

    /// Runs it. The files stay open until it has ended.
    pub(crate) fn run(self, bounds: impl FnOnce(Run) -> Run) -> child::Outcome {
        let outcome = bounds(self.run).run();
        drop(self.files);
        outcome
    }
}

/// `llama-simple`: model, count, prompt. What it does not know becomes part of the prompt.
pub(crate) fn simple(program: &Path, ready: &Ready, prompt: &Prompt, tokens: u32) -> Line {
    let mut line = Line::new(program);
    line.run = line.run.arg("-m").arg(&ready.path).arg("-n").arg(tokens.to_string());
    // A prompt that reads like an option is not one behind a space.
    let space = if prompt.text.starts_with('-') { " " } else { "" };
    line.run = line.run.arg(format!("{space}{}", prompt.text));
    line
}

/// The program with options, all of those that serve or only the necessary ones.
pub(crate) fn full(
    full: &Full,
    ready: &Ready,
    prompt: &Prompt,
    tokens: u32,
    step: &Step,
) -> Result<Line, Error> {
    let mut line = Line::new(&full.path);
    line.run = line.run.arg("-m").arg(&ready.path);
    line = if full.has("-f") { line.file("-f", prompt.file()?) } else { line.args(["-p", &prompt.text]) };
    let context = context(prompt.text.len(), step.counted, tokens, ready.context_length).to_string();
    line = line.args(["-n", &tokens.to_string(), "-c", &context]).maybe(full, "--no-escape");
    if full.has("-t") {
        line = line.args(["-t", &engine::threads::available().to_string()]);
    }
    line = match (step.style, &ready.chat_template) {
        (Style::Known, _) => line.args(["-st"]),
        (Style::Own, _) => line.args(["-st", "--jinja"]),
        (Style::Unthinking, Some(template)) => line
            .args(["-st", "--jinja"])
            .file("--chat-template-file", in_memory(&template::without_thinking(template))?),
        (Style::Raw | Style::Unthinking, _) => line.maybe(full, "-no-cnv"),
    };
    if !step.minimal {
        if full.has("--temp") {
            line = line.args(["--temp", "0"]);
        }
        for option in ["--no-warmup", "--no-display-prompt", "--simple-io"] {
            line = line.maybe(full, option);
        }
    }
    Ok(line)
}

/// The context to ask for: the prompt, the answer and a template, at most what the model was made for. A token
/// is a byte at worst and three bytes or more in any long text; should a long one be worse, the engine counts its
/// tokens and says so.
fn context(bytes: usize, counted: Option<u32>, tokens: u32, most: Option<u64>) -> u64 {
    let bytes = bytes as u64;
    let prompt = counted.map_or(bytes.min(1024.max(bytes / 3)), u64::from);
    let wanted = (prompt + u64::from(tokens) + TEMPLATE).next_multiple_of(ROUND).max(LEAST);
    most.map_or(wanted, |most| wanted.min(most.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_fits_prompt_and_answer_and_never_exceeds_the_models() {
        assert_eq!(context(10, None, 64, Some(8192)), 512);
        assert_eq!(context(1000, None, 64, Some(8192)), 1536);
        assert_eq!(context(9000, None, 64, Some(8192)), 3328);
        assert_eq!(context(1 << 20, None, 64, Some(8192)), 8192);
        assert_eq!(context(1 << 20, None, 64, None), 349_952);
        assert_eq!(context(9000, Some(8000), 64, Some(40960)), 8448);
        assert_eq!(context(10, None, 64, Some(256)), 256);
    }
}
