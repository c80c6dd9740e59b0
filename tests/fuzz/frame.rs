//! The frame of a fuzzer: numbered cases of one seed, watched from outside, so that a hang names its case.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// What a single case may take.
pub(crate) const SLOWEST: Duration = Duration::from_secs(1);

/// The case at work, for whoever waits.
static CASE: AtomicU64 = AtomicU64::new(0);

/// The main of a fuzzer that is called `NAME [COUNT [SEED]]`: `run` does all cases and says what is wrong with one.
pub(crate) fn watched(name: &'static str, run: fn(u64, u64) -> Result<(), String>) -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let (Ok(count), Ok(seed)) =
        (numbers.next().unwrap_or(Ok(20_000)), numbers.next().unwrap_or(Ok(20_261_130)))
    else {
        eprintln!("usage: {name} [COUNT [SEED]]");
        return ExitCode::from(contract::exit::USAGE.number());
    };
    std::panic::set_hook(Box::new(move |panic| {
        eprintln!("{name}: case {} of seed {seed}: {panic}", CASE.load(Ordering::Relaxed));
    }));
    let (done, end) = mpsc::channel();
    std::thread::spawn(move || done.send(run(count, seed)));
    let mut last = u64::MAX;
    loop {
        match end.recv_timeout(10 * SLOWEST) {
            Ok(Ok(())) => return ExitCode::SUCCESS,
            Ok(Err(what)) => {
                eprintln!("{name}: case {} of seed {seed}: {what}", CASE.load(Ordering::Relaxed));
            }
            Err(RecvTimeoutError::Timeout) if CASE.load(Ordering::Relaxed) != last => {
                last = CASE.load(Ordering::Relaxed);
                continue;
            }
            Err(RecvTimeoutError::Timeout) => eprintln!("{name}: case {last} of seed {seed} hangs"),
            // Only where a panic unwinds; where it aborts, the hook has spoken.
            Err(RecvTimeoutError::Disconnected) => {}
        }
        return ExitCode::FAILURE;
    }
}

/// What `work` gives and how long it took; a machine that is busy elsewhere stretches a case now and then, not three times
/// running.
pub(crate) fn timed<T>(work: impl Fn() -> T) -> (T, Duration) {
    let once = || {
        let start = Instant::now();
        (work(), start.elapsed())
    };
    let (answer, mut took) = once();
    for _ in 0..2 {
        if took > SLOWEST {
            took = took.min(once().1);
        }
    }
    (answer, took)
}

/// The most memory this process had so far.
pub(crate) fn peak_memory_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?.parse().ok()
}

/// The generator `SplitMix64` (Steele, Lea and Flood 2014).
pub(crate) struct Random(u64);

impl Random {
    /// The numbers of one case, which is now the one at work.
    pub(crate) fn of(case: u64, seed: u64) -> Self {
        CASE.store(case, Ordering::Relaxed);
        Self(seed ^ case.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `n`, 0 when that is 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n.max(1) as u64).unwrap_or(0)
    }
}
