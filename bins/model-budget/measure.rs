//! `record` and `reset`: the one writer of `$SELFHEAL_HOME/state/state.json`.

use std::path::Path;
use std::time::Duration;

use contract::exit::guard;
use contract::message::note;
use contract::{Code, Error, Fix, Guard, Kind, Report, State, Verdict, clock, log, mode};
use files::{atomic, lock};
use models::tps::{self, Record};
use serde_json::{Map, Value, json};

use crate::{Here, TOOL};

/// How much a new measurement counts against all before it.
const WEIGHT: f64 = 0.3;
/// A measurement that differs by more than this share is worth a line in the log.
const DRIFT: f64 = 0.2;
/// How long the lock of the directory is waited for; whoever has it needs milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Takes a measurement in; in check mode says what would become of it.
pub(crate) fn record(
    fix: Option<&Fix>,
    here: &Here,
    role: &str,
    tps: f64,
    json: bool,
) -> Result<Code, Error> {
    let Some(engine) = &here.engine else {
        return Err(Error::new(guard::BINARY, "no inference engine is here that was measured")
            .hint("SELFHEAL_MODE=fix llama-rebuild"));
    };
    let path = tps::path()?;
    let Some(fix) = fix else {
        let before = usable(&tps::roles(&path).unwrap_or_default(), role, here, engine);
        let (after, words) = taken_in(before, tps);
        mode::would(&format!("record {after} tokens/s of {role}"));
        return say(State::Would, role, &format!("would be {after} tokens/s, {words}"), json);
    };
    let (mut roles, _lock) = open(fix, &path)?;
    let before = usable(&roles, role, here, engine);
    let (after, words) = taken_in(before, tps);
    let entry = json!({
        "tps": after,
        "cpu": here.cpu,
        "engine": engine,
        "date": clock::utc(clock::wall()),
    });
    let other = roles.insert(role.to_owned(), entry).is_some() && before.is_none();
    write(fix, &path, roles)?;
    if other {
        log::event(fix, TOOL, "reset", &format!("{role}: measured with another CPU or engine before"));
    }
    if let Some(before) = before.filter(|before| (tps - before).abs() > DRIFT * before) {
        log::event(fix, TOOL, "drift", &format!("{role}: {before} tokens/s before, {tps} now"));
    }
    say(State::Ok, role, &format!("{after} tokens/s, {words}"), json)
}

/// Forgets what was measured of a role.
pub(crate) fn reset(fix: Option<&Fix>, role: &str, json: bool) -> Result<Code, Error> {
    let path = tps::path()?;
    if !tps::roles(&path).is_some_and(|roles| roles.contains_key(role)) {
        return say(State::Ok, role, "nothing was measured", json);
    }
    let Some(fix) = fix else {
        mode::would(&format!("forget what was measured of {role}"));
        return say(State::Would, role, "would be forgotten", json);
    };
    let (mut roles, _lock) = open(fix, &path)?;
    roles.remove(role);
    write(fix, &path, roles)?;
    log::event(fix, TOOL, "reset", role);
    say(State::Ok, role, "forgotten", json)
}

fn say(state: State, role: &str, detail: &str, json: bool) -> Result<Code, Error> {
    let mut report = Report::<Guard>::new(json);
    report.say(&Verdict::new(state, Kind::Host, role, detail))?;
    Ok(report.code())
}

/// The speed so far, if it was measured with this CPU and engine.
fn usable(roles: &Map<String, Value>, role: &str, here: &Here, engine: &str) -> Option<f64> {
    let same = |record: &Record| record.cpu == here.cpu && record.engine == engine;
    tps::record(roles, role).filter(same).map(|record| record.tps)
}

/// The moving average with one more measurement, to a thousandth, and how it came about.
fn taken_in(before: Option<f64>, tps: f64) -> (f64, String) {
    let after = before.map_or(tps, |before| WEIGHT * tps + (1.0 - WEIGHT) * before);
    let words = match before {
        None => "the first measurement with this CPU and engine".to_owned(),
        Some(before) => format!("{before} before, {tps} measured"),
    };
    ((after * 1000.0).round() / 1000.0, words)
}

/// The roles as they are, under the lock of their directory, which is made when it is missing.
fn open(fix: &Fix, path: &Path) -> Result<(Map<String, Value>, lock::Lock), Error> {
    let dir = path.parent().unwrap_or(path);
    atomic::make_dir(fix, dir).map_err(|cause| Error::io("make", dir.as_os_str(), &cause))?;
    let lock = lock::exclusive(dir, PATIENCE)?;
    let roles = tps::roles(path);
    if roles.is_none() && path.symlink_metadata().is_ok() {
        note(TOOL, "state.json is not what was written: measuring starts anew");
    }
    Ok((roles.unwrap_or_default(), lock))
}

fn write(fix: &Fix, path: &Path, roles: Map<String, Value>) -> Result<(), Error> {
    files::space::survive_size_limit();
    let written = |cause: std::io::Error| Error::io("write", path.as_os_str(), &cause);
    atomic::sweep(fix, path).map_err(written)?;
    let mut text = json!({"version": 1, "roles": Value::Object(roles)}).to_string();
    text.push('\n');
    atomic::write(fix, path, text.as_bytes(), 0o600).map_err(written)
}
