//! Which model answers: `auto` by the length of the prompt, a name by itself, and who stands in for whom.

use crate::manifest::{Manifest, Model};

/// The role that answers short questions and is the last step of every fallback.
pub const SCOUT: &str = "scout";
/// The role that answers everything else under `auto`.
pub const SPARK: &str = "spark";
/// The word that leaves the choice to [`route`].
pub const AUTO: &str = "auto";

/// A prompt of at most so many words is a short question.
const SHORT_WORDS: usize = 8;
/// A short question gets at most so many tokens.
const SHORT_TOKENS: u32 = 96;

/// The role a prompt goes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// The role.
    pub role: String,
    /// Tokens the answer may have.
    pub tokens: u32,
}

/// Routes a prompt. Words are counted as `wc -w` counts them. `auto` never chooses a slow or a coding model:
/// what a prompt is about cannot be told from its length, so those are for the caller to name.
pub fn route(asked: &str, prompt: &str, tokens: u32) -> Route {
    if asked != AUTO {
        return Route { role: asked.to_owned(), tokens };
    }
    if prompt.split_whitespace().nth(SHORT_WORDS).is_none() {
        return Route { role: SCOUT.to_owned(), tokens: tokens.min(SHORT_TOKENS) };
    }
    Route { role: SPARK.to_owned(), tokens }
}

/// Who may answer, best first: the routed role; under `auto` then every other light role, else the scout.
/// Test roles and slow ones are there only when they are the routed role.
pub fn candidates<'m>(manifest: &'m Manifest, asked: &str, routed: &str) -> Vec<&'m Model> {
    let stand_in = |m: &&Model| m.role != routed && if asked == AUTO { m.light } else { m.role == SCOUT };
    manifest.role(routed).into_iter().chain(manifest.everyday().filter(stand_in)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped() -> Manifest {
        Manifest::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifest.json").as_ref()).unwrap()
    }

    #[test]
    fn auto_goes_by_eight_words_and_ninety_six_tokens() {
        let cases = [
            ("auto", "one", 64, "scout", 64),
            ("auto", "one two three four five six seven eight", 500, "scout", 96),
            ("auto", " one\ttwo three\n\nfour five six  seven eight \n", 97, "scout", 96),
            ("auto", "one two three four five six seven eight nine", 500, "spark", 500),
            ("scout", "one", 500, "scout", 500),
            ("sage", "one", 500, "sage", 500),
        ];
        for (asked, prompt, tokens, role, granted) in cases {
            assert_eq!(
                route(asked, prompt, tokens),
                Route { role: role.into(), tokens: granted },
                "{asked} {prompt:?}"
            );
        }
    }

    #[test]
    fn neither_a_slow_nor_a_test_role_stands_in() {
        let manifest = shipped();
        let roles = |asked: &str, routed: &str| -> Vec<String> {
            candidates(&manifest, asked, routed).iter().map(|m| m.role.clone()).collect()
        };
        assert_eq!(roles("auto", "scout"), ["scout", "spark", "forge"]);
        assert_eq!(roles("auto", "spark"), ["spark", "scout", "forge"]);
        assert_eq!(roles("sage", "sage"), ["sage", "scout"]);
        assert_eq!(roles("demo", "demo"), ["demo", "scout"]);
        assert_eq!(roles("scout", "scout"), ["scout"]);
    }
}
