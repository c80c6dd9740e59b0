//! How a tool speaks to a person: `tool: cannot read 'x': cause`, lower case, no full stop, then a hint.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io;

use crate::exit::{self, Code};
use crate::home;

/// What ends a tool early: a code, one line for a person, and the command to try next.
#[derive(Debug)]
pub struct Error {
    /// The exit status.
    pub code: Code,
    /// One line without the tool's name; empty when nothing is to be said.
    pub message: String,
    /// What to do next, printed as a line `hint: ...`.
    pub hint: Option<String>,
}

impl Error {
    /// An error with a code of the contract.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// Wrong usage, 64.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(exit::USAGE, message)
    }

    /// `cannot DOING 'NAME': cause`, 74.
    pub fn io(doing: &str, name: &OsStr, cause: &io::Error) -> Self {
        Self::new(exit::IO, format!("cannot {doing} {}: {}", quoted(name), cause_of(cause)))
    }

    /// Ends with `code` and says nothing: what a closed pipe asks for.
    pub fn quiet(code: Code) -> Self {
        Self::new(code, "")
    }

    /// Adds the next command to try.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The lines for standard error.
    pub fn render(&self, tool: &str) -> String {
        let mut text = String::new();
        if !self.message.is_empty() {
            let _ = writeln!(text, "{tool}: {}", one_line(&self.message));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&hint_line(hint));
        }
        text
    }
}

impl From<lexopt::Error> for Error {
    fn from(cause: lexopt::Error) -> Self {
        // Not its Display, which links the debug printing of foreign types into every tool.
        use lexopt::Error as E;
        Self::usage(match cause {
            E::MissingValue { option: Some(option) } => format!("missing argument for option '{option}'"),
            E::MissingValue { option: None } => "missing argument".to_owned(),
            E::UnexpectedOption(option) => format!("unknown option '{option}'"),
            E::UnexpectedArgument(value) | E::NonUnicodeValue(value) => {
                format!("unexpected argument {}", quoted(&value))
            }
            E::UnexpectedValue { option, value } => {
                format!("option '{option}' takes no argument, and has {}", quoted(&value))
            }
            E::ParsingFailed { value, .. } => format!("cannot understand '{value}'"),
            E::Custom(_) => "cannot understand the command line".to_owned(),
        })
    }
}

/// The cause without Rust's ` (os error N)` tail, in lower case as messages are.
pub fn cause_of(cause: &io::Error) -> String {
    let text = cause.to_string();
    let mut text = text.split(" (os error").next().unwrap_or_default().to_owned();
    // In ASCII, as the system's texts are: Unicode's table would add 12 kB to every tool.
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    text
}

/// A name in single quotes, its control characters escaped so that it stays on one line.
pub fn quoted(name: &OsStr) -> String {
    format!("'{}'", one_line(&name.to_string_lossy()))
}

/// Text with every control character escaped: hostile names cannot draw on a terminal.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// The same of text that is no longer needed otherwise.
pub(crate) fn kept_to_one_line(text: String) -> String {
    if text.bytes().all(|b| (b' '..0x7f).contains(&b)) { text } else { one_line(&text) }
}

/// Writes progress or a warning to standard error as `tool: text`; a closed stderr is no reason to stop.
pub fn note(tool: &str, text: &str) {
    use io::Write as _;
    let line = format!("{tool}: {}\n", one_line(text));
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Writes the next command to try to standard error as `hint: text`.
pub fn hint(text: &str) {
    use io::Write as _;
    let _ = io::stderr().write_all(hint_line(text).as_bytes());
}

/// The line of a hint; one that says `swr` says where that is when it is not on `PATH`.
fn hint_line(text: &str) -> String {
    let place = home::swr_as().filter(|_| text.contains("swr "));
    let place = place.map(|p| format!("; swr is {} here", p.to_string_lossy())).unwrap_or_default();
    format!("hint: {}\n", one_line(&(text.to_owned() + &place)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_newline_stays_on_one_line() {
        let error =
            Error::io("read", OsStr::new("a\nb\u{1b}[31m"), &io::Error::from_raw_os_error(libc::ENOENT));
        assert_eq!(error.render("t").lines().count(), 1);
        assert!(error.render("t").starts_with("t: cannot read 'a\\nb\\u{1b}[31m': no such file"));
        assert_eq!(error.code, exit::IO);
    }
}
