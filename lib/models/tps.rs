//! `$SELFHEAL_HOME/state/state.json`: tokens per second as measured on this machine. Read here, written elsewhere.
//!
//! `{"version":1,"roles":{"scout":{"tps":31.2,"cpu":"9f86d081884c","engine":"...","date":"..."}}}`; `cpu` is the
//! fingerprint of the CPU it was measured on. A reader never fails: what cannot be used is as if it were not
//! there, and the manifest's default speed stands.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use contract::{Error, home};
use serde_json::Value;

/// A larger file is not this one.
const LIMIT: u64 = 256 << 10;
/// No model of ours generates slower or faster than this; a figure outside is an accident, not a measurement.
const CREDIBLE: std::ops::RangeInclusive<f64> = 0.1..=10_000.0;

/// Where the measurements are.
pub fn path() -> Result<PathBuf, Error> {
    Ok(home::selfheal_home()?.join("state").join("state.json"))
}

/// Tokens per second of a role, if it was measured on the CPU with this fingerprint.
pub fn measured(file: &Path, role: &str, cpu: &str) -> Option<f64> {
    let (file, _) = files::open::regular(file).ok()?;
    let mut text = Vec::new();
    file.take(LIMIT).read_to_end(&mut text).ok()?;
    let state: Value = serde_json::from_slice(&text).ok()?;
    if state.get("version").and_then(Value::as_u64) != Some(1) {
        return None;
    }
    let record = state.get("roles")?.get(role)?;
    if record.get("cpu").and_then(Value::as_str) != Some(cpu) {
        return None;
    }
    record.get("tps").and_then(Value::as_f64).filter(|tps| CREDIBLE.contains(tps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_credible_figure_of_this_cpu_counts() {
        let fix = contract::mode::by_name();
        let file = std::env::temp_dir().join(format!("selfheal-tps-{}", std::process::id()));
        let state = |record: &str| format!(r#"{{"version":1,"roles":{{"scout":{record}}}}}"#);
        let good = state(r#"{"tps":31.5,"cpu":"abc","engine":"x","date":"2026-11-30"}"#);
        let cases = [
            (good.clone(), Some(31.5)),
            (good.replace("abc", "def"), None),
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
            assert_eq!(measured(&file, "scout", "abc"), tps, "{}", &text[..text.len().min(99)]);
        }
        assert_eq!(measured(&file.with_extension("absent"), "scout", "abc"), None);
        assert_eq!(measured(&std::env::temp_dir(), "scout", "abc"), None);
        files::atomic::move_aside(&fix, &file).unwrap();
    }
}
