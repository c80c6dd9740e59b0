//! What of an engine's output is the answer, and whether there is one.

use crate::template::Thoughts;

/// llama-completion's mark that the model ended by itself, and the two newlines that end every complete output.
const ENDED: &[u8] = b" [end of text]\n\n\n";
const END: &[u8] = b"\n\n";

const OPEN: &[u8] = b"<think>";
const CLOSE: &[u8] = b"</think>";

/// How far behind its beginning the echo of a prompt may start: a token that begins a text, a space.
const BEFORE_ECHO: usize = 64;

/// Why a complete output holds no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoAnswer {
    /// Not one byte.
    Empty,
    /// Only white space.
    Blank,
    /// The prompt and nothing else.
    Echo,
    /// The prompt comes back changed, so that what follows it cannot be told from it.
    Mixed,
    /// Only thoughts, finished or not.
    ThinkOnly,
}

impl NoAnswer {
    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Empty => "empty answer",
            Self::Blank => "only white space",
            Self::Echo => "only the prompt came back",
            Self::Mixed => "the prompt came back changed, the answer cannot be told from it",
            Self::ThinkOnly => "only thoughts, no answer after them",
        }
    }
}

/// Takes llama-completion's end mark off; `None` when the end is missing and output was lost.
pub(crate) fn without_end(stdout: &[u8]) -> Option<&[u8]> {
    stdout.strip_suffix(ENDED).or_else(|| stdout.strip_suffix(END))
}

/// Takes the echo of the prompt off the beginning.
pub(crate) fn without_echo<'o>(output: &'o [u8], prompt: &str) -> Result<&'o [u8], NoAnswer> {
    let prompt = prompt.trim_end().as_bytes();
    let reach = output.len().min(prompt.len() + BEFORE_ECHO);
    match find(&output[..reach], prompt) {
        Some(at) => Ok(&output[at + prompt.len()..]),
        None if output.is_empty() => Err(NoAnswer::Empty),
        None => Err(NoAnswer::Mixed),
    }
}

/// The answer in a model's text: thoughts, blank lines at both ends and half a character at the end taken off.
pub(crate) fn judge<'o>(text: &'o [u8], prompt: &str, thoughts: Thoughts) -> Result<&'o [u8], NoAnswer> {
    let opened = |rest: &'o [u8]| rest.trim_ascii_start().strip_prefix(OPEN);
    let mut rest = text;
    let mut thought = false;
    if opened(rest).is_none() {
        match (thoughts, find(rest, CLOSE)) {
            (Thoughts::Unexpected, _) | (Thoughts::ByModel, None) => {}
            (Thoughts::ByPrompt, None) => return Err(NoAnswer::ThinkOnly),
            (_, Some(end)) => (rest, thought) = (&rest[end + CLOSE.len()..], true),
        }
    }
    while let Some(inside) = opened(rest) {
        let end = find(inside, CLOSE).ok_or(NoAnswer::ThinkOnly)?;
        (rest, thought) = (&inside[end + CLOSE.len()..], true);
    }
    let answer = without_blank_lines(whole_characters(rest));
    if answer.is_empty() {
        return Err(match (thought, text.is_empty()) {
            (true, _) => NoAnswer::ThinkOnly,
            (false, true) => NoAnswer::Empty,
            (false, false) => NoAnswer::Blank,
        });
    }
    if answer.trim_ascii() == prompt.trim().as_bytes() {
        return Err(NoAnswer::Echo);
    }
    Ok(answer)
}

/// Without blank lines before and behind; the first line keeps its indentation.
fn without_blank_lines(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii_end();
    let ink = text.len() - text.trim_ascii_start().len();
    let line = text[..ink].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    &text[line..]
}

