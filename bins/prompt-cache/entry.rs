//! The file of one entry: a line of text, then the answer as it is.
//!
//! ```text
//! prompt-cache 1 KEY CREATED TOOK LENGTH CRC
//! ```
//!
//! KEY is 64 hexadecimal digits, CREATED seconds since 1970, TOOK the milliseconds that the command ran, LENGTH the
//! bytes behind the line, CRC the CRC-32 (IEEE 802.3) of everything but itself and its newline, in 8 hexadecimal
//! digits.

use files::digest::Sha;

/// More bytes than the line ever has.
pub(crate) const LINE: usize = 160;

/// An answer that was kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// Seconds since 1970.
    pub(crate) created: u64,
    /// Milliseconds that it took to make.
    pub(crate) took: u64,
    /// The whole file.
    bytes: Vec<u8>,
    /// Where the answer begins.
    at: usize,
}

impl Entry {
    /// A new entry.
    pub(crate) fn new(key: &Sha, created: u64, took: u64, body: &[u8]) -> Self {
        let mut bytes = format!("prompt-cache 1 {} {created} {took} {} ", key.hex(), body.len()).into_bytes();
        let crc = checksum(&bytes, body);
        bytes.extend_from_slice(format!("{crc:08x}\n").as_bytes());
        let at = bytes.len();
        bytes.extend_from_slice(body);
        Self { created, took, bytes, at }
    }

    /// Reads a whole file; the error says what is wrong with it.
    pub(crate) fn read(key: &Sha, bytes: Vec<u8>) -> Result<Self, &'static str> {
        if bytes.is_empty() {
            return Err("empty");
        }
        let end = bytes.iter().take(LINE).position(|b| *b == b'\n').ok_or("torn, or not an entry")?;
        let line = std::str::from_utf8(&bytes[..end]).map_err(|_| "not an entry")?;
        let (start, crc) = line.rsplit_once(' ').ok_or("not an entry")?;
        let fields = start.strip_prefix("prompt-cache ").ok_or("not an entry")?;
        let fields: Vec<_> = fields.split(' ').collect();
        let &[version, name, created, took, length] = fields.as_slice() else { return Err("not an entry") };
        if version != "1" {
            return Err("of another version");
        }
        let number = |text: &str| text.parse::<u64>().map_err(|_| "not an entry");
        let (created, took, length) = (number(created)?, number(took)?, number(length)?);
        let at = end + 1;
        match (bytes.len() - at) as u64 {
            have if have < length => return Err("torn"),
            have if have > length => return Err("longer than it was written"),
            _ => {}
        }
        if format!("{:08x}", checksum(&bytes[..=start.len()], &bytes[at..])) != crc {
            return Err("changed since it was written");
        }
        if name != key.hex() {
            return Err("the entry of another key");
        }
        Ok(Self { created, took, bytes, at })
    }

    /// The whole file.
    pub(crate) fn file(&self) -> &[u8] {
        &self.bytes
    }

    /// The answer.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.at..]
    }
}

fn checksum(line: &[u8], body: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(line);
    crc.update(body);
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_cut_or_changed_anywhere_is_none() {
        let key = Sha([0xab; 32]);
        let entry = Entry::new(&key, 1_796_000_000, 1234, b"one\n\0two\xff");
        let file = entry.file().to_vec();
        assert!(file.len() - 9 < LINE);
        assert_eq!(Entry::read(&key, file.clone()), Ok(entry.clone()));
        assert_eq!(entry.body(), b"one\n\0two\xff");
        for at in 0..file.len() {
            assert!(Entry::read(&key, file[..at].to_vec()).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut flipped = file.clone();
                flipped[at] ^= 1 << bit;
                assert!(Entry::read(&key, flipped).is_err(), "bit {bit} of byte {at}");
            }
        }
        assert!(Entry::read(&key, [&file[..], b"x"].concat()).is_err());
        assert_eq!(Entry::read(&Sha([0xac; 32]), file), Err("the entry of another key"));
        assert_eq!(Entry::read(&key, vec![0; 4096]), Err("torn, or not an entry"));
    }
}
