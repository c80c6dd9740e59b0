//! `sh-timeout`: a prefix command that bounds the rest of its line.

mod bounded;
mod gnu;
mod report;

use std::process::ExitCode;

use contract::{Args, Code, Guard, cli};

fn main() -> ExitCode {
    contract::run::<Guard>(include_str!("help.txt"), go)
}

/// The name it is called by decides whose options and numbers hold.
fn go(args: &mut Args) -> Result<Code, cli::Stop> {
    if args.called_as() == "timeout" { gnu::go(args) } else { bounded::go(args) }
}
