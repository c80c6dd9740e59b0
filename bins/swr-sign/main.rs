//! `swr-sign`: signs a workspace manifest, or checks its signature.

use std::process::ExitCode;

use contract::cli::{Arg, Stop, unknown};
use contract::message::note;
use contract::verdict::print;
use contract::{Args, Code, Error, Kind, Report, State, Swr, Verdict, clock, exit, home, mode};
use seal::{Access, SigningKey, Standing, standing};
use workspace::accepted::{self, Accepted};
use workspace::order::{self, Fault};
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
    let accepted = Accepted::of(&home)?;
    let detail = match Standing::of(&home, &accepted, manifest.signed())? {
        Standing::Signed { access, .. } => {
            standing::tend("swr-sign", None, &home, access);
            format!("signed by this box, seq {}, {}", manifest.header.seq, manifest.header.created)
        }
        Standing::Refused { why, .. } if accepted.approves(manifest.digest()) => {
            format!("{why}, and its content was approved")
        }
        Standing::Refused { why, hint } => {
            report.say(&Verdict::new(State::Bad, Kind::Manifest, "signature", why))?;
            return Err(Error::quiet(report.code()).hint(hint));
        }
    };
    report.say(&Verdict::new(State::Ok, Kind::Manifest, "signature", detail))?;
    Ok(report.code())
}

fn sign(mut manifest: Manifest, signer: Option<String>, again: bool) -> Result<Code, Error> {
    let home = home::swr_home()?;
    let path = standing::key_path(&home);
    let fix = mode::by_name();
    let (key, access) = if let Some(found) = SigningKey::read(&path)? {
        found
    } else {
        files::atomic::make_dir(&fix, &home).map_err(|cause| Error::io("make", home.as_os_str(), &cause))?;
        (SigningKey::create(&fix, &path)?, Access::Closed)
    };
    let highest = Accepted::of(&home)?.highest(&key.id()).unwrap_or(0);
    // A signature by a key that others may have read is as good as none, unless it is on record.
    let is_proven = key.check(manifest.signed()).is_ok()
        && (!matches!(access, Access::Open(_)) || standing::is_recorded(&home, manifest.digest()));
    if again || !is_proven {
        refuse_cycles(&manifest)?;
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
    standing::tend("swr-sign", Some(&fix), &home, access);
    // The signature is good without it, while the key is closed.
    if let Err(trouble) = standing::record(&fix, &home, manifest.digest()) {
        note("swr-sign", &trouble.message);
    }
    print(&manifest.to_bytes())?;
    Ok(exit::OK)
}

/// What needs each other in a circle could never come back: better said by whoever signs than in the night.
fn refuse_cycles(manifest: &Manifest) -> Result<(), Error> {
    for fault in order::faults(manifest.lines.iter().map(|l| &l.entry)) {
        match fault {
            Fault::Cycle { .. } => {
                return Err(Error::new(exit::swr::MANIFEST, fault.words()).hint(fault.way_out()));
            }
            Fault::Unknown { .. } => note("swr-sign", &fault.words()),
        }
    }
    Ok(())
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "unknown".into(), |n| n.trim().to_owned())
}
