//! Paths as manifest text: UTF-8 stands as it is, any other byte and `%` itself as `%XX`.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A path's bytes as text that [`decode`] turns back.
pub fn encode(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '%' { text.push_str("%25") } else { text.push(c) }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// The bytes that `text` stands for; `None` when a `%` is not followed by two hexadecimal digits.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    if !text.contains('%') {
        return Some(text.as_bytes().to_vec());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (pair, tail) = rest.split_at_checked(2)?;
        let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
        bytes.push(digit(pair[0])? << 4 | digit(pair[1])?);
        rest = tail;
    }
    Some(bytes)
}

/// The same of text that is kept where it stands for itself.
pub(crate) fn decoded(text: Cow<'_, str>) -> Option<Cow<'_, [u8]>> {
    if text.contains('%') {
        return decode(&text).map(Cow::Owned);
    }
    Some(match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    })
}

/// Whether `path` stays below the directory it is joined to: relative, not empty, no `.` or `..` component,
/// no empty component, no NUL.
pub fn is_contained(path: &[u8]) -> bool {
    !path.is_empty()
        && !path.contains(&0)
        && path.split(|b| *b == b'/').all(|c| !matches!(c, b"" | b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_string_round_trips() {
        for path in [&b"plain"[..], b"100%", b"a\nb", b"\xff\xfe", "\u{e9}%\u{1f600}".as_bytes(), b"%zz", b""]
        {
            assert_eq!(decode(&encode(path)).as_deref(), Some(path));
        }
        assert_eq!(encode("n\u{e9}".as_bytes()), "n\u{e9}");
        for wrong in ["%", "%4", "%zz", "a%+1"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn no_name_leaves_its_directory() {
        for path in ["", "/a", "a/../b", "..", ".", "./a", "a//b", "a/", "a\0b"] {
            assert!(!is_contained(path.as_bytes()), "{path:?}");
        }
        for path in ["a", "a/b", ".shim/npx", "...", "a b", "-x", "a\nb"] {
            assert!(is_contained(path.as_bytes()), "{path:?}");
        }
    }
}
