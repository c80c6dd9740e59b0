//! The fields of manifest objects: taken one by one so that an unknown key is noticed, written in a fixed order.

use std::borrow::Cow;
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

/// The keys of an object, taken one by one: what is left at the end is unknown. The first is at the end, so that
/// whoever takes keys in the order they are written finds each at once and moves none.
pub(crate) struct Keys<'a>(Vec<(Cow<'a, str>, Json<'a>)>);

impl<'a> Keys<'a> {
    pub(crate) fn of(value: Json<'a>) -> Result<Self, String> {
        match value {
            Json::Object(mut pairs) => {
                pairs.reverse();
                Ok(Self(pairs))
            }
            _ => Err("not an object".into()),
        }
    }

    fn take(&mut self, key: &str) -> Option<Json<'a>> {
        let at = self.0.iter().rposition(|(k, _)| k == key)?;
        if at + 1 == self.0.len() { self.0.pop().map(|(_, v)| v) } else { Some(self.0.remove(at).1) }
    }

    pub(crate) fn text(&mut self, key: &str) -> Result<Option<Cow<'a, str>>, String> {
        match self.long_text(key)? {
            Some(text) if text.len() > TEXT => Err(format!("'{key}' is longer than {TEXT} bytes")),
            text => Ok(text),
        }
    }

    /// Text that is kept.
    pub(crate) fn owned(&mut self, key: &str) -> Result<Option<String>, String> {
        Ok(self.text(key)?.map(Cow::into_owned))
    }

    /// Bounded by the line's own bound alone.
    pub(crate) fn long_text(&mut self, key: &str) -> Result<Option<Cow<'a, str>>, String> {
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

    /// Whether the key is there and not yet taken.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(k, _)| k == key)
    }

    pub(crate) fn list(&mut self, key: &str) -> Result<Vec<Json<'a>>, String> {
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
            .ok_or_else(|| format!("'{key}' is not four octal digits"))
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
        match self.0.last() {
            None => Ok(()),
            Some((key, _)) => Err(format!("the key {} is unknown or does not fit", json::quote(key))),
        }
    }
}

/// A string of 64 hexadecimal digits.
pub(crate) fn to_sha(value: &Json<'_>) -> Result<Sha, String> {
    match value {
        Json::Text(text) => Sha::from_hex(text),
        _ => None,
    }
    .ok_or("not a sha256".into())
}
