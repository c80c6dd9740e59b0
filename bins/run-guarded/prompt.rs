//! The prompt: from the command line or from standard input, bounded in bytes and time, handed on as a file.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use contract::{Error, exit, message, origin};

/// The longest prompt in bytes.
const LIMIT: usize = 1 << 20;
/// Standard input must have ended by then.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is asked.
pub(crate) struct Prompt {
    /// UTF-8 without NUL and not blank.
    pub(crate) text: String,
    /// Whether it stood on the command line, so that other users have seen it there already.
    pub(crate) public: bool,
}

impl Prompt {
    /// Takes the operand PROMPT; `-` reads standard input.
    pub(crate) fn take(operand: OsString) -> Result<Self, Error> {
        let public = operand != "-";
        let bytes = if public { operand.into_encoded_bytes() } else { standard_input()? };
        if bytes.len() > LIMIT {
            return Err(
                Error::usage("the prompt is longer than 1 MiB").hint("shorten it, or ask about parts of it")
            );
        }
        let text = String::from_utf8(bytes).map_err(|cause| {
            let at = cause.utf8_error().valid_up_to();
            Error::usage(format!("the prompt is not UTF-8 at byte {at}"))
                .hint("iconv -t UTF-8 FILE | run-guarded - ROLE N")
        })?;
        if let Some(at) = text.find('\0') {
            return Err(Error::usage(format!("the prompt has a NUL at byte {at}, it is not text"))
                .hint("tr -d '\\000' < FILE | run-guarded - ROLE N"));
        }
        if text.trim().is_empty() {
            return Err(Error::usage("the prompt is blank"));
        }
        Ok(Self { text, public })
    }

    /// The prompt as a file in memory. The engine takes one newline off its end, so one is added.
    pub(crate) fn file(&self) -> Result<File, Error> {
        in_memory(&format!("{}\n", self.text))
    }
}

/// Text for the engine to read as a file, without anything being written to a disk.
pub(crate) fn in_memory(text: &str) -> Result<File, Error> {
    files::memory::holding(text.as_bytes()).map_err(|cause| {
        Error::new(exit::IO, format!("cannot hold the prompt in memory: {}", message::cause_of(&cause)))
    })
}

fn standard_input() -> Result<Vec<u8>, Error> {
    let broken = |cause: &str| Error::new(exit::IO, format!("cannot read standard input: {cause}"));
    if origin::was_closed(0) {
        return Err(broken("it is closed"));
    }
    let input = io::stdin();
    if input.is_terminal() {
        return Err(
            Error::usage("the prompt would be read from a terminal").hint("run-guarded - ROLE N < FILE")
        );
    }
    // One byte more than allowed tells that there is too much.
    let read = |fd: OwnedFd| files::bounded::read(&mut fd.into(), LIMIT + 1, PATIENCE);
    input.as_fd().try_clone_to_owned().and_then(read).map_err(|cause| match cause.kind() {
        io::ErrorKind::TimedOut => broken(&format!("it did not end within {} s", PATIENCE.as_secs())),
        _ => broken(&message::cause_of(&cause)),
    })
}