/// Without a UTF-8 sequence that the last token cut in two; other bytes that are no UTF-8 stay.
fn whole_characters(text: &[u8]) -> &[u8] {
    for back in 1..=text.len().min(3) {
        let at = text.len() - back;
        let needed = match text[at] {
            0x80..=0xbf => continue,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => 1,
        };
        return if needed > back { &text[..at] } else { text };
    }
    text
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    if what.is_empty() { None } else { text.windows(what.len()).position(|w| w == what) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_told_from_what_is_none() {
        use Thoughts::{ByModel, ByPrompt, Unexpected};
        let tags = "Close it with </think>, open it with <think>.";
        let cases: &[(&str, Thoughts, Result<&str, NoAnswer>)] = &[
            ("Paris.", Unexpected, Ok("Paris.")),
            ("\n\n  Paris.\n \n", Unexpected, Ok("  Paris.")),
            ("", Unexpected, Err(NoAnswer::Empty)),
            (" \n\t ", Unexpected, Err(NoAnswer::Blank)),
            ("Where? ", Unexpected, Err(NoAnswer::Echo)),
            ("Where? There.", Unexpected, Ok("Where? There.")),
            ("<think>\nhm", Unexpected, Err(NoAnswer::ThinkOnly)),
            ("\n<think>\nhm</think>\n\n", Unexpected, Err(NoAnswer::ThinkOnly)),
            ("<think>\n\n</think>\n\nParis", Unexpected, Ok("Paris")),
            ("<think>a</think><think>b</think>Paris", Unexpected, Ok("Paris")),
            ("<think>a</think><think>b", Unexpected, Err(NoAnswer::ThinkOnly)),
            ("hm</think>\nParis", ByModel, Ok("Paris")),
            ("Paris", ByModel, Ok("Paris")),
            ("hm</think>\nParis", ByPrompt, Ok("Paris")),
            ("<think>hm</think>\nParis", ByPrompt, Ok("Paris")),
            ("hm", ByPrompt, Err(NoAnswer::ThinkOnly)),
            ("hm</think>\n", ByPrompt, Err(NoAnswer::ThinkOnly)),
            ("", ByPrompt, Err(NoAnswer::ThinkOnly)),
            // The words as words are not touched.
            (tags, Unexpected, Ok(tags)),
            ("It prints ' [end of text]'", Unexpected, Ok("It prints ' [end of text]'")),
            ("EOF by user", Unexpected, Ok("EOF by user")),
        ];
        for (text, thoughts, expected) in cases {
            let got = judge(text.as_bytes(), "Where?\n", *thoughts);
            assert_eq!(got, expected.map(str::as_bytes), "{text:?} {thoughts:?}");
        }
    }

    #[test]
    fn the_end_mark_goes_and_the_same_words_before_it_stay() {
        let cases: &[(&str, Option<&str>)] = &[
            ("a [end of text]\n\n\n", Some("a")),
            ("a [end of text] [end of text]\n\n\n", Some("a [end of text]")),
            // The token limit was reached right behind the literal words: no mark follows.
            ("a [end of text]\n\n", Some("a [end of text]")),
            ("a\n\n", Some("a")),
            ("\n\n", Some("")),
            ("a\n", None),
            ("a", None),
            ("", None),
        ];
        for (output, expected) in cases {
            assert_eq!(without_end(output.as_bytes()), expected.map(str::as_bytes), "{output:?}");
        }
    }

    #[test]
    fn the_echo_is_found_behind_a_beginning_token_and_not_in_the_answer() {
        let cut = |output: &str| {
            without_echo(output.as_bytes(), "Say it\n").map(|rest| String::from_utf8_lossy(rest).into_owned())
        };
        assert_eq!(cut("<s> Say it: done").as_deref(), Ok(": done"));
        assert_eq!(cut("Say it").as_deref(), Ok(""));
        assert_eq!(cut(""), Err(NoAnswer::Empty));
        assert_eq!(cut("say  IT: done"), Err(NoAnswer::Mixed));
        let far = format!("{}Say it", "x".repeat(99));
        assert_eq!(cut(&far), Err(NoAnswer::Mixed));
    }

    #[test]
    fn half_a_character_at_the_end_is_not_printed() {
        let cases: &[(&[u8], &[u8])] = &[
            (b"a\xc3", b"a"),
            (b"a\xe2\x82", b"a"),
            (b"a\xf0\x9f\x98", b"a"),
            ("a\u{e9}".as_bytes(), "a\u{e9}".as_bytes()),
            ("\u{1f600}".as_bytes(), "\u{1f600}".as_bytes()),
            (b"a\xff", b"a\xff"),
            (b"\x80\x80\x80\x80", b"\x80\x80\x80\x80"),
            (b"", b""),
        ];
        for (text, expected) in cases {
            assert_eq!(whole_characters(text), *expected, "{text:?}");
        }
    }
}
