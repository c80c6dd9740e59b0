//! Why a run gave no answer, told apart.

use std::path::PathBuf;
use std::time::Duration;

use child::signal_name as name;
use contract::message::{one_line, quoted};
use engine::Health;

use crate::answer::NoAnswer;

/// Why a run gave no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A program of the engine is damaged; no model is to blame.
    Engine {
        /// What is so of it.
        health: Health,
        /// Which one.
        program: PathBuf,
    },
    /// This process was told to end by this signal.
    Interrupted(i32),
    /// The kernel or the engine found no memory; the peak in bytes.
    OutOfMemory(u64),
    /// Somebody sent KILL; the peak in bytes.
    Killed(u64),
    /// It died of another signal.
    Crashed(i32),
    /// The bound was reached.
    Expired {
        /// The bound.
        limit: Duration,
        /// Whether part of an answer had come.
        begun: bool,
    },
    /// More output than any answer has.
    Endless(u64),
    /// It asked something and was given end of input.
    Asks(String),
    /// The prompt does not fit the context.
    TooLong {
        /// Tokens of the prompt.
        tokens: u32,
        /// Tokens that fit.
        most: u32,
    },
    /// The engine does not recognise the model's template as one it has built in.
    UnknownTemplate,
    /// It ended 0 without the signs of a complete output.
    Lost,
    /// A complete output without an answer.
    NoAnswer(NoAnswer),
    /// Another status, and the last thing it said.
    Status(u8, String),
}

impl Failure {
    /// The cause in words, for a person.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Engine { health, .. } => health.words(),
            Self::Interrupted(signal) => format!("interrupted by SIG{}", name(*signal)),
            Self::OutOfMemory(peak) => format!("out of memory, peak {} MiB", peak >> 20),
            Self::Killed(peak) => format!("killed from outside (137), peak {} MiB", peak >> 20),
            Self::Crashed(signal) => format!("crashed: SIG{} ({})", name(*signal), 128 + signal),
            Self::Expired { limit, begun } => {
                let when = if *begun { "in the middle of its answer" } else { "before its first word" };
                format!("expired after {} s, {when}", seconds(*limit))
            }
            Self::Endless(bytes) => format!("never ends: cut after {bytes} bytes of output"),
            Self::Asks(question) => {
                format!("asks a question and was given end of input: {}", quoted(question.as_ref()))
            }
            Self::TooLong { tokens, most } => {
                format!("prompt too long: {tokens} tokens, the context holds {most}")
            }
            Self::UnknownTemplate => "the engine has the model's chat template not built in".into(),
            Self::Lost => "incomplete: ended 0 and lost the end of its output".into(),
            Self::NoAnswer(why) => why.words().into(),
            Self::Status(status, said) if said.is_empty() => format!("ended with {status}"),
            Self::Status(status, said) => format!("ended with {status}: {said}"),
        }
    }
}

/// A duration in whole seconds, rounded up.
pub(crate) fn seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// The question that a program left behind as its last words, on either stream.
pub(crate) fn question(stdout: &[u8], stderr: &[u8]) -> Option<String> {
    const ENDINGS: &[&str] =
        &["?", "(y)", "(y/n)", "[y/n]", "(yes/no)", "[yes/no]", "password:", "passphrase:", "username:"];
    [stdout, stderr].into_iter().find_map(|stream| {
        let line = last_line(stream);
        let low = line.to_ascii_lowercase();
        ENDINGS
            .iter()
            .any(|e| low.trim_end_matches([':', '>', ' ']).ends_with(e) || low.ends_with(e))
            .then_some(line)
    })
}

/// The last thing that was said on standard error, without the log's time and level.
pub(crate) fn last_words(stderr: &[u8]) -> String {
    let line = last_line(stderr);
    match line.split_once(" E ") {
        Some((time, said)) if !time.contains(|c: char| c.is_alphabetic()) => said.trim().to_owned(),
        _ => line,
    }
}

/// The last line that is not blank, escaped and of a bearable length.
fn last_line(stream: &[u8]) -> String {
    let text = String::from_utf8_lossy(&stream[stream.len().saturating_sub(4096)..]).into_owned();
    let line = text.lines().rev().map(str::trim).find(|l| !l.is_empty()).unwrap_or("");
    one_line(&line.chars().take(200).collect::<String>())
}

/// The counts in the engine's `prompt is too long (15008 tokens, max 508)`.
pub(crate) fn too_long(stderr: &str) -> Option<Failure> {
    let (_, rest) = stderr.rsplit_once("prompt is too long (")?;
    let (tokens, rest) = rest.split_once(" tokens, max ")?;
    let (most, _) = rest.split_once(')')?;
    Some(Failure::TooLong { tokens: tokens.parse().ok()?, most: most.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_recognised_by_its_end() {
        let asks = |text: &str| question(text.as_bytes(), b"").is_some();
        for text in [
            "Ok to proceed? (y) ",
            "Continue [Y/n]",
            "Sure?\n",
            "Password: ",
            "Overwrite (yes/no): ",
            "Name? > ",
        ] {
            assert!(asks(text), "{text:?}");
        }
        for text in ["", "error: bad value", "usage:", "Done.", "What? No."] {
            assert!(!asks(text), "{text:?}");
        }
        assert_eq!(question(b"", b"log\nProceed? (y) ").as_deref(), Some("Proceed? (y)"));
    }

    #[test]
    fn the_engines_last_words_lose_their_time() {
        assert_eq!(
            last_words(b"a\n0.00.443.186 E llama_completion: no model\n\n"),
            "llama_completion: no model"
        );
        assert_eq!(last_words(b"plain E words\x1b[0m"), "plain E words\\u{1b}[0m");
        assert_eq!(last_words(b""), "");
    }

    #[test]
    fn the_counts_of_a_long_prompt_are_read() {
        let text = "0.1 E llama_completion: prompt is too long (15008 tokens, max 508)\n";
        assert!(matches!(too_long(text), Some(Failure::TooLong { tokens: 15008, most: 508 })));
        assert!(too_long("prompt is too long").is_none());
    }
}
