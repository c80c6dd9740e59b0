//! The fields of manifest objects: taken one by one so that an unknown key is noticed, written in a fixed order.

use std::fmt::Write as _;

use files::digest::Sha;

use crate::json::{self, Json};
use crate::name;

/// Most items of one list.
const LIST: usize = 4096;
/// Longest recipe, note or other text, in bytes.
const TEXT: usize = 64 << 10;

/// Builds one JSON object, keys in the order they come.
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Self {
        Self("{".into())
    }

    pub(crate) fn raw(&mut self, key: &str, json: &str) {
        let comma = if self.0.len() > 1 { "," } else { "" };
        let _ = write!(self.0, "{comma}{}:{json}", json::quote(key));
    }

    pub(crate) fn text(&mut self, key: &str, text: &str) {
        self.raw(key, &json::quote(text));
    }

    pub(crate) fn end(self) -> String {
        self.0 + "}"
    }
}

/// The keys of an object, taken one by one: what is left at the end is unknown.
pub(crate) struct Keys(Vec<(String, Json)>);

impl Keys {
    pub(crate) fn of(value: Json) -> Result<Self, String> {
        match value {
            Json::Object(pairs) => Ok(Self(pairs)),
            _ => Err("not an object".into()),
        }
    }

    fn take(&mut self, key: &str) -> Option<Json> {
        let at = self.0.iter().position(|(k, _)| k == key)?;
        Some(self.0.swap_remove(at).1)
    }

    pub(crate) fn text(&mut self, key: &str) -> Result<Option<String>, String> {
        match self.long_text(key)? {
            Some(text) if text.len() > TEXT => Err(format!("'{key}' is longer than {TEXT} bytes")),
            text => Ok(text),
        }
    }

    /// Bounded by the line's own bound alone.
    pub(crate) fn long_text(&mut self, key: &str) -> Result<Option<String>, String> {
        match self.take(key) {
            None => Ok(None),
            Some(Json::Text(text)) if text.contains('\0') => Err(format!("'{key}' holds a NUL byte")),
            Some(Json::Text(text)) => Ok(Some(text)),
            Some(_) => Err(format!("'{key}' is not text")),
        }
    }

    pub(crate) fn number(&mut self, key: &str) -> Result<Option<u64>, String> {
        match self.take(key) {
            None => Ok(None),
            Some(Json::Number(n)) => Ok(Some(n)),
            Some(_) => Err(format!("'{key}' is not a count")),
        }
    }

    pub(crate) fn flag(&mut self, key: &str) -> Result<bool, String> {
        match self.take(key) {
            None => Ok(false),
            Some(Json::Bool(b)) => Ok(b),
            Some(_) => Err(format!("'{key}' is not true or false")),
        }
    }

    pub(crate) fn list(&mut self, key: &str) -> Result<Vec<Json>, String> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Json::List(items)) if items.len() > LIST => {
                Err(format!("'{key}' has more than {LIST} items"))
            }
            Some(Json::List(items)) => Ok(items),
            Some(_) => Err(format!("'{key}' is not a list")),
        }
    }

    pub(crate) fn path(&mut self, key: &str) -> Result<Option<Vec<u8>>, String> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        match name::decode(&text) {
            Some(path) if !path.is_empty() && !path.contains(&0) => Ok(Some(path)),
            _ => Err(format!("'{key}' is not a path")),
        }
    }

    pub(crate) fn sha(&mut self, key: &str) -> Result<Option<Sha>, String> {
        self.take(key).map(|v| to_sha(&v).map_err(|_| format!("'{key}' is not a sha256"))).transpose()
    }

    pub(crate) fn mode(&mut self, key: &str) -> Result<Option<u32>, String> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let mode = if text.len() == 4 { u32::from_str_radix(&text, 8).ok() } else { None };
        mode.filter(|m| *m <= 0o7777 && !text.starts_with('+'))
            .map(Some)
            .ok_or(format!("'{key}' is not four octal digits"))
    }

    pub(crate) fn counts(&mut self, key: &str) -> Result<Vec<(Vec<u8>, u64)>, String> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Json::Object(pairs)) => pairs
                .into_iter()
                .map(|(file, n)| match (name::decode(&file), n) {
                    (Some(file), Json::Number(n)) if name::is_contained(&file) && !file.contains(&b'/') => {
                        Ok((file, n))
                    }
                    _ => Err(format!("'{key}' does not map file names to counts")),
                })
                .collect(),
            Some(_) => Err(format!("'{key}' is not an object")),
        }
    }

    /// Every key must have been taken.
    pub(crate) fn done(self) -> Result<(), String> {
        match self.0.first() {
            None => Ok(()),
            Some((key, _)) => Err(format!("the key {} is unknown or does not fit", json::quote(key))),
        }
    }
}

/// A string of 64 hexadecimal digits.
pub(crate) fn to_sha(value: &Json) -> Result<Sha, String> {
    match value {
        Json::Text(text) => Sha::from_hex(text),
        _ => None,
    }
    .ok_or("not a sha256".into())
}
