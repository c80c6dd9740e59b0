//! Strict JSON (RFC 8259) for signed text: duplicate keys, fractions, deep nesting and trailing text are errors.
//!
//! `serde_json::Value` keeps the last of two equal keys and doubles lose integers above 2^53: two readers of one
//! signed manifest could then see two recipes.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};

/// Deeper nesting is refused.
const DEPTH: u8 = 6;

/// A JSON value. Numbers are non-negative integers: nothing in a manifest needs others. Text without escapes is
/// borrowed from what is parsed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Json<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer from 0 to 2^64 - 1.
    Number(u64),
    /// A string.
    Text(Cow<'a, str>),
    /// An array.
    List(Vec<Json<'a>>),
    /// An object, its keys in the order of the text, none twice.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// What may stand around a value.
pub(crate) const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// Most keys of one object of a manifest.
const KEYS: usize = 64;
/// Objects of more keys find a key that stands twice by hashing.
const SHORT: usize = 16;
/// Room for the keys of a usual object.
const USUAL: usize = 8;
/// Most keys of one object of our own records, which map ids.
const WIDE: usize = 20_000;

/// Reads exactly one value; the text before and after it may only be JSON's white space.
pub fn parse(text: &[u8]) -> Result<Json<'_>, String> {
    parse_text(utf8(text)?)
}

fn parse_text(text: &str) -> Result<Json<'_>, String> {
    parse_with(text, KEYS)
}

/// The same for our own records, whose objects map every id of a manifest.
pub fn parse_wide(text: &[u8]) -> Result<Json<'_>, String> {
    parse_with(utf8(text)?, WIDE)
}

fn utf8(text: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(text).map_err(|e| format!("it is not UTF-8: {e}"))
}

fn parse_with(text: &str, keys: usize) -> Result<Json<'_>, String> {
    one(text, Seed { deeper: DEPTH, keys })
}

/// Exactly one value, read as `seed` reads it.
fn one<'a, S: DeserializeSeed<'a>>(text: &'a str, seed: S) -> Result<S::Value, String> {
    if text.starts_with('\u{feff}') {
        return Err("it begins with a byte order mark".into());
    }
    let mut from = serde_json::Deserializer::from_str(text);
    let value = seed.deserialize(&mut from).map_err(|e| words(&e))?;
    from.end().map_err(|e| words(&e))?;
    Ok(value)
}

/// Exactly one value of a type.
pub(crate) fn read<'a, T: de::Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    one(text, PhantomData)
}

/// An error without the line, which is always the first: what is read is one line of something.
fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place)
        .map_or_else(|| text.clone(), |what| format!("{what} (column {})", error.column()))
}

/// A string as JSON text, quotes included.
pub fn quote(text: &str) -> String {
    // A `Value` would link the printing of all other values. Text always has a form.
    serde_json::to_string(text).unwrap_or_default()
}

/// What may still come: levels of nesting, keys an object.
#[derive(Clone, Copy)]
struct Seed {
    deeper: u8,
    keys: usize,
}

impl<'de> DeserializeSeed<'de> for Seed {
    type Value = Json<'de>;

    fn deserialize<D: de::Deserializer<'de>>(self, from: D) -> Result<Json<'de>, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null, a boolean, a non-negative integer, a string, a list or an object")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Json<'de>, E> {
        Ok(Json::Number(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(value.to_owned().into()))
    }

    fn visit_borrowed_str<E: de::Error>(self, value: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json<'de>, A::Error> {
        let deeper = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = seq.next_element_seed(deeper)? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json<'de>, A::Error> {
        let deeper = self.deeper()?;
        let mut object: Vec<(Cow<'de, str>, Json<'de>)> = Vec::with_capacity(USUAL);
        let mut seen = std::collections::HashSet::new();
        while let Some(key) = map.next_key_seed(Key)? {
            if object.len() >= self.keys {
                return Err(de::Error::custom(format_args!("more than {} keys", self.keys)));
            }
            // A short object is compared faster than hashed.
            let twice = if object.len() < SHORT {
                object.iter().any(|(k, _)| *k == key)
            } else {
                if seen.is_empty() {
                    seen.extend(object.iter().map(|(k, _)| k.clone()));
                }
                !seen.insert(key.clone())
            };
            if twice {
                return Err(de::Error::custom(format_args!("the key {} stands twice", quote(&key))));
            }
            let value = map.next_value_seed(deeper)?;
            object.push((key, value));
        }
        Ok(Json::Object(object))
    }
}

/// Reads a key without copying it where the text has it as it is.
pub(crate) struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: de::Deserializer<'de>>(self, from: D) -> Result<Cow<'de, str>, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Cow<'de, str>, E> {
        Ok(value.to_owned().into())
    }

    fn visit_borrowed_str<E: de::Error>(self, value: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(value.into())
    }
}

impl Seed {
    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        let deeper = self.deeper.checked_sub(1).ok_or_else(|| E::custom("nested too deep"))?;
        Ok(Self { deeper, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for text in [
            r#"{"a":1,"a":2}"#,
            r#"{"restore":"x","\u0072estore":"y"}"#,
            r#"{"a":1} {"a":2}"#,
            "\u{feff}{}",
            r#"{"a":1e400}"#,
            r#"{"a":1.5}"#,
            r#"{"a":-1}"#,
            r#"{"a":18446744073709551616}"#,
            r#"{"a":"\ud800"}"#,
            "[[[[[[[1]]]]]]]",
            "{\"a\":\"\t\"}",
            "",
            "{\"a\":\"\u{0}",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse(b"{\"a\":\"\xff\"}").is_err());
        assert_eq!(parse(b" 18446744073709551615 "), Ok(Json::Number(u64::MAX)));
    }
}
