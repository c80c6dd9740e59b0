//! Mutated workspace manifests, in process and deterministic: `fuzz-manifest [COUNT [SEED]]`.
//!
//! Each case is the annotated example with a few flips, cuts, repetitions or insertions. Read whole and in pieces of any
//! size it must be the same manifest or none; every line of one that is accepted is JSON to another strict reader; and
//! an entry written again is the same entry. A hang, a panic or a disagreement names its case and ends with 1.

mod frame;

use std::process::ExitCode;
use std::time::Duration;

use frame::{Random, SLOWEST, peak_memory_kb, timed};
use workspace::reading::{self, Reading};
use workspace::{Entry, Line, Manifest, json};

const MOST_MEMORY_KB: u64 = 64 << 10;
const EXAMPLE: &str = include_str!("../../reference/manifest.example.jsonl");
const SIGNATURE: &str = r#"{"sig":"hmac-sha256","key":"k","value":"00"}"#;

/// What readers trip over.
const PIECES: [&str; 32] = [
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\n",
    " ",
    "\r",
    "\t",
    "\0",
    "\u{feff}",
    "null",
    "true",
    "-1",
    "1.5",
    "1e400",
    "18446744073709551616",
    "\\u0000",
    "\\ud800",
    "\\u0069",
    "\"id\":\"shim\"",
    "\"sig\":\"x\"",
    "\"mode\":\"0755\"",
    "..",
    "%",
    "%2F",
    "~/",
    "\"members\":[[[[[[[",
    "\u{e9}",
];

fn main() -> ExitCode {
    frame::watched("fuzz-manifest", run)
}

fn run(count: u64, seed: u64) -> Result<(), String> {
    let mut accepted = 0_u64;
    let mut slowest = Duration::ZERO;
    for case in 0..count {
        let mut random = Random::of(case, seed);
        let bytes = mutate(&mut random);
        let (whole, took) = timed(|| Manifest::parse(&bytes));
        slowest = slowest.max(took);
        let size = 1 + random.below(4) * random.below(8);
        match (&whole, in_pieces(&bytes, size)) {
            (Ok(manifest), Ok(entries)) => {
                accepted += 1;
                if !manifest.lines.iter().map(|l| &l.entry).eq(&entries) {
                    return Err(format!("other entries in pieces of {size}"));
                }
                sound(manifest)?;
            }
            (Err(_), Err(_)) => {}
            (whole, pieces) => {
                return Err(format!(
                    "in pieces of {size}: {:?}, whole: {:?}",
                    pieces.err(),
                    whole.as_ref().err()
                ));
            }
        }
    }
    let peak = peak_memory_kb().ok_or("cannot read /proc/self/status")?;
    if slowest > SLOWEST || peak > MOST_MEMORY_KB {
        return Err(format!("slowest {slowest:?}, peak memory {peak} kB after all cases"));
    }
    if accepted == 0 || accepted == count {
        return Err(format!("{accepted} of {count} accepted: nothing is told from anything"));
    }
    println!(
        "{count} mutated manifests, seed {seed}: {accepted} accepted; slowest {slowest:?}; peak {peak} kB"
    );
    Ok(())
}

/// The entries, read a few lines at a time.
fn in_pieces(bytes: &[u8], size: usize) -> Result<Vec<Entry<'static>>, String> {
    let mut reading = Reading::begin(bytes)?;
    let pieces = std::iter::from_fn(|| reading.piece(size));
    let pieces: Vec<_> = pieces.map(|piece| piece.read()).collect::<Result<_, _>>()?;
    reading::check(&pieces)?;
    Ok(pieces.into_iter().flat_map(|piece| piece.entries).map(|line| line.entry.into_owned()).collect())
}

/// What is so of every manifest that is accepted.
fn sound(manifest: &Manifest) -> Result<(), String> {
    for line in &manifest.lines {
        let raw = manifest.raw(line);
        json::parse(raw).map_err(|e| format!("a line that is no JSON was accepted: {e}"))?;
        let mut alone = Manifest::empty(b"~");
        alone.put(line.entry.clone());
        let again =
            Manifest::parse(&alone.to_bytes()).map_err(|e| format!("written again it is refused: {e}"))?;
        if again.lines.iter().map(|l: &Line| &l.entry).ne([&line.entry]) {
            return Err(format!("written again it is another: {:?}", line.entry));
        }
    }
    Ok(())
}

/// The example, signed or not, with one to three changes.
fn mutate(random: &mut Random) -> Vec<u8> {
    let mut text = EXAMPLE.as_bytes().to_vec();
    if random.below(2) == 0 {
        text.extend_from_slice(SIGNATURE.as_bytes());
        text.push(b'\n');
    }
    for _ in 0..=random.below(3) {
        let at = random.below(text.len());
        match random.below(6) {
            0 => {
                if let Some(byte) = text.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            1 => {
                let end = text.len().min(at + 1 + random.below(40));
                text.drain(at..end);
            }
            2 => {
                // A whole line elsewhere.
                let mut lines: Vec<_> = text.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
                let line = lines[random.below(lines.len())].clone();
                let to = random.below(lines.len());
                if random.below(2) == 0 {
                    lines.insert(to, line);
                } else {
                    lines[to] = line;
                }
                text = lines.concat();
            }
            3 => {
                // One entry's field in another.
                let from = random.below(text.len());
                let field: Vec<_> = text[from..text.len().min(from + 1 + random.below(60))].to_vec();
                text.splice(at..at, field);
            }
            _ => {
                let piece = PIECES[random.below(PIECES.len())];
                let end = text.len().min(at + random.below(3));
                text.splice(at..end, piece.bytes());
            }
        }
    }
    text
}
