//! What a prefix command ends with: the status of the command it stands before, and its own number only where it has none.

use std::ffi::OsStr;
use std::time::Duration;

use contract::exit::{self, guard};
use contract::{Code, Error, message};

use crate::{Cause, NotStarted, Outcome};

impl Outcome {
    /// The command's status as that of the prefix `tool`; 4 when `program` could not be started, 74 when its output
    /// was lost. A command that was stopped at `limit` has one line on standard error.
    pub fn passed_on(self, tool: &str, program: &OsStr, limit: Duration) -> Result<Code, Error> {
        let program = message::quoted(program);
        match self.cause {
            Cause::NotStarted(why) => {
                let why = match why {
                    NotStarted::NotFound => "not found".to_owned(),
                    NotStarted::NotRunnable(cause) => message::cause_of(&cause),
                };
                return Err(Error::new(guard::BINARY, format!("cannot run {program}: {why}"))
                    .hint("give a program on PATH or its path"));
            }
            Cause::Expired => message::note(tool, &format!("stopped {program} at its limit of {limit:?}")),
            _ => {}
        }
        if let Some(cause) = self.write_error {
            let text = format!("cannot write to standard output: {}", message::cause_of(&cause));
            return Err(Error::new(exit::IO, text));
        }
        Ok(Code::transparent(self.status.unwrap_or(exit::gnu::KILLED.number())))
    }
}
