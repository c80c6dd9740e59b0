//! The frame of a tool: help and version, one error printer, a panic that ends 70.

use std::io::Write as _;
use std::process::ExitCode;

use crate::cli::{Args, Stop};
use crate::exit::{self, Code, Family};
use crate::{origin, verdict};

/// Runs a tool. `help` is its whole help text, whose first word is the tool's name; `F` names its family.
pub fn run<F: Family>(help: &'static str, go: fn(&mut Args) -> Result<Code, Stop>) -> ExitCode {
    origin::restore_pipe();
    let tool = help.split_whitespace().next().unwrap_or("selfheal");
    std::panic::set_hook(Box::new(move |info| {
        let _ = writeln!(std::io::stderr(), "{tool}: this is a bug: {info}");
        leave(exit::BUG);
    }));
    let result = match go(&mut Args::from_process(tool)) {
        Ok(code) => Ok(code),
        Err(Stop::Help) => verdict::print(help.as_bytes()).map(|()| exit::OK),
        Err(Stop::Version) => {
            verdict::print(format!("{tool} {}\n", env!("CARGO_PKG_VERSION")).as_bytes()).map(|()| exit::OK)
        }
        Err(Stop::Error(error)) => Err(error),
    };
    let code = result.unwrap_or_else(|error| {
        let error = if error.code == exit::USAGE && error.hint.is_none() {
            error.hint(format!("{tool} --help"))
        } else {
            error
        };
        let text = error.render(tool);
        let _ = std::io::stderr().write_all(text.as_bytes());
        error.code
    });
    ExitCode::from(code.number())
}

#[expect(clippy::disallowed_methods, reason = "a panic hook cannot return a code")]
fn leave(code: Code) -> ! {
    std::process::exit(i32::from(code.number()))
}
