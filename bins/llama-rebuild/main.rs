use std::process::ExitCode;

use contract::{Args, Code, Guard, cli};

fn main() -> ExitCode {
    contract::run::<Guard>(include_str!("help.txt"), go)
}

fn go(args: &mut Args) -> Result<Code, cli::Stop> {
    while let Some(arg) = args.next()? {
        return Err(cli::unknown(arg));
    }
    Ok(contract::exit::OK)
}
