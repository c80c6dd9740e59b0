//! Why a rebuild ends early: a verdict about the engine, or an error of the tool.

use contract::{Error, State, message};

/// The reason, ready to be said.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The engine cannot be rebuilt.
    Verdict {
        /// What is so of it.
        state: State,
        /// The cause.
        detail: String,
        /// The next command.
        hint: Option<String>,
    },
    /// The tool cannot do its work.
    Error(Error),
}

impl Halt {
    /// A verdict without a hint.
    pub(crate) fn new(state: State, detail: impl Into<String>) -> Self {
        Self::Verdict { state, detail: detail.into(), hint: None }
    }

    /// Adds the next command to try.
    #[must_use]
    pub(crate) fn hint(self, text: impl Into<String>) -> Self {
        match self {
            Self::Verdict { state, detail, .. } => Self::Verdict { state, detail, hint: Some(text.into()) },
            Self::Error(error) => Self::Error(error.hint(text)),
        }
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Says a long step before it starts, on standard error.
pub(crate) fn say(text: &str) {
    message::note("llama-rebuild", text);
}

/// Everything is written below these two.
const WAY_OUT: &str = "make room, or set SELFHEAL_HOME (the engine) and SELFHEAL_LLAMA_DIR (its source) to directories that can be written";

/// An input or output error as the contract words it, 74; where something could not be written, with the way out.
pub(crate) fn io<'a>(
    doing: &'a str,
    path: &'a std::path::Path,
) -> impl FnOnce(std::io::Error) -> Halt + use<'a> {
    move |cause| {
        let error = Error::io(doing, path.as_os_str(), &cause);
        Halt::Error(if doing == "read" { error } else { error.hint(WAY_OUT) })
    }
}
