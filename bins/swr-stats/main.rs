//! `swr-stats`: records what became of each entry, and says how likely it is to survive.

use std::path::Path;
use std::process::ExitCode;

use contract::cli::{Arg, Stop, unknown};
use contract::message::{cause_of, hint, note};
use contract::verdict::print;
use contract::{Args, Code, Error, Kind, State, Swr, Verdict, clock, exit, home, mode};
use workspace::history::{self, Turn};
use workspace::verdicts::Verdicts;

fn main() -> ExitCode {
    contract::run::<Swr>(include_str!("help.txt"), go)
}

fn go(args: &mut Args) -> Result<Code, Stop> {
    let (mut record, mut repair, mut json) = (false, false, false);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("record") => record = true,
            Arg::Long("repair") => repair = true,
            Arg::Long("json") => json = true,
            other => return Err(unknown(other)),
        }
    }
    let home = home::swr_home()?;
    let path = home.join("history.jsonl");
    if repair && !record {
        return Err(Error::usage("--repair goes with --record").into());
    }
    if record {
        return Ok(pass_on(&home, &path, repair)?);
    }
    let turns = history::read(&path).map_err(|cause| Error::io("read", path.as_os_str(), &cause))?;
    if turns.is_empty() {
        note("swr-stats", "no turn is recorded yet");
        hint("swr doctor records each turn");
    }
    for entry in history::survival(&turns) {
        let (whole, mille) = (entry.per_mille() / 1000, entry.per_mille() % 1000);
        let (id, n, looks, last) = (&entry.id, entry.observations, entry.looks, entry.last.word());
        let line = if json {
            format!(
                "{{\"id\":\"{id}\",\"survival\":{whole}.{mille:03},\"observations\":{n},\"looks\":{looks},\"last\":\"{last}\"}}\n"
            )
        } else {
            format!("{id}\t{whole}.{mille:03}\t{n}\t{looks}\t{last}\n")
        };
        print(line.as_bytes())?;
    }
    Ok(exit::OK)
}

/// Passes the lines on as they come and records the turn at their end. A history that cannot be written is said and
/// changes no verdict.
fn pass_on(home: &Path, path: &Path, repair: bool) -> Result<Code, Error> {
    let mut turn = Turn { wall: clock::now().wall, states: Vec::new() };
    let mut input = Verdicts::open("swr check | swr stats --record, or swr doctor, which does both")?;
    while let Some(piece) = input.read()? {
        if let Some(verdict) = &piece.verdict {
            take(&mut turn, verdict);
        }
        print(piece.bytes)?;
    }
    if repair {
        // What is still damaged the look before has said: a second time it would be a second look.
        let is_well = |state: &State| matches!(state, State::Ok | State::Healed);
        turn.states.retain(|(_, state)| is_well(state));
        turn.states.iter_mut().for_each(|(_, state)| *state = State::Healed);
    }
    if !turn.states.is_empty() {
        let fix = mode::by_name();
        let written = files::atomic::make_dir(&fix, home).and_then(|()| history::append(&fix, path, &turn));
        if let Err(cause) = written {
            note("swr-stats", &format!("this turn is not recorded: {}", cause_of(&cause)));
        }
    }
    Ok(input.end("swr-stats", repair))
}

/// Of several lines about one entry the worst counts.
fn take(turn: &mut Turn, verdict: &Verdict) {
    if verdict.kind == Kind::Manifest {
        return;
    }
    let id = String::from_utf8_lossy(&verdict.subject).into_owned();
    let rank = |state: State| match state {
        State::Ok => 0,
        State::Healed => 1,
        State::Unknown => 2,
        _ => 3,
    };
    match turn.states.iter_mut().find(|(i, _)| *i == id) {
        Some((_, state)) if rank(*state) < rank(verdict.state) => *state = verdict.state,
        Some(_) => {}
        None => turn.states.push((id, verdict.state)),
    }
}
