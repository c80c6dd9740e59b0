//! The fields of manifest objects: read each once and as its own type, written in a fixed order.
//!
//! Straight from the text into what is kept: a tree of values between them would cost more than all the rest of
//! reading a manifest.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::marker::PhantomData;

use files::digest::Sha;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::json;
use crate::name;

/// Most items of one list.
const LIST: usize = 4096;
/// Most names counted in one tree.
const COUNTS: usize = 64;
/// Longest recipe, note or other text, in bytes.
const TEXT: usize = 64 << 10;

/// Makes the reader of an object: an optional field a key, by type. A key that stands twice or is none of these is an
/// error; `done` tells of one that was not taken.
macro_rules! fields {
    ($(#[$doc:meta])* $name:ident<$a:lifetime> { $($key:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(crate) struct $name<$a> {
            $(pub(crate) $key: Option<$type>,)*
            pub(crate) of: std::marker::PhantomData<&$a ()>,
        }

        impl $name<'_> {
            /// Every field must have been taken.
            pub(crate) fn done(&self) -> Result<(), String> {
                $(if self.$key.is_some() {
                    return Err(format!("the key \"{}\" does not fit here", stringify!($key)));
                })*
                Ok(())
            }
        }

        impl<$a> serde::de::Deserialize<$a> for $name<$a> {
            fn deserialize<D: serde::de::Deserializer<$a>>(from: D) -> Result<Self, D::Error> {
                let mut fields = Self::default();
                from.deserialize_map(&mut fields)?;
                Ok(fields)
            }
        }

        impl<$a> serde::de::Visitor<$a> for &mut $name<$a> {
            type Value = ();

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<$a>>(self, mut map: A) -> Result<(), A::Error> {
                use serde::de::Error as _;
                while let Some(key) = map.next_key_seed($crate::json::Key)? {
                    match key.as_ref() {
                        $(stringify!($key) if self.$key.is_none() => self.$key = Some(map.next_value()?),)*
                        $(stringify!($key))|* => {
                            let key = $crate::json::quote(&key);
                            return Err(A::Error::custom(format_args!("the key {key} stands twice")));
                        }
                        _ => {
                            let key = $crate::json::quote(&key);
                            return Err(A::Error::custom(format_args!("the key {key} is unknown")));
                        }
                    }
                }
                Ok(())
            }
        }
    };
}
pub(crate) use fields;

/// A kind of JSON string.
pub(crate) trait FromText<'a>: Sized {
    /// What it is, for the message when it is not.
    const IS: &'static str;

    fn from_text(text: Cow<'a, str>) -> Option<Self>;
}

/// A field whose text is of a kind.
#[derive(Debug)]
pub(crate) struct Text<T>(pub(crate) T);

/// Text without NUL, which JSON can only have escaped.
fn plain(text: Cow<'_, str>) -> Option<Cow<'_, str>> {
    let free = matches!(text, Cow::Borrowed(_)) || !text.contains('\0');
    free.then_some(text)
}

/// Text such as a recipe or a note.
pub(crate) struct Short<'a>(pub(crate) Cow<'a, str>);

/// Text of any length a line may have, without NUL.
pub(crate) struct Long(pub(crate) String);

/// Permission bits as four octal digits.
pub(crate) struct Mode(pub(crate) u32);

/// A path, any bytes but NUL.
pub(crate) struct Path(pub(crate) Vec<u8>);

/// A path that stays below what it is relative to.
pub(crate) struct Below(pub(crate) Vec<u8>);

impl<'a> FromText<'a> for Short<'a> {
    const IS: &'static str = "text of at most 65536 bytes without NUL";

    fn from_text(text: Cow<'a, str>) -> Option<Self> {
        plain(text).filter(|text| text.len() <= TEXT).map(Self)
    }
}

impl<'a> FromText<'a> for Long {
    const IS: &'static str = "text without NUL";

    fn from_text(text: Cow<'a, str>) -> Option<Self> {
        plain(text).map(|text| Self(text.into_owned()))
    }
}

impl<'a> FromText<'a> for Mode {
    const IS: &'static str = "four octal digits";

    fn from_text(text: Cow<'a, str>) -> Option<Self> {
        let digits = text.len() == 4 && text.bytes().all(|b| matches!(b, b'0'..=b'7'));
        if digits { u32::from_str_radix(&text, 8).ok().map(Self) } else { None }
    }
}

impl<'a> FromText<'a> for Path {
    const IS: &'static str = "a path";

    fn from_text(text: Cow<'a, str>) -> Option<Self> {
        let fits = |path: &Vec<u8>| (1..=TEXT).contains(&path.len()) && !path.contains(&0);
        name::decode(&text).filter(fits).map(Self)
    }
}

impl<'a> FromText<'a> for Below {
    const IS: &'static str = "a path below its tree";

    fn from_text(text: Cow<'a, str>) -> Option<Self> {
        name::decode(&text).filter(|path| name::is_contained(path)).map(Self)
    }
}

impl<'a> FromText<'a> for Sha {
    const IS: &'static str = "a sha256";

    fn from_text(text: Cow<'a, str>) -> Option<Self> {
        Self::from_hex(&text)
    }
}

impl<'a, T: FromText<'a>> Deserialize<'a> for Text<T> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(Of(PhantomData::<T>)).map(Self)
    }
}

struct Of<T>(PhantomData<T>);

impl<'a, T: FromText<'a>> Visitor<'a> for Of<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::IS)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text.to_owned().into()).ok_or_else(|| wrong(text, &self))
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'a str) -> Result<T, E> {
        T::from_text(text.into()).ok_or_else(|| wrong(text, &self))
    }
}

fn wrong<E: de::Error>(text: &str, wanted: &dyn de::Expected) -> E {
    const SHOWN: usize = 80;
    let shown = text.char_indices().nth(SHOWN).map_or(text, |(end, _)| &text[..end]);
    E::invalid_value(de::Unexpected::Str(shown), wanted)
}

/// A bounded list.
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'a, T: Deserialize<'a>> Deserialize<'a> for List<T> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Of(PhantomData::<Self>))
    }
}

impl<'a, T: Deserialize<'a>> Visitor<'a> for Of<List<T>> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<List<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            if items.len() >= LIST {
                return Err(de::Error::custom(format_args!("a list of more than {LIST} items")));
            }
            items.push(item);
        }
        Ok(List(items))
    }
}

/// How many files of each name there are at least.
#[derive(Default)]
pub(crate) struct Counts(pub(crate) Vec<(Vec<u8>, u64)>);

impl<'a> Deserialize<'a> for Counts {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Of(PhantomData::<Self>))
    }
}

impl<'a> Visitor<'a> for Of<Counts> {
    type Value = Counts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of file names and counts")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Counts, A::Error> {
        let mut counts: Vec<(Vec<u8>, u64)> = Vec::new();
        while let Some(key) = map.next_key_seed(json::Key)? {
            let file = name::decode(&key).filter(|f| name::is_contained(f) && !f.contains(&b'/'));
            let file = file.ok_or_else(|| wrong(&key, &"the name of a file"))?;
            if counts.len() >= COUNTS || counts.iter().any(|(f, _)| *f == file) {
                return Err(de::Error::custom(format_args!(
                    "{} is counted twice, or more than {COUNTS} names",
                    json::quote(&key)
                )));
            }
            counts.push((file, map.next_value()?));
        }
        Ok(Counts(counts))
    }
}

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
