//! A program with a bug, built as the tools are: `tests/check` runs it, since no tool panics on request.

use std::process::ExitCode;

use contract::Guard;

fn main() -> ExitCode {
    contract::run::<Guard>("panic - a bug\n", |args| {
        let word = args.text()?;
        panic!("what was to be {word}")
    })
}
