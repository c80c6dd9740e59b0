//! Subject names as file names: a subject is any bytes, a file name is letters, digits, `_`, `-` and escapes.

use std::fmt::Write as _;

use files::digest::Hasher;

/// The longest subject that has a breaker, in bytes: as long as a path may be.
pub(crate) const LONGEST: usize = 4096;

/// The longest escaped name that is used as it stands; file names end at 255 and suffixes follow.
const WHOLE: usize = 120;
/// What is kept of a longer one, in front of its digest.
const KEPT: usize = 80;

/// Every byte but letters, digits, `_` and `-` as `%XX`.
pub(crate) fn escaped(subject: &[u8]) -> String {
    let mut name = String::with_capacity(subject.len());
    for b in subject {
        if b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-') {
            name.push(char::from(*b));
        } else {
            let _ = write!(name, "%{b:02X}");
        }
    }
    name
}

/// Undoes [`escaped`]; `None` for what it never writes.
pub(crate) fn unescaped(name: &str) -> Option<Vec<u8>> {
    let mut subject = Vec::with_capacity(name.len());
    let mut bytes = name.bytes();
    while let Some(b) = bytes.next() {
        match b {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16).and_then(|d| u8::try_from(d).ok());
                subject.push(digit()? << 4 | digit()?);
            }
            b if b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-') => subject.push(b),
            _ => return None,
        }
    }
    Some(subject)
}

/// The file name without suffix: the escaped subject, or its beginning, `~` and 32 digits of its SHA-256.
pub(crate) fn file_name(subject: &[u8]) -> String {
    let name = escaped(subject);
    if name.len() <= WHOLE {
        return name;
    }
    let mut hasher = Hasher::default();
    hasher.update(subject);
    format!("{}~{}", &name[..KEPT], &hasher.finish().hex()[..32])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_subject_leaves_the_directory_or_meets_another() {
        let long = [b'x'; 300];
        let other = [&long[..299], b"y"].concat();
        let subjects: [&[u8]; 12] = [
            b"scout",
            b"a/b",
            b"..",
            b".",
            b"a\nb",
            b"%2E",
            b".pending",
            b"a.state",
            b"\xff",
            b"",
            &long,
            &other,
        ];
        let names: Vec<String> = subjects.iter().map(|s| file_name(s)).collect();
        for (i, name) in names.iter().enumerate() {
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-%~".contains(&b)), "{name}");
            assert!(name.len() <= WHOLE);
            assert!(!names[i + 1..].contains(name), "{name}");
        }
        assert_eq!(names[0], "scout");
        for subject in subjects {
            assert_eq!(unescaped(&escaped(subject)).unwrap(), subject);
        }
        for wrong in ["a.b", "%2", "%zz", "a~b"] {
            assert_eq!(unescaped(wrong), None, "{wrong}");
        }
    }
}
