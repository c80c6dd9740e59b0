//! SHA-256 of a file (FIPS 180-4), read with `read`: a file that shrinks gives a short count, never SIGBUS.

use std::fs::File;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

use crate::open::Print;

/// The value of each hexadecimal digit; 16 stands for what is none. A manifest has thousands of digests to read.
const DIGITS: [u8; 256] = {
    let mut digits = [16; 256];
    let mut value = 0;
    while value < 16 {
        let digit = b"0123456789abcdef"[value as usize];
        digits[digit as usize] = value;
        digits[digit.to_ascii_uppercase() as usize] = value;
        value += 1;
    }
    digits
};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sha(pub [u8; 32]);

impl Sha {
    /// Reads 64 hexadecimal digits of either case.
    #[inline]
    pub fn from_hex(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() != 64 {
            return None;
        }
        let mut out = [0; 32];
        let mut all = 0;
        for (byte, pair) in out.iter_mut().zip(text.chunks_exact(2)) {
            let (high, low) = (DIGITS[usize::from(pair[0])], DIGITS[usize::from(pair[1])]);
            all |= high | low;
            *byte = high << 4 | low;
        }
        (all < 16).then_some(Self(out))
    }

    /// 64 lower-case hexadecimal digits.
    pub fn hex(&self) -> String {
        use std::fmt::Write as _;
        self.0.iter().fold(String::with_capacity(64), |mut text, b| {
            let _ = write!(text, "{b:02x}");
            text
        })
    }
}

/// Hashes bytes as they come.
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes taken.
    pub fn finish(self) -> Sha {
        Sha(self.0.finalize().into())
    }
}

/// Digest and count of everything `from` yields. 64 KiB a read: measured fastest on this kind of loop.
pub fn of_reader(from: &mut impl Read) -> io::Result<(Sha, u64)> {
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; 64 << 10];
    let mut count = 0;
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok((hasher.finish(), count)),
            Ok(n) => {
                hasher.update(&buffer[..n]);
                count += n as u64;
            }
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
}

/// Digest of a whole file from its start, or `None` when it changed while it was read.
pub fn of_file(file: &mut File) -> io::Result<Option<Sha>> {
    use std::io::Seek as _;
    file.rewind()?;
    let before = Print::of(&file.metadata()?);
    let (sha, count) = of_reader(file)?;
    let after = Print::of(&file.metadata()?);
    Ok((before == after && count == before.size).then_some(sha))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_abc_is_the_published_one() {
        let (sha, count) = of_reader(&mut &b"abc"[..]).unwrap();
        assert_eq!(sha.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(count, 3);
        assert_eq!(Sha::from_hex(&sha.hex().to_uppercase()), Some(sha));
        assert_eq!(Sha::from_hex("zz"), None);
        assert_eq!(Sha::from_hex(&"+1".repeat(32)), None);
    }
}
