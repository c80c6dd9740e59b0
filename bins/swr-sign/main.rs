//! `swr-sign`: signs a workspace manifest, or checks its signature.

use std::process::ExitCode;

use contract::cli::{Arg, Stop, unknown};
use contract::verdict::print;
use contract::{Args, Code, Error, Kind, Report, State, Swr, Verdict, clock, exit, home, mode};
use seal::{Refusal, SigningKey};
use workspace::{Manifest, read};

fn main() -> ExitCode {
    contract::run::<Swr>(include_str!("help.txt"), go)
}

fn go(args: &mut Args) -> Result<Code, Stop> {
    let (mut check, mut again, mut json, mut signer) = (false, false, false, None);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("check") => check = true,
            Arg::Long("again") => again = true,
            Arg::Long("json") => json = true,
            Arg::Long("signer") => signer = Some(args.text()?),
            other => return Err(unknown(other)),
        }
    }
    let manifest = Manifest::parse_or_bad(&read::stdin()?)?;
    Ok(if check { say(&manifest, json)? } else { sign(manifest, signer, again)? })
}

/// One verdict about the signature.
fn say(manifest: &Manifest, json: bool) -> Result<Code, Error> {
    let mut report = Report::<Swr>::new(json);
    let key = match SigningKey::read(&home::swr_home()?.join("signing.key")) {
        Ok(key) => key,
        Err(unfit) => return Err(read::bad_line(unfit, "signature", &mut report)?),
    };
    match key.map_or(Err(Refusal::NoKey), |k| k.check(manifest)) {
        Ok(()) => {
            let detail =
                format!("signed by this box, seq {}, {}", manifest.header.seq, manifest.header.created);
            report.say(&Verdict::new(State::Ok, Kind::Manifest, "signature", detail))?;
        }
        Err(refusal) => {
            report.say(&Verdict::new(State::Bad, Kind::Manifest, "signature", refusal.words()))?;
        }
    }
    Ok(report.code())
}

fn sign(mut manifest: Manifest, signer: Option<String>, again: bool) -> Result<Code, Error> {
    let home = home::swr_home()?;
    let path = home.join("signing.key");
    let key = if let Some(key) = SigningKey::read(&path)? {
        key
    } else {
        let fix = mode::by_name();
        files::atomic::make_dir(&fix, &home).map_err(|cause| Error::io("make", home.as_os_str(), &cause))?;
        SigningKey::create(&fix, &path)?
    };
    if again || key.check(&manifest).is_err() {
        let header = &mut manifest.header;
        header.seq = header.seq.checked_add(1).ok_or_else(|| {
            Error::new(exit::swr::MANIFEST, "the header's seq cannot grow any more")
                .hint("swr init starts anew")
        })?;
        header.created = clock::utc(clock::now().wall);
        header.signer = signer.unwrap_or_else(host_name);
        manifest.rebuild();
        manifest.signatures.push(key.sign(&manifest.body));
    }
    print(&manifest.to_bytes())?;
    Ok(exit::OK)
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "unknown".into(), |n| n.trim().to_owned())
}
