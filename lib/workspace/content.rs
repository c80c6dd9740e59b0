//! What is in a file: its whole hash, or hashes of samples spread over it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use files::digest::{self, Hasher, Sha};
use files::open::Print;

/// Bytes of one sample.
pub const SAMPLE: u64 = 64 << 10;
/// Samples recorded of a blob.
pub const SAMPLES: usize = 16;

/// Threads that hash: the processors this process may use, at most 8. Not std's count, which reads cgroups for it: that costs
/// a look a fiftieth and a program 16 kB, and a quota only makes what is more than it wait.
pub fn jobs() -> usize {
    rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize).clamp(1, 8)
}

/// The hash of a whole file, or `None` when it is not or no longer what `print` describes.
pub fn whole(file: &mut File, print: &Print) -> io::Result<Option<Sha>> {
    if Print::of(&file.metadata()?) != *print {
        return Ok(None);
    }
    digest::of_file(file)
}

/// Where sample `n` of `count` begins: the first at the start, the last ends at the end.
pub fn sample_offset(size: u64, count: usize, n: usize) -> u64 {
    let last = size.saturating_sub(SAMPLE);
    // A count of 16 and a size below 2^60 cannot overflow; larger sizes lose only evenness.
    last.saturating_mul(n as u64) / (count.saturating_sub(1).max(1) as u64)
}

/// The hashes of `count` samples of a file of `size` bytes.
pub fn samples(file: &File, size: u64, count: usize) -> io::Result<Vec<Sha>> {
    let mut buffer = vec![0; 64 << 10];
    (0..count)
        .map(|n| {
            let mut filled = 0;
            let offset = sample_offset(size, count, n);
            while filled < buffer.len() {
                match file.read_at(&mut buffer[filled..], offset + filled as u64) {
                    Ok(0) => break,
                    Ok(n) => filled += n,
                    Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                    Err(cause) => return Err(cause),
                }
            }
            let mut hasher = Hasher::default();
            hasher.update(&buffer[..filled]);
            Ok(hasher.finish())
        })
        .collect()
}
