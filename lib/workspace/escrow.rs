//! Small files inside the manifest: zlib (RFC 1950) in base64 (RFC 4648), bounded before anything is allocated.

use base64ct::{Base64, Encoding as _};
use files::digest::{Hasher, Sha};
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

/// The largest file that is embedded.
pub const FILE: u64 = 256 << 10;
/// All embedded files of a manifest together.
pub const TOTAL: u64 = 2 << 20;

/// The text form of a file's content; `None` when it is larger than [`FILE`].
pub fn pack(content: &[u8]) -> Option<String> {
    (content.len() as u64 <= FILE).then(|| Base64::encode_string(&compress_to_vec_zlib(content, 9)))
}

/// The content of a text form, if it has exactly `size` bytes with this hash.
pub fn unpack(text: &str, size: u64, sha256: Sha) -> Result<Vec<u8>, String> {
    if size > FILE {
        return Err(format!("the embedded file would have {size} bytes, more than {FILE}"));
    }
    // Deflate never grows content by much: a longer text cannot be honest.
    if text.len() as u64 > FILE * 3 / 2 {
        return Err("the embedded text is too long".into());
    }
    let packed = Base64::decode_vec(text).map_err(|_| "the embedded text is not base64")?;
    let limit = usize::try_from(size).unwrap_or(usize::MAX);
    let content = decompress_to_vec_zlib_with_limit(&packed, limit)
        .map_err(|_| format!("the embedded text does not unpack to {size} bytes"))?;
    let mut hasher = Hasher::default();
    hasher.update(&content);
    if content.len() != limit || hasher.finish() != sha256 {
        return Err("the embedded content is not what the entry names".into());
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sha(bytes: &[u8]) -> Sha {
        let mut hasher = Hasher::default();
        hasher.update(bytes);
        hasher.finish()
    }

    #[test]
    fn what_does_not_unpack_to_the_named_bytes_is_refused() {
        let content = b"#!/bin/sh\necho hello\n".repeat(50);
        let text = pack(&content).unwrap();
        let size = content.len() as u64;
        assert_eq!(unpack(&text, size, sha(&content)).unwrap(), content);
        assert!(unpack(&text, size - 1, sha(&content)).is_err());
        assert!(unpack(&text, size + 1, sha(&content)).is_err());
        assert!(unpack(&text, size, sha(b"other")).is_err());
        let bomb = Base64::encode_string(&compress_to_vec_zlib(&vec![0; 8 << 20], 9));
        assert!(unpack(&bomb, FILE, sha(b"")).is_err());
        for wrong in ["Zg", "Zg=", "Zh==", "Z g=", "eA==\n"] {
            assert!(unpack(wrong, 1, sha(b"x")).is_err(), "{wrong:?}");
        }
        assert!(pack(&vec![0; (FILE + 1).try_into().unwrap()]).is_none());
    }
}
