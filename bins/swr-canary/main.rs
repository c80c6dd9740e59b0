//! `swr-canary`: plants probes, and reads later what the platform keeps.

mod plant;
mod probe;
mod read;

use std::path::PathBuf;
use std::process::ExitCode;

use contract::cli::{Arg, Stop, unknown};
use contract::{Args, Code, Error, Swr, home};

fn main() -> ExitCode {
    contract::run::<Swr>(include_str!("help.txt"), go)
}

fn go(args: &mut Args) -> Result<Code, Stop> {
    let (mut verb, mut dir, mut large, mut json): (Option<String>, Option<PathBuf>, _, _) =
        (None, None, false, false);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("dir") => dir = Some(args.value()?.into()),
            Arg::Long("large") => large = true,
            Arg::Long("json") => json = true,
            Arg::Value(word) if verb.is_none() => verb = Some(word.to_string_lossy().into_owned()),
            other => return Err(unknown(other)),
        }
    }
    let notes = home::swr_home()?.join("canary");
    let code = match verb.as_deref() {
        Some("plant") => {
            let dir = match dir {
                Some(dir) => {
                    std::path::absolute(&dir).map_err(|cause| Error::io("find", dir.as_os_str(), &cause))?
                }
                None => home::user_home()?.join(".swr-canary"),
            };
            plant::plant(&notes, &dir, large)?
        }
        Some("read") => read::each(&notes, json)?,
        Some("table") => read::table(&notes)?,
        Some("remove") => plant::remove(&notes)?,
        Some(other) => {
            return Err(Error::usage(format!("'{other}' is not plant, read, table or remove")).into());
        }
        None => return Err(Error::usage("say plant, read, table or remove").into()),
    };
    Ok(code)
}
