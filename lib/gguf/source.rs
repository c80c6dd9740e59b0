//! Reading a header of any length in bounded memory and bounded work, by `pread`, never by mapping.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::flaw::Flaw;
use crate::holes;

/// Bytes that can be read at any offset.
pub trait Source {
    /// Bytes in all, as known when the source was opened.
    fn size(&self) -> u64;
    /// Reads some bytes at `at`; 0 is the end, which may come early when a file was cut meanwhile.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;
    /// The first stretch within `from..to` that was never written, where that can be known.
    fn hole(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let _ = (from, to);
        None
    }
}

impl Source for &[u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let n = rest.len().min(buffer.len());
        buffer[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
}

/// An open regular file and the size it had then.
pub(crate) struct Opened<'a> {
    /// Open for reading.
    pub(crate) file: &'a File,
    /// Bytes when it was opened.
    pub(crate) size: u64,
}

impl Source for Opened<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.file.read_at(buffer, at)
    }

    fn hole(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        holes::first(self.file, from, to)
    }
}

/// Fills as much of `buffer` as the source has at `at`, going on after short reads and interruptions.
pub(crate) fn read_full(source: &dyn Source, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match source.read_at(&mut buffer[done..], at + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(done)
}

/// Why a read within the header did not succeed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The file ends before it.
    End,
    /// What was read is wrong, or could not be read.
    Flaw(Flaw),
}

impl From<Flaw> for Trouble {
    fn from(flaw: Flaw) -> Self {
        Self::Flaw(flaw)
    }
}

/// The longest piece that [`Cursor::take`] gives; a key is at most this long.
pub(crate) const PIECE: usize = 64 << 10;

/// What a walk may read in all. The header of `SmolLM2` (49,152 tokens and their merges) has 1,785,664 bytes,
/// a vocabulary five times as large 10 MB; whoever claims more than this is not walked to the end.
const WORK: u64 = 128 << 20;

/// A position in the header, with one window of the file in memory.
pub(crate) struct Cursor<'a> {
    source: &'a dyn Source,
    size: u64,
    window: Box<[u8]>,
    /// Where the window begins in the file, and how much of it is filled.
    start: u64,
    filled: usize,
    at: u64,
    read: u64,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(source: &'a dyn Source) -> Self {
        let window = vec![0; PIECE].into_boxed_slice();
        Self { source, size: source.size(), window, start: 0, filled: 0, at: 0, read: 0 }
    }

    /// Where the next read begins.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Bytes from here to the end of the file.
    pub(crate) fn left(&self) -> u64 {
        self.size - self.at
    }

    /// The next `n` bytes, at most [`PIECE`].
    pub(crate) fn take(&mut self, n: usize) -> Result<&[u8], Trouble> {
        if n as u64 > self.left() {
            return Err(Trouble::End);
        }
        let inside = self.at.checked_sub(self.start).and_then(|o| usize::try_from(o).ok());
        let offset = match inside {
            Some(offset) if offset + n <= self.filled => offset,
            _ => {
                self.fill(n)?;
                0
            }
        };
        self.at += n as u64;
        Ok(&self.window[offset..offset + n])
    }

    /// Reads the window anew so that it begins here and holds `n` bytes.
    fn fill(&mut self, n: usize) -> Result<(), Trouble> {
        if self.read > WORK {
            return Err(Flaw::bad(format!(
                "its header is longer than any model's ({} MiB read)",
                WORK >> 20
            ))
            .into());
        }
        self.start = self.at;
        self.filled = read_full(self.source, &mut self.window, self.at).map_err(|c| Flaw::unreadable(&c))?;
        self.read += self.filled as u64;
        if self.filled < n {
            return Err(Flaw::unknown("became shorter while it was read").into());
        }
        Ok(())
    }

    /// Passes over `n` bytes without reading them.
    pub(crate) fn skip(&mut self, n: u64) -> Result<(), Trouble> {
        if n > self.left() {
            return Err(Trouble::End);
        }
        self.at += n;
        Ok(())
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Trouble> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Trouble> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Trouble> {
        self.bytes().map(u64::from_le_bytes)
    }
}
