//! The digest of a model, and the longest run of zeros met on the way: what a download never wrote.

use std::fs::File;
use std::io::{self, Read, Seek as _};

use files::digest::{self, Sha};

/// Zeros are compared page by page.
const PAGE: usize = 4096;

/// Shorter runs are not worth a word: padded embeddings hold some.
const WORTH_SAYING: u64 = 32 << 10;

/// What a whole read of a file gave.
pub(crate) struct Hashed {
    pub(crate) sha: Sha,
    zeros: Zeros,
}

/// The longest run of pages that are zero.
#[derive(Default)]
struct Zeros {
    start: u64,
    length: u64,
}

/// Reads all of `file` from its start.
pub(crate) fn of(mut file: &File) -> io::Result<Hashed> {
    file.rewind()?;
    let mut watch = Watch { from: file, at: 0, zeros: Zeros::default(), run: 0 };
    let (sha, _) = digest::of_reader(&mut watch)?;
    Ok(Hashed { sha, zeros: watch.zeros })
}

impl Hashed {
    /// A long run of zeros in words.
    pub(crate) fn zeros(&self) -> Option<String> {
        let Zeros { start, length } = self.zeros;
        (length >= WORTH_SAYING).then(|| format!("{length} bytes from byte {start} on are zero"))
    }
}

/// Passes bytes on and notes pages of zeros.
struct Watch<R> {
    from: R,
    at: u64,
    zeros: Zeros,
    run: u64,
}

impl<R: Read> Read for Watch<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(buffer)?;
        for page in buffer[..n].chunks(PAGE) {
            self.at += page.len() as u64;
            // The first byte decides for nearly every page of real data.
            if page[0] != 0 || page.iter().any(|b| *b != 0) {
                self.run = 0;
                continue;
            }
            self.run += page.len() as u64;
            if self.run > self.zeros.length {
                self.zeros = Zeros { start: self.at - self.run, length: self.run };
            }
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_run_of_zeros_is_found_whatever_the_reads_return() {
        let mut bytes = vec![1; 100 * PAGE];
        bytes[3 * PAGE..5 * PAGE].fill(0);
        bytes[20 * PAGE..60 * PAGE].fill(0);
        let mut watch = Watch { from: &bytes[..], at: 0, zeros: Zeros::default(), run: 0 };
        let mut buffer = vec![0; 16 * PAGE];
        while watch.read(&mut buffer).unwrap() > 0 {}
        assert_eq!((watch.zeros.start, watch.zeros.length), (20 * PAGE as u64, 40 * PAGE as u64));
    }
}
