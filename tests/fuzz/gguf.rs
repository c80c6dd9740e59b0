//! Mutated GGUF headers, in process and deterministic: `fuzz-gguf [COUNT [SEED]]`.
//!
//! Each case is one of a few sound files with flips, numbers, splices or cuts in its header. The library must
//! answer within a second and as the oracle does; the whole run must stay under 64 MB. Some cases claim to be
//! 10 GB of which only the beginning is data. A hang, a panic or a disagreement names its case and ends with 1.

mod frame;
mod gguf_file;
mod gguf_oracle;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use contract::State;
use frame::{Random, SLOWEST, peak_memory_kb, timed};
use gguf::Source;
use gguf_file::{ARRAY, F32, GgufFile, STRING, U16, U32, Written, array, string};

const MOST_MEMORY_KB: u64 = 64 << 10;

fn main() -> ExitCode {
    frame::watched("fuzz-gguf", run)
}

/// All cases; the error says what is wrong with the one at work.
fn run(count: u64, seed: u64) -> Result<(), String> {
    let bases = bases();
    let mut states = [(State::Ok, 0_u64), (State::Short, 0), (State::Corrupt, 0), (State::Bad, 0)];
    let mut slowest = (Duration::ZERO, 0);
    for case in 0..count {
        let mut random = Random::of(case, seed);
        let file = mutate(&bases, &mut random);
        let sparse = random.below(16) == 0;
        let examine = || if sparse { gguf::examine(&Sparse(&file)) } else { gguf::examine(&&file[..]) };
        let (answer, took) = timed(examine);
        if took > slowest.0 {
            slowest = (took, case);
        }
        if took > SLOWEST {
            return Err(format!("took {took:?}"));
        }
        if !sparse && gguf_oracle::accepts(&file) != answer.is_ok() {
            return Err(format!("the oracle disagrees with {answer:?}"));
        }
        let state = answer.map_or_else(|flaw| flaw.state, |_| State::Ok);
        let counter = states.iter_mut().find(|(s, _)| *s == state);
        counter.ok_or(format!("answered {}", state.word()))?.1 += 1;
    }
    let peak = peak_memory_kb().ok_or("cannot read /proc/self/status")?;
    if peak > MOST_MEMORY_KB {
        return Err(format!("peak memory {peak} kB after all cases"));
    }
    let states = states.map(|(state, n)| format!("{n} {}", state.word())).join(", ");
    println!(
        "{count} mutated headers, seed {seed}: {states}; slowest {:?} (case {}); peak {peak} kB",
        slowest.0, slowest.1
    );
    Ok(())
}

/// 10 GB, of which only the beginning was written.
struct Sparse<'a>(&'a [u8]);

impl Source for Sparse<'_> {
    fn size(&self) -> u64 {
        10 << 30
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let left = usize::try_from(self.size().saturating_sub(at)).unwrap_or(usize::MAX);
        let n = buffer.len().min(left);
        let filled = self.0.read_at(&mut buffer[..n], at)?;
        buffer[filled..n].fill(0);
        Ok(n)
    }
}

/// Sound files of different shape; names differ in a bit, so that a flip makes them the same.
fn bases() -> Vec<Written> {
    let words: Vec<Vec<u8>> = (0..40).map(|n| string(format!("token{n}").as_bytes())).collect();
    let floats: Vec<Vec<u8>> = (0..40_u8).map(|n| f32::from(n).to_le_bytes().to_vec()).collect();
    let rich = GgufFile::small()
        .key("k.0", 0, vec![1])
        .key("k.1", U16, vec![1, 0])
        .key("k.2", F32, vec![0; 4])
        .key("k.3", 7, vec![1])
        .key("k.4", 10, vec![7; 8])
        .key("tokens", ARRAY, array(STRING, &words))
        .key("scores", ARRAY, array(F32, &floats))
        .key("none", ARRAY, array(U32, &[]))
        .alignment(64)
        .tensor("t.0", &[64, 2], 2, 72)
        .tensor("t.1", &[256, 3, 1, 1], 14, 630)
        .tensor("t.2", &[3], 28, 24)
        .tensor("t.3", &[], 0, 4)
        .tensor("t.4", &[0, 5], 1, 0)
        .tensor("t.5", &[5], 24, 5);
    let mut files = vec![
        GgufFile::small(),
        rich.clone().version(2),
        rich,
        GgufFile::small().split(0, 3, 3),
        GgufFile::bare().split(1, 3, 3).tensor("b", &[32], 8, 34),
        GgufFile::bare().text("general.architecture", "llama").split(0, 2, 1),
    ];
    files.push((0..8).fold(GgufFile::small(), |file, n| file.key(&format!("k{n}"), 0, vec![n])));
    // Tensors of types with odd blocks, a block each.
    let one_each = [(2, 32, 18), (3, 32, 20), (10, 256, 84), (39, 32, 17), (40, 64, 36), (41, 128, 18)];
    files.push(one_each.iter().fold(GgufFile::small(), |file, (kind, block, bytes)| {
        file.tensor(&format!("t{kind}"), &[*block], *kind, *bytes)
    }));
    files.iter().map(GgufFile::write).collect()
}

/// One of the bases with one to three changes.
fn mutate(bases: &[Written], random: &mut Random) -> Vec<u8> {
    let base = &bases[random.below(bases.len())];
    let mut file = base.bytes.clone();
    for _ in 0..=random.below(3) {
        let header = base.data.min(file.len());
        if header == 0 {
            break;
        }
        match random.below(8) {
            0 => {
                let at = random.below(header);
                file[at] ^= 1 << random.below(8);
            }
            1 => {
                let at = random.below(header);
                file[at] = random.interesting(file.len()).to_le_bytes()[0];
            }
            2..=4 => {
                let (at, width) = base.numbers[random.below(base.numbers.len())];
                let number = random.number(&file, at, width).to_le_bytes();
                if let Some(field) = file.get_mut(at..at + width) {
                    field.copy_from_slice(&number[..width]);
                }
            }
            5 => {
                let other = &bases[random.below(bases.len())];
                let from = random.below(other.data);
                let piece = &other.bytes[from..other.data.min(from + 1 + random.below(64))];
                let at = random.below(header);
                let replaced = random.below(2) * piece.len().min(file.len() - at);
                file.splice(at..at + replaced, piece.iter().copied());
            }
            6 => {
                let at = random.below(header);
                let end = (at + 1 + random.below(64)).min(file.len());
                file.drain(at..end);
            }
            _ => {
                let length = random.below(file.len() + 64);
                file.resize(length, b'x');
            }
        }
    }
    file
}

impl Random {
    /// A number at which readers go wrong.
    fn interesting(&mut self, size: usize) -> u64 {
        let one = 1_u64 << self.below(64);
        match self.below(6) {
            0 => one,
            1 => one.wrapping_sub(1),
            2 => one.wrapping_neg(),
            3 => size as u64,
            4 => self.next() % 64,
            _ => self.next(),
        }
    }

    /// A number near the one that stands there, or an interesting one.
    fn number(&mut self, file: &[u8], at: usize, width: usize) -> u64 {
        let mut bytes = [0; 8];
        if let Some(field) = file.get(at..at + width) {
            bytes[..width].copy_from_slice(field);
        }
        let near = u64::from_le_bytes(bytes);
        match self.below(4) {
            0 => near.wrapping_add(1),
            1 => near.wrapping_sub(1),
            2 => near ^ 1 << self.below(64),
            _ => self.interesting(file.len()),
        }
    }
}
