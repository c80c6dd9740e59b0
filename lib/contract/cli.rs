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

    /// Takes the command behind the first `--` off the command line: what stands before it is then read as
    /// options and operands on their own. `None` when there is no `--`.
    pub fn command(&mut self) -> Result<Option<Vec<OsString>>, Stop> {
        let mut before = vec![self.parser.bin_name().unwrap_or(self.tool).into()];
        before.extend(self.parser.raw_args()?);
        let command = before.iter().skip(1).position(|arg| arg == "--").map(|at| {
            let mut command = before.split_off(at + 1);
            command.remove(0);
            command
        });
        self.parser = lexopt::Parser::from_iter(before);
        Ok(command)
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

/// A duration as GNU reads it: a non-negative decimal with an optional suffix s, m, h or d.
/// Anything longer than about 100 years is as long as that; `None` when it is not a duration.
pub fn duration(text: &OsStr) -> Option<Duration> {
    const LONGEST: f64 = 3_153_600_000.0;
    let text = text.to_str()?;
    let (number, unit) = match text.as_bytes().last()? {
        b's' => (&text[..text.len() - 1], 1.0),
        b'm' => (&text[..text.len() - 1], 60.0),
        b'h' => (&text[..text.len() - 1], 3600.0),
        b'd' => (&text[..text.len() - 1], 86400.0),
        _ => (text, 1.0),
    };
    if number.starts_with(|c: char| !(c.is_ascii_digit() || c == '.' || c == '+')) {
        return number.eq_ignore_ascii_case("infinity").then(|| Duration::from_secs_f64(LONGEST));
    }
    let seconds: f64 = number.parse().ok()?;
    if seconds.is_nan() || seconds < 0.0 {
        return None;
    }
    Some(Duration::from_secs_f64((seconds * unit).min(LONGEST)))
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
    fn the_command_behind_the_dashes_is_not_read_as_options() {
        let args = |line: &str| Args { tool: "t", parser: lexopt::Parser::from_iter(line.split(' ')) };
        let mut split = args("/bin/t --a name -- run --help -- x");
        assert_eq!(split.command().unwrap().unwrap(), ["run", "--help", "--", "x"]);
        assert!(matches!(split.next(), Ok(Some(Arg::Long("a")))));
        assert!(matches!(split.next(), Ok(Some(Arg::Value(v))) if v == "name"));
        assert!(matches!(split.next(), Ok(None)));
        assert_eq!(split.called_as(), "t");
        assert_eq!(args("t --").command().unwrap(), Some(Vec::new()));
        let mut none = args("t --a");
        assert_eq!(none.command().unwrap(), None);
        assert!(matches!(none.next(), Ok(Some(Arg::Long("a")))));
    }

    #[test]
    fn durations_read_as_gnu_does() {
        let read = |s: &str| duration(OsStr::new(s)).map(|d| d.as_secs_f64());
        assert_eq!(read("0.5"), Some(0.5));
        assert_eq!(read("2m"), Some(120.0));
        assert_eq!(read("1.5h"), Some(5400.0));
        assert_eq!(read("1d"), Some(86400.0));
        assert_eq!(read(".25s"), Some(0.25));
        assert_eq!(read("1e2"), Some(100.0));
        for wrong in ["", "s", "-1", "1x", "1 s", "nan", "--", "1mm"] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
        assert!(read("99999999999999999999").is_some());
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
