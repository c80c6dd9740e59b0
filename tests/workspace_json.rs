//! Every file of `JSONTestSuite` against the parser of the manifest.

use workspace::json;

const SUITE: &str = include_str!("vectors/jsontestsuite/test_parsing.jsonl");

/// Why a text that RFC 8259 allows is refused all the same.
fn stricter(name: &str, text: &[u8]) -> Option<&'static str> {
    let is = |parts: &[&str]| parts.iter().any(|p| name.contains(p));
    if is(&["duplicated_key"]) {
        return Some("two readers could see two values");
    }
    let number = is(&["number", "lonely_int", "lonely_negative"]);
    (number && (text.contains(&b'-') || text.iter().any(|b| matches!(b, b'.' | b'e' | b'E'))))
        .then_some("numbers are counts: no fraction, exponent or sign")
}

#[test]
fn every_text_that_is_no_json_is_refused_and_every_other_but_for_a_listed_reason_is_read() {
    use base64ct::{Base64, Encoding as _};
    let (mut accepted, mut refused, mut strict) = (0, 0, Vec::new());
    for line in SUITE.lines() {
        let json::Json::Object(fields) = json::parse(line.as_bytes()).unwrap() else { panic!("{line}") };
        let field = |key: &str| match fields.iter().find(|(k, _)| k == key) {
            Some((_, json::Json::Text(text))) => text.as_ref(),
            _ => panic!("no {key} in {line}"),
        };
        let (name, text) = (field("name"), Base64::decode_vec(field("b64")).unwrap());
        let read = json::parse(&text);
        match name.as_bytes()[0] {
            b'n' => {
                assert!(read.is_err(), "{name}: {read:?}");
                refused += 1;
            }
            b'y' => {
                if let Some(why) = stricter(name, &text) {
                    assert!(read.is_err(), "{name} is read, though {why}");
                    strict.push(name.to_owned());
                } else {
                    assert!(read.is_ok(), "{name}: {read:?}");
                    accepted += 1;
                }
            }
            // The RFC leaves these open; no answer but a calm one is wrong.
            _ => drop(read),
        }
    }
    assert_eq!((refused, accepted + strict.len()), (REFUSED, ALLOWED), "files are missing");
    assert!(strict.len() < 24, "{strict:?}");
}

/// Files that begin with `n_`, without the two that are made below.
const REFUSED: usize = 186;
/// Files that begin with `y_`.
const ALLOWED: usize = 95;

#[test]
fn a_hundred_thousand_brackets_are_refused_without_a_deep_stack() {
    for text in ["[".repeat(100_000), "[{\"\":".repeat(50_000), "{\"a\":".repeat(100_000)] {
        assert!(json::parse(text.as_bytes()).is_err());
        assert!(json::parse_wide(text.as_bytes()).is_err());
    }
}
