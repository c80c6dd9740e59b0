//! Why a file is not a model: a state of the contract and the cause in words.

use std::fmt;
use std::io;

use contract::State;
use contract::message::cause_of;

/// What is wrong with a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flaw {
    /// `short`, `corrupt`, `bad`, `missing` or `unknown`.
    pub state: State,
    /// The cause, for a person; the file's name is not in it.
    pub cause: String,
    /// Only this tool's tables stop here: a newer engine may well run the file.
    pub newer: bool,
}

impl Flaw {
    /// Content is missing at the end.
    pub fn short(cause: impl Into<String>) -> Self {
        Self { state: State::Short, cause: cause.into(), newer: false }
    }

    /// The content is not what the format says.
    pub fn corrupt(cause: impl Into<String>) -> Self {
        Self { state: State::Corrupt, cause: cause.into(), newer: false }
    }

    /// Well formed, and of no use here: fetching the same file again changes nothing.
    pub fn bad(cause: impl Into<String>) -> Self {
        Self { state: State::Bad, cause: cause.into(), newer: false }
    }

    /// Beyond what this tool knows of the format.
    pub fn newer(cause: impl Into<String>) -> Self {
        Self { state: State::Bad, cause: cause.into(), newer: true }
    }

    /// There is nothing.
    pub fn missing(cause: impl Into<String>) -> Self {
        Self { state: State::Missing, cause: cause.into(), newer: false }
    }

    /// It could not be found out.
    pub fn unknown(cause: impl Into<String>) -> Self {
        Self { state: State::Unknown, cause: cause.into(), newer: false }
    }

    /// The system refused to read.
    pub fn unreadable(cause: &io::Error) -> Self {
        Self::unknown(format!("cannot be read: {}", cause_of(cause)))
    }
}

/// A count with its noun, grouped by nothing: `1 byte`, `2 bytes`.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, if self.0 == 1 { "byte" } else { "bytes" })
    }
}
