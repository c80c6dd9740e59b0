//! Command lines: lexopt, with `--help` and `--version` understood everywhere.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

pub use lexopt::Arg;

use crate::message::{Error, quoted};

/// Why a tool stops before its work is done.
#[derive(Debug)]
pub enum Stop {
    /// `--help`: the help text on standard output, 0.
    Help,
    /// `--version`: name and version on standard output, 0.
    Version,
    /// An error: its message on standard error, its code.
    Error(Error),
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// The arguments of this process, read once from left to right.
pub struct Args {
    tool: &'static str,
    parser: lexopt::Parser,
}

impl Args {
    pub(crate) fn from_process(tool: &'static str) -> Self {
        Self { tool, parser: lexopt::Parser::from_env() }
    }

    /// The tool's name, for messages.
    pub fn tool(&self) -> &'static str {
        self.tool
    }

    /// The name the process was called by, without its directories.
    pub fn called_as(&self) -> String {
        let name = self.parser.bin_name().unwrap_or(self.tool);
        name.rsplit('/').next().unwrap_or(name).to_owned()
    }

    /// The next option or operand.
    #[expect(clippy::should_implement_trait, reason = "it lends from the parser, which Iterator cannot")]
    pub fn next(&mut self) -> Result<Option<Arg<'_>>, Stop> {
        match self.parser.next()? {
            Some(Arg::Long("help")) => Err(Stop::Help),
            Some(Arg::Long("version")) => Err(Stop::Version),
            other => Ok(other),
        }
    }

    /// The value of the option just read.
    pub fn value(&mut self) -> Result<OsString, Stop> {
        Ok(self.parser.value()?)
    }

    /// The value of the option just read, as text.
    pub fn text(&mut self) -> Result<String, Stop> {
        self.value()?.into_string().map_err(|v| Error::usage(format!("{} is not UTF-8", quoted(&v))).into())
    }

    /// Everything that is left, unread: the command of a prefix command.
    pub fn rest(&mut self) -> Result<Vec<OsString>, Stop> {
        Ok(self.parser.raw_args()?.collect())
    }
}

/// The usage error for an argument a tool does not know.
pub fn unknown(arg: Arg<'_>) -> Stop {
    Error::usage(match arg {
        Arg::Short(c) => format!("unknown option '-{}'", c.escape_default()),
        Arg::Long(name) => format!("unknown option '--{name}'"),
        Arg::Value(value) => format!("unexpected argument {}", quoted(&value)),
    })
    .into()
}

/// About 100 years: as long as any bound is of use, and short enough for every clock.
const LONGEST: Duration = Duration::from_secs(3_153_600_000);

/// A duration as GNU reads it: a non-negative decimal with an optional suffix s, m, h or d.
///
/// Rounded up to the next nanosecond, so that only zero is zero, which may mean no bound; longer than about
/// 100 years is as long as that. `None` when it is not a duration. (In integers: floating point would be a
/// third of a small tool.)
pub fn duration(text: &OsStr) -> Option<Duration> {
    let text = text.to_str()?;
    let (number, unit) = match text.as_bytes().last()? {
        b's' => (&text[..text.len() - 1], 1),
        b'm' => (&text[..text.len() - 1], 60),
        b'h' => (&text[..text.len() - 1], 3600),
        b'd' => (&text[..text.len() - 1], 86400),
        _ => (text, 1),
    };
    let number = number.strip_prefix('+').unwrap_or(number);
    if ["inf", "infinity"].iter().any(|word| number.eq_ignore_ascii_case(word)) {
        return Some(LONGEST);
    }
    let (digits, exponent) = match number.split_once(['e', 'E']) {
        None => (number, 0),
        Some((digits, exponent)) => (digits, power(exponent)?),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.len() + fraction.len() == 0 {
        return None;
    }
    let mut value: u128 = 0;
    let mut scale = exponent + 9;
    for (i, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
        let digit = char::from(digit).to_digit(10)?;
        // Digits beyond the 25th count as zeros: they cannot reach a nanosecond of a century.
        if value < 10_u128.pow(25) {
            value = value * 10 + u128::from(digit);
            scale -= i32::from(i >= whole.len());
        } else {
            scale += i32::from(i < whole.len());
        }
    }
    let value = value * unit;
    let power = 10_u128.checked_pow(scale.unsigned_abs());
    let nanos = match power {
        _ if value == 0 => 0,
        Some(power) if scale < 0 => value.div_ceil(power),
        Some(power) => value.saturating_mul(power),
        None if scale < 0 => 1,
        None => u128::MAX,
    };
    Some(u64::try_from(nanos).map_or(LONGEST, Duration::from_nanos).min(LONGEST))
}

/// A decimal exponent with an optional sign; beyond a million it makes no difference.
fn power(text: &str) -> Option<i32> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(sign * digits.parse().unwrap_or(1_000_000).min(1_000_000))
}

/// A count of bytes: decimal digits with an optional suffix K, M or G (powers of 1024).
pub fn bytes(text: &OsStr) -> Option<u64> {
    let text = text.to_str()?;
    let (number, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        b'g' | b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    if !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_gnu_does() {
        let read = |s: &str| duration(OsStr::new(s)).map(|d| d.as_secs_f64());
        assert_eq!(read("0.5"), Some(0.5));
        assert_eq!(read("2m"), Some(120.0));
        assert_eq!(read("1.5h"), Some(5400.0));
        assert_eq!(read("1d"), Some(86400.0));
        assert_eq!(read(".25s"), Some(0.25));
        assert_eq!(read("1e2"), Some(100.0));
        assert_eq!(read("1.e1"), Some(10.0));
        assert_eq!(read("+00000000000000000000000000000000000000000002.50"), Some(2.5));
        for wrong in
            ["", "s", "-1", "1x", "1 s", "nan", "--", "1mm", ".", "1e", "1e+", "1.2.3", "++1", "1e1.5"]
        {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
        assert!(read("99999999999999999999").is_some());
        assert_eq!(read("inf"), read("1e400d"));
        assert_eq!(read("0.0e9"), Some(0.0));
        for tiny in ["1e-400", "0.0000000000001", "1e-10d"] {
            assert!(read(tiny) > Some(0.0), "{tiny}: never no bound");
        }
    }

    #[test]
    fn bytes_do_not_overflow() {
        let read = |s: &str| bytes(OsStr::new(s));
        assert_eq!(read("10"), Some(10));
        assert_eq!(read("2K"), Some(2048));
        assert_eq!(read("1G"), Some(1 << 30));
        for wrong in ["", "K", "-1", "1.5", "18446744073709551615K", "+1"] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }
}
