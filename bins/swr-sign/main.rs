//! `swr-sign`: signs a workspace manifest, or checks its signature.

use std::path::Path;
use std::process::ExitCode;

use contract::cli::{Arg, Stop, unknown};
use contract::verdict::print;
use contract::{Args, Code, Error, Kind, Report, State, Swr, Verdict, clock, exit, home, mode};
use seal::{Refusal, SigningKey};
use workspace::accepted::{self, Accepted};
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
    let home = home::swr_home()?;
    let key = match SigningKey::read(&home.join("signing.key")) {
        Ok(key) => key,
        Err(unfit) => return Err(read::bad_line(unfit, "signature", &mut report)?),
    };
    let (seq, accepted) = (manifest.header.seq, accepted(&home)?);
    let good = match key.map(|key| (key.check(manifest), accepted.highest(&key.id()))) {
        None => Err(Refusal::NoKey),
        Some((Ok(()), Some(highest))) if seq < highest => {
            let why = accepted::old(seq, highest);
            report.say(&Verdict::new(State::Bad, Kind::Manifest, "signature", why))?;
            return Err(Error::quiet(report.code()).hint("read it, then swr sign --again"));
        }
        Some((checked, _)) => checked,
    };
    let detail = match good {
        Ok(()) => format!("signed by this box, seq {seq}, {}", manifest.header.created),
        Err(refusal) if accepted.approves(manifest.digest()) => {
            format!("{}, and its content was approved", refusal.words())
        }
        Err(refusal) => {
            report.say(&Verdict::new(State::Bad, Kind::Manifest, "signature", refusal.words()))?;
            return Err(Error::quiet(report.code()).hint("read it, then swr sign"));
        }
    };
    report.say(&Verdict::new(State::Ok, Kind::Manifest, "signature", detail))?;
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
    let highest = accepted(&home)?.highest(&key.id()).unwrap_or(0);
    if again || key.check(&manifest).is_err() {
        let header = &mut manifest.header;
        // Higher than what was accepted before, or swr-restore would call it old.
        header.seq = header.seq.max(highest).checked_add(1).ok_or_else(|| {
            Error::new(exit::swr::MANIFEST, "the header's seq cannot grow any more")
                .hint("swr init starts anew")
        })?;
        header.created = clock::utc(clock::now().wall);
        header.signer = signer.unwrap_or_else(host_name);
        manifest.rebuild();
        manifest.signatures.push(key.sign(&manifest.body));
    } else if manifest.header.seq < highest {
        let why = accepted::old(manifest.header.seq, highest);
        return Err(Error::new(exit::swr::MANIFEST, why).hint("read it, then swr sign --again"));
    }
    print(&manifest.to_bytes())?;
    Ok(exit::OK)
}

/// What `swr-restore` accepted here before.
fn accepted(home: &Path) -> Result<Accepted, Error> {
    let path = home.join("accepted.jsonl");
    Accepted::load(&path).map_err(|cause| Error::io("read", path.as_os_str(), &cause))
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "unknown".into(), |n| n.trim().to_owned())
}
