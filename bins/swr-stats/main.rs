//! `swr-stats`: records what became of each entry, and says how likely it is to survive.

use std::io::{BufRead as _, Read as _};
use std::path::Path;
use std::process::ExitCode;

use contract::cli::{Arg, Stop, unknown};
use contract::exit::Family as _;
use contract::message::{cause_of, hint, note};
use contract::verdict::print;
use contract::{Args, Code, Error, Kind, State, Swr, Verdict, clock, exit, home, mode};
use workspace::history::{self, Turn};
use workspace::json::{self, Json};

/// A longer line is passed on in pieces and is no verdict.
const LINE: u64 = 64 << 10;

fn main() -> ExitCode {
    contract::run::<Swr>(include_str!("help.txt"), go)
}

fn go(args: &mut Args) -> Result<Code, Stop> {
    let (mut record, mut json) = (false, false);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("record") => record = true,
            Arg::Long("json") => json = true,
            other => return Err(unknown(other)),
        }
    }
    let home = home::swr_home()?;
    let path = home.join("history.jsonl");
    if record {
        return Ok(pass_on(&home, &path)?);
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
fn pass_on(home: &Path, path: &Path) -> Result<Code, Error> {
    let mut code = exit::OK;
    let mut turn = Turn { wall: clock::now().wall, states: Vec::new() };
    let mut input = std::io::stdin().lock();
    loop {
        let mut line = Vec::new();
        let count = input.by_ref().take(LINE).read_until(b'\n', &mut line);
        if count.map_err(|cause| Error::io("read", "standard input".as_ref(), &cause))? == 0 {
            break;
        }
        if let Some(verdict) = verdict(line.strip_suffix(b"\n").unwrap_or(&line)) {
            code = Swr::worse(code, Swr::code(verdict.state, verdict.kind));
            take(&mut turn, &verdict);
        }
        print(&line)?;
    }
    if !turn.states.is_empty() {
        let fix = mode::by_name();
        let written = files::atomic::make_dir(&fix, home).and_then(|()| history::append(&fix, path, &turn));
        if let Err(cause) = written {
            note("swr-stats", &format!("this turn is not recorded: {}", cause_of(&cause)));
        }
    }
    Ok(code)
}

/// A verdict in either form, as a line or as a JSON object.
fn verdict(line: &[u8]) -> Option<Verdict> {
    if !line.starts_with(b"{") {
        return Verdict::parse(line);
    }
    let Json::Object(pairs) = json::parse(line).ok()? else { return None };
    let get = |key: &str| match pairs.iter().find(|(k, _)| k == key) {
        Some((_, Json::Text(text))) => Some(text.as_bytes()),
        _ => None,
    };
    let (state, kind) = (State::from_word(get("state")?)?, Kind::from_word(get("kind")?)?);
    Some(Verdict::new(state, kind, get("subject")?, ""))
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
