//! Consent as a value: whatever writes takes a [`Fix`], and a check-mode run never holds one.

use crate::home;
use crate::message::{Error, one_line};

/// Proof of consent. It cannot be made outside this module.
#[derive(Debug)]
pub struct Fix(());

/// Consent under `SELFHEAL_MODE=fix`, nothing under `check` (the default); another value is wrong usage,
/// because a misspelt consent must not pass for either.
pub fn fix() -> Result<Option<Fix>, Error> {
    match home::mode().as_deref().map(|m| m.to_string_lossy().into_owned()).as_deref() {
        None | Some("" | "check") => Ok(None),
        Some("fix") => Ok(Some(Fix(()))),
        Some(other) => Err(Error::usage(format!("SELFHEAL_MODE is '{other}', not 'check' or 'fix'"))
            .hint("SELFHEAL_MODE=fix allows repairs, check only reports")),
    }
}

/// Consent given by naming: a `swr` verb that writes, or a file the caller named on the command line.
pub fn by_name() -> Fix {
    Fix(())
}

/// Says on standard error what would be done, as a line `DRY: would ...`.
pub fn would(action: &str) {
    use std::io::Write as _;
    let _ = std::io::stderr().write_all(format!("DRY: would {}\n", one_line(action)).as_bytes());
}
