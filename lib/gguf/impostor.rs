//! What bytes are when they are not the expected model: a page, a pointer, an archive, an older format, nothing.

use crate::flaw::Bytes;
use crate::source::{Source, read_full};

/// Signatures of other formats: `(offset, bytes, name)`.
const SIGNATURES: &[(usize, &[u8], &str)] = &[
    (0, b"FUGG", "a byte-swapped GGUF"),
    (0, b"gguf", "'gguf' in lower case, not a GGUF,"),
    (0, b"lmgg", "an old ggml file, a format from before GGUF,"),
    (0, b"tjgg", "an old ggjt file, a format from before GGUF,"),
    (0, b"fmgg", "an old ggmf file, a format from before GGUF,"),
    (0, b"algg", "an old ggla file, a format from before GGUF,"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"PK\x03\x04", "a zip archive (PyTorch checkpoints are such)"),
    (0, b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (0, b"\xfd7zXZ\0", "an xz archive"),
    (0, b"BZh", "a bzip2 archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (0, b"\x04\x22\x4d\x18", "an lz4 archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"\x7fELF", "a program"),
    (0, b"%PDF-", "a PDF"),
    (0, b"HTTP/1.", "an HTTP answer with its headers"),
];

/// How much is looked at before zeros are called zeros throughout.
const ZEROS: usize = 1 << 20;

/// Names what begins at `at` with the bytes `head`; never empty.
pub(crate) fn name(head: &[u8], at: u64, source: &dyn Source) -> String {
    if let Some((_, _, name)) =
        SIGNATURES.iter().find(|(o, s, _)| head.get(*o..).is_some_and(|h| h.starts_with(s)))
    {
        return (*name).to_owned();
    }
    if head.starts_with(b"version https://git-lfs.github.com/spec/") {
        return pointer(head);
    }
    if head.iter().all(|b| *b == 0) {
        return zeros(at, source);
    }
    if is_safetensors(head) {
        return "a safetensors file".to_owned();
    }
    text(head).unwrap_or_else(|| {
        let first: Vec<String> = head.iter().take(8).map(|b| format!("{b:02x}")).collect();
        format!("something that begins with the bytes {}", first.join(" "))
    })
}

/// A pointer file (git-lfs.github.com/spec/v1) names the object it stands for.
fn pointer(head: &[u8]) -> String {
    let text = String::from_utf8_lossy(head);
    let field = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    let oid = field("oid sha256:").filter(|o| o.len() == 64 && o.bytes().all(|b| b.is_ascii_hexdigit()));
    let size = field("size ").and_then(|s| s.parse().ok());
    match (oid, size) {
        (Some(oid), Some(size)) => {
            format!("a Git LFS pointer (to {}, sha256 {oid}; 'git lfs pull' fetches them)", Bytes(size))
        }
        _ => "a damaged Git LFS pointer".to_owned(),
    }
}

/// A safetensors file begins with the length of its JSON header.
fn is_safetensors(head: &[u8]) -> bool {
    head.len() > 9 && head[5..8] == [0; 3] && head[8] == b'{' && matches!(head[9], b'"' | b' ' | b'}')
}

fn zeros(at: u64, source: &dyn Source) -> String {
    let rest = source.size().saturating_sub(at);
    if source.hole(at, source.size()) == Some((at, source.size())) {
        return format!("a hole of {}: nothing was ever written", Bytes(rest));
    }
    let mut bytes = vec![0; ZEROS.min(usize::try_from(rest).unwrap_or(ZEROS))];
    let filled = read_full(source, &mut bytes, at).unwrap_or(0);
    match bytes[..filled].iter().position(|b| *b != 0) {
        None if filled as u64 == rest => "all zeros".to_owned(),
        None => format!("zeros, {filled} bytes of them at least,"),
        Some(n) => format!("{} of zeros and other bytes", Bytes(n as u64)),
    }
}

/// Names text: by its markup, by what the hub is known to answer, else by its beginning.
fn text(head: &[u8]) -> Option<String> {
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        // A character may be cut by the end of what was read.
        Err(cause) if cause.valid_up_to() + 4 > head.len() => {
            std::str::from_utf8(&head[..cause.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return None,
    };
    let text = valid.trim_start_matches('\u{feff}').trim();
    if text.is_empty() || text.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        return None;
    }
    let start: String = text.chars().take(512).collect::<String>().to_ascii_lowercase();
    let excerpt = excerpt(text);
    Some(if ["<!doctype html", "<html", "<head", "<body"].iter().any(|tag| start.starts_with(tag)) {
        title(text).map_or("an HTML page".to_owned(), |title| format!("an HTML page ('{title}')"))
    } else if start.starts_with("<?xml") || start.starts_with("<error") {
        format!("an XML answer ({excerpt})")
    } else if start.contains("<html") {
        "an HTML page".to_owned()
    } else if start.starts_with(['{', '[']) {
        let error = start.contains("error") || start.contains("\"message\"") || start.contains("\"detail\"");
        format!("{} ({excerpt})", if error { "a JSON error" } else { "JSON" })
    } else if start == "entry not found" {
        "'Entry not found', the hub's answer to a wrong file name,".to_owned()
    } else if start == "invalid username or password." {
        "'Invalid username or password.', the hub's answer to a refused token,".to_owned()
    } else if start.starts_with("#!") {
        format!("a script ({excerpt})")
    } else {
        format!("text ({excerpt})")
    })
}

fn title(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let start = lower.find("<title>")? + "<title>".len();
    let end = start + lower[start..].find("</title>")?;
    let title = excerpt(text.get(start..end)?.trim());
    (!title.is_empty()).then_some(title)
}

/// The beginning on one line.
fn excerpt(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() <= 80 {
        line
    } else {
        format!("{}...", line.chars().take(77).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(bytes: &[u8]) -> String {
        name(&bytes[..bytes.len().min(4096)], 0, &bytes)
    }

    #[test]
    fn each_impostor_is_named() {
        let long_page = format!("<!-- x -->\n<HTML><body>{}", "a".repeat(9000));
        let tar = [&[b'a'; 257][..], b"ustar\0"].concat();
        let cases: &[(&[u8], &str)] = &[
            (b"<!DOCTYPE html><html><head><title>Sign in\n</title>", "an HTML page ('Sign in')"),
            (b"\xef\xbb\xbf\n  <html lang=en>", "an HTML page"),
            (long_page.as_bytes(), "an HTML page"),
            (b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>", "an XML answer"),
            (b"{\"error\":\"Repository not found\"}", "a JSON error ({\"error\":\"Repository not found\"})"),
            (b"{\"vocab\": 3}", "JSON ("),
            (b"Entry not found", "'Entry not found'"),
            (b"Invalid username or password.", "'Invalid username or password.'"),
            (
                b"version https://git-lfs.github.com/spec/v1\noid sha256:xyz\nsize 1\n",
                "a damaged Git LFS pointer",
            ),
            (b"tjgg\x03\0\0\0", "an old ggjt file"),
            (b"lmgg\x03\0\0\0", "an old ggml file"),
            (b"fmgg\x01\0\0\0", "an old ggmf file"),
            (b"algg\x01\0\0\0", "an old ggla file"),
            (b"\x1f\x8b\x08\0", "a gzip archive"),
            (b"PK\x03\x04\x14\0", "a zip archive"),
            (b"\x28\xb5\x2f\xfd\x04", "a zstd archive"),
            (b"\xfd7zXZ\0\0\x04", "an xz archive"),
            (&tar, "a tar archive"),
            (b"\x40\0\0\0\0\0\0\0{\"__metadata__\":{}}", "a safetensors file"),
            (b"#!/bin/sh\nexit 0\n", "a script (#!/bin/sh exit 0)"),
            (b"HTTP/1.1 200 OK\r\n", "an HTTP answer"),
            (b"Access to this model is restricted", "text (Access to this model"),
            (&[0; 5000], "all zeros"),
            (b"\x80\x02\x8a\x0a", "something that begins with the bytes 80 02 8a 0a"),
        ];
        for (bytes, expected) in cases {
            let name = named(bytes);
            assert!(name.starts_with(expected), "{name:?} is not {expected:?}");
        }
    }

    #[test]
    fn a_pointer_says_what_it_points_to() {
        let oid = "4d7a".repeat(16);
        let text = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 483616\n");
        assert!(named(text.as_bytes()).contains(&format!("483616 bytes, sha256 {oid}")));
    }

    #[test]
    fn hostile_text_cannot_draw_on_a_terminal() {
        assert!(!named("\u{202e}<html><title>a\u{1b}[2J</title>".as_bytes()).contains('\u{1b}'));
        assert!(named("x".repeat(5000).as_bytes()).len() < 120);
    }

    #[test]
    fn zeros_are_claimed_only_as_far_as_they_were_seen() {
        let mut bytes = vec![0; ZEROS + 5000];
        assert_eq!(named(&bytes), format!("zeros, {ZEROS} bytes of them at least,"));
        bytes[6000] = 1;
        assert_eq!(named(&bytes), "6000 bytes of zeros and other bytes");
    }
}
