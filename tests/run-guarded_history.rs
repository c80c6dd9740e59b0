//! `run-guarded`'s history: one line a call, in fix mode, without the prompt and without the answer.
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

mod fake_engine;
mod private_home;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use fake_engine::Fake;
use private_home::{Output, run};

/// An engine that answers with these figures.
const MEASURED: &str = "answer 'a secret answer'
printf 'common_perf_print: prompt eval time = 90.00 ms / 30 tokens (3.00 ms per token, 333.33 tokens per second)\\n' >&2
printf 'common_perf_print:        eval time = 2000.00 ms / 41 runs (48.78 ms per token, 20.50 tokens per second)\\n' >&2";

fn ask(fake: &Fake, operands: &[&str]) -> Output {
    run(fake.command(operands).env("SELFHEAL_MODE", "fix").env("SELFHEAL_TEST_CLOCK", "1796000399:1:b"))
}

fn history(fake: &Fake) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(fake.home.path(".selfheal/state/history.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_call_leaves_its_figures_and_none_of_its_words() {
    let fake = Fake::new(MEASURED);
    assert_eq!(ask(&fake, &["a secret question", "auto", "64"]).code, 0);
    let line = history(&fake).remove(0);
    for (key, value) in [
        ("time", "\"2026-11-30T00:59:59Z\""),
        ("asked", "\"auto\""),
        ("answered", "\"scout\""),
        ("n", "64"),
        ("tokens", "41"),
        ("tps", "20.5"),
        ("verdict", "\"ok\""),
        ("code", "0"),
    ] {
        assert_eq!(line[key].to_string(), value, "{line}");
    }
    assert!(line["seconds"].as_f64().is_some_and(|s| (0.0..60.0).contains(&s)), "{line}");
    assert!(!line.to_string().contains("secret"));
    let path = fake.home.path(".selfheal/state/history.jsonl");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_call_without_an_answer_leaves_its_cause() {
    let cases = [
        ("answer '   '", "no-answer", 2),
        ("exit 9", "status", 2),
        ("kill -SEGV $$", "crashed", 2),
        ("kill -ILL $$", "engine", 4),
        ("echo half; exit 0", "lost", 2),
        ("printf 'std::bad_alloc' >&2; exit 1", "out-of-memory", 2),
    ];
    for (body, verdict, code) in cases {
        let fake = Fake::new(body);
        assert_eq!(ask(&fake, &["Where?", "scout", "8"]).code, code, "{body}");
        let line = history(&fake).remove(0);
        assert_eq!(
            (line["verdict"].as_str(), line["code"].as_i64()),
            (Some(verdict), Some(code.into())),
            "{line}"
        );
        assert!(line["answered"].is_null() && line["tps"].is_null(), "{line}");
    }
    let fake = Fake::new("answer x");
    fake.home.file(".selfheal/models/scout.gguf", "Entry not found");
    assert_eq!(ask(&fake, &["Where?", "scout", "8"]).code, 3);
    fake.model("spark");
    assert_eq!(ask(&fake, &["Where?", "auto", "8"]).code, 5);
    fake.remove("llama-completion");
    assert_eq!(ask(&fake, &["Where?", "scout", "8"]).code, 4);
    let lines: Vec<_> =
        history(&fake).iter().map(|l| format!("{} {}", l["verdict"], l["answered"])).collect();
    assert_eq!(lines, ["\"model\" null", "\"degraded\" \"spark\"", "\"engine\" null"]);
    // What was never a call is not in it.
    assert_eq!(ask(&fake, &["Where?", "wizard", "8"]).code, 64);
    assert_eq!(ask(&fake, &["--key", "Where?", "scout", "8"]).code, 4);
    assert_eq!(history(&fake).len(), 3);
}

#[test]
fn the_history_stays_bounded_and_a_torn_line_does_not_eat_the_next() {
    let fake = Fake::new("answer x");
    fake.home.file(".selfheal/state/history.jsonl", "{\"torn\":".repeat(150_000));
    fake.home.file(".selfheal/state/history.jsonl.1", "older");
    assert_eq!(ask(&fake, &["Where?", "scout", "8"]).code, 0);
    assert_eq!(history(&fake).len(), 1);
    let older = fs::read(fake.home.path(".selfheal/state/history.jsonl.1")).unwrap();
    assert!(older.starts_with(b"{\"torn\""));
    fake.home.file(".selfheal/state/history.jsonl", "{\"torn\":");
    assert_eq!(ask(&fake, &["Where?", "scout", "8"]).code, 0);
    let text = fs::read_to_string(fake.home.path(".selfheal/state/history.jsonl")).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(text.lines().nth(1).unwrap()).is_ok(), "{text}");
}

#[test]
fn a_history_that_cannot_be_written_is_said_and_the_answer_stands() {
    let fake = Fake::new("answer x");
    fake.home.file(".selfheal/state", "a file where the directory should be");
    let output = ask(&fake, &["Where?", "scout", "8"]);
    assert_eq!((output.code, output.out().as_str()), (0, "x\n"));
    assert_eq!(output.err().matches("cannot write history.jsonl").count(), 1, "{}", output.err());
    // A link is not followed.
    fs::remove_file(fake.home.path(".selfheal/state")).unwrap();
    let elsewhere = fake.home.file("elsewhere", "kept");
    fs::create_dir(fake.home.path(".selfheal/state")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, fake.home.path(".selfheal/state/history.jsonl")).unwrap();
    assert_eq!(ask(&fake, &["Where?", "scout", "8"]).code, 0);
    assert_eq!(fs::read_to_string(elsewhere).unwrap(), "kept");
}

#[test]
fn a_misspelt_consent_is_wrong_usage_before_anything_runs() {
    let fake = Fake::new("answer x");
    let output = run(fake.command(&["Where?", "scout", "8"]).env("SELFHEAL_MODE", "fixx"));
    assert_eq!(output.code, 64);
    assert!(fake.calls().is_empty());
}
