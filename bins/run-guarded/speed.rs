//! How fast the engine wrote, from the performance figures at the end of its log.

/// What was measured of one answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Speed {
    /// Tokens evaluated one by one: those of the answer but the first.
    pub(crate) tokens: u64,
    /// The time they took, in microseconds; never zero.
    pub(crate) micros: u64,
}

impl Speed {
    /// Thousandths of a token per second.
    pub(crate) fn milli_tps(self) -> u64 {
        let milli = u128::from(self.tokens) * 1_000_000_000 / u128::from(self.micros);
        u64::try_from(milli).unwrap_or(u64::MAX)
    }
}

/// Reads `common_perf_print:        eval time =     123.45 ms /    63 runs   ( ...`, the last such line; the
/// line of the prompt has another word before `eval`.
pub(crate) fn of(log: &str) -> Option<Speed> {
    let figures = log.lines().rev().find_map(|line| {
        let (before, figures) = line.split_once("eval time =")?;
        (!before.trim_end().ends_with("prompt")).then_some(figures)
    })?;
    let (time, rest) = figures.split_once(" ms /")?;
    let (whole, fraction) = time.trim().split_once('.')?;
    let micros = whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(match fraction.len() {
        2 => fraction.parse::<u64>().ok()? * 10,
        _ => return None,
    })?;
    let tokens = rest.trim_start().split_once(" runs")?.0.parse().ok()?;
    (micros > 0 && tokens > 0).then_some(Speed { tokens, micros })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_the_answer_are_read_and_not_those_of_the_prompt() {
        let log = "0.00.1 I common_perf_print: prompt eval time =      32.10 ms /    36 tokens (    0.89 ms per token,  1121.50 tokens per second)\n\
                   0.00.1 I common_perf_print:        eval time =    1234.56 ms /    63 runs   (   19.60 ms per token,    51.03 tokens per second)\n\
                   0.00.1 I common_perf_print:       total time =    1300.00 ms /    99 tokens\n";
        let speed = of(log).unwrap();
        assert_eq!(speed, Speed { tokens: 63, micros: 1_234_560 });
        assert_eq!(speed.milli_tps(), 51_030);
        for (from, to) in [
            ("1234.56", "0.00"),
            ("63 runs", "0 runs"),
            ("63 runs", "-1 runs"),
            ("1234.56", "nan"),
            ("       eval time", "prompt eval time"),
            ("1234.56", "99999999999999999999.00"),
        ] {
            assert_eq!(of(&log.replace(from, to)), None, "{to}");
        }
        assert_eq!(of(""), None);
    }
}
