//! `$SELFHEAL_HOME/state/state.json`: tokens per second as measured on this machine. Read here; `model-budget`
//! alone writes it.
//!
//! `{"version":1,"roles":{"scout":{"tps":31.2,"cpu":"9f86d081884c","engine":"b11434-0123456789ab","date":"2026-11-30T00:00:00Z"}}}`;
//! `cpu` is the fingerprint of the CPU and `engine` the label of the engine it was measured with. A reader never
//! fails: what cannot be used is as if it were not there, and the manifest's default speed stands.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use contract::{Error, home};
use serde_json::Value;

/// A larger file is not this one.
const LIMIT: u64 = 256 << 10;
/// The figures that count. No model of ours generates slower or faster than this; a figure outside is an accident, not a measurement.
pub const CREDIBLE: std::ops::RangeInclusive<f64> = 0.1..=10_000.0;

/// Where the measurements are.
pub fn path() -> Result<PathBuf, Error> {
    Ok(home::selfheal_home()?.join("state").join("state.json"))
}

/// One measurement.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// Tokens per second.
    pub tps: f64,
    /// The fingerprint of the CPU, `engine::Cpu::id`.
    pub cpu: String,
    /// The label of the engine, `engine::Engine::label`.
    pub engine: String,
    /// When, UTC.
    pub date: String,
}

/// The object of roles in a state file; `None` when there is no such file or it is none.
pub fn roles(file: &Path) -> Option<serde_json::Map<String, Value>> {
    let (file, _) = files::open::no_link(file).ok()?;
    let mut text = Vec::new();
    file.take(LIMIT).read_to_end(&mut text).ok()?;
    let mut state: Value = serde_json::from_slice(&text).ok()?;
    if state.get("version").and_then(Value::as_u64) != Some(1) {
        return None;
    }
    match state.get_mut("roles").map(Value::take) {
        Some(Value::Object(roles)) => Some(roles),
        _ => None,
    }
}

/// Reads the record of a role; `None` when there is none that can be used.
pub fn record(roles: &serde_json::Map<String, Value>, role: &str) -> Option<Record> {
    let record = roles.get(role)?;
    let text = |key: &str| record.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(Record {
        tps: record.get("tps").and_then(Value::as_f64).filter(|tps| CREDIBLE.contains(tps))?,
        cpu: text("cpu")?,
        engine: text("engine")?,
        date: text("date").unwrap_or_default(),
    })
}

/// Tokens per second of a role, if it was measured on this CPU with this engine.
pub fn measured(file: &Path, role: &str, cpu: &str, engine: &str) -> Option<f64> {
    let record = record(&roles(file)?, role)?;
    (record.cpu == cpu && record.engine == engine).then_some(record.tps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_home::Home;

    #[test]
    fn only_a_credible_figure_of_this_cpu_counts() {
        let fix = contract::mode::by_name();
        let home = Home::new();
        let file = home.path("state.json");
        let state = |record: &str| format!(r#"{{"version":1,"roles":{{"scout":{record}}}}}"#);
        let good = state(r#"{"tps":31.5,"cpu":"abc","engine":"x","date":"2026-11-30"}"#);
        let cases = [
            (good.clone(), Some(31.5)),
            (good.replace("abc", "def"), None),
            (good.replace("\"x\"", "\"y\""), None),
            (good.replace("engine", "motor"), None),
            (good.replace("scout", "spark"), None),
            (good.replace("31.5", "0"), None),
            (good.replace("31.5", "-3"), None),
            (good.replace("31.5", "1e12"), None),
            (good.replace("31.5", "\"31.5\""), None),
            (good.replace("\"version\":1", "\"version\":2"), None),
            (good[..good.len() / 2].to_owned(), None),
            (state("[]"), None),
            (String::new(), None),
            ("[".repeat(100_000), None),
        ];
        for (text, tps) in cases {
            files::atomic::write(&fix, &file, text.as_bytes(), 0o600).unwrap();
            assert_eq!(measured(&file, "scout", "abc", "x"), tps, "{}", &text[..text.len().min(99)]);
        }
        assert_eq!(measured(&file.with_extension("absent"), "scout", "abc", "x"), None);
        assert_eq!(measured(&home.dir, "scout", "abc", "x"), None);
    }
}
