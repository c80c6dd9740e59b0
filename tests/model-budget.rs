//! `model-budget ROLE N` and `show`: the numbers, and what they are made of.
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

mod budget_calls;
mod private_home;

use std::fs;

use budget_calls::Calls;
use private_home::run;

#[test]
fn budgets_are_those_of_the_specification_until_something_is_measured() {
    let calls = Calls::new();
    let cases: [(&[&str], &str); 14] = [
        // 30 s + n/20 and 45 s + n/10, rounded up; caps of 150 s and 300 s.
        (&["scout", "80"], "34"),
        (&["scout", "81"], "35"),
        (&["scout", "1"], "31"),
        (&["spark", "80"], "34"),
        (&["forge", "80"], "34"),
        (&["sage", "80"], "53"),
        (&["demo", "80"], "34"),
        (&["scout", "16384"], "150"),
        (&["sage", "16384"], "300"),
        // Of a prompt beyond 2 KiB every 32 bytes count as one token.
        (&["scout", "80", "--bytes", "2048"], "34"),
        (&["scout", "80", "--bytes", "16K"], "57"),
        (&["--bytes", "1048576", "sage", "1"], "300"),
        (&["auto", "80"], "34"),
        (&["auto", "80", "--bytes", "16K"], "57"),
    ];
    for (line, seconds) in cases {
        for mode in ["check", "fix"] {
            let output = run(&mut calls.command(mode, line));
            assert_eq!(
                (output.code, output.out()),
                (0, format!("{seconds}\n")),
                "{line:?}: {}",
                output.err()
            );
        }
    }
    let rows = calls.check(&["show"]).out();
    let roles: Vec<_> = rows.lines().map(|l| l.split('\t').next().unwrap()).collect();
    assert_eq!(roles, ["scout", "spark", "forge", "sage", "demo"]);
    assert_eq!(calls.show("sage"), ["sage", "14", "default (unmeasured)", "-", "-"]);
    assert!(!calls.home.path(".selfheal").exists());
}

#[test]
fn a_measurement_scales_the_share_of_the_tokens() {
    let calls = Calls::new();
    // Half of the default speed, twice the seconds for tokens; the cap stays.
    assert_eq!(calls.fix(&["record", "scout", "17"]).code, 0);
    for (line, seconds) in [
        (&["scout", "80"][..], "38"),
        (&["scout", "80", "--bytes", "16K"], "83"),
        (&["scout", "16384"], "150"),
        (&["spark", "80"], "34"),
        (&["auto", "80"], "38"),
    ] {
        assert_eq!(calls.check(line).out().trim_end(), seconds, "{line:?}");
    }
    assert_eq!(calls.fix(&["record", "sage", "28"]).code, 0);
    assert_eq!(calls.check(&["sage", "80"]).out().trim_end(), "49");
    let shown = calls.show("scout");
    assert_eq!(shown[..4], ["scout", "17", "measured", "2026-11-30T00:59:59Z"]);
    assert!(shown[4].starts_with("unstamped-") && shown[4].len() == 22, "{shown:?}");
    let json = calls.check(&["show", "--json", "scout"]).out();
    let row: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((row["tps"].as_f64(), row["source"].as_str()), (Some(17.0), Some("measured")));
    assert_eq!(row["engine"].as_str(), Some(shown[4].as_str()));
    let json = calls.check(&["show", "--json", "forge"]).out();
    assert!(json.contains("\"date\":null") && json.contains("\"default (unmeasured)\""), "{json}");
}

#[test]
fn a_measurement_of_another_cpu_or_engine_counts_for_nothing() {
    let calls = Calls::new();
    calls.fix(&["record", "scout", "17"]);
    let state = calls.home.path(".selfheal/state/state.json");
    let text = fs::read_to_string(&state).unwrap();
    let cpu = calls.state()["roles"]["scout"]["cpu"].as_str().unwrap().to_owned();
    assert_eq!(calls.check(&["scout", "80"]).out(), "38\n");
    let unmeasured = |what: &str| {
        assert_eq!(calls.check(&["scout", "80"]).out(), "34\n", "{what}");
        assert_eq!(calls.show("scout")[2], "default (unmeasured)", "{what}");
    };
    fs::write(&state, text.replace(&cpu, "0123456789ab")).unwrap();
    unmeasured("another CPU");
    fs::write(&state, &text).unwrap();
    calls.build("another build");
    unmeasured("another engine");
    fs::remove_file(calls.home.path("llama.cpp/build/bin/llama-completion")).unwrap();
    unmeasured("no engine");
    calls.build("one");
    for damage in ["", "{", "[]", "null", "{\"version\":2,\"roles\":{}}", "\u{0}\u{0}"] {
        fs::write(&state, damage).unwrap();
        unmeasured(damage);
    }
}

#[test]
fn wrong_usage_is_64_and_says_what_would_be_right() {
    let calls = Calls::new();
    let cases: [(&[&str], &str); 22] = [
        (&[], "operands are missing"),
        (&["scout"], "operands are missing"),
        (&["scout", "1", "2"], "operands are missing, or there are too many"),
        (&["wizard", "1"], "no role 'wizard'"),
        (&["scout", "0"], "N is '0'"),
        (&["scout", "16385"], "N is '16385'"),
        (&["scout", "+1"], "N is '+1'"),
        (&["scout", "1.5"], "N is '1.5'"),
        (&["scout", "1", "--bytes", "many"], "--bytes is 'many'"),
        (&["scout", "1", "--json"], "--json changes nothing"),
        (&["scout", "1", "--fast"], "unknown option '--fast'"),
        (&["show", "scout", "sage"], "operands"),
        (&["show", "auto"], "no role 'auto'"),
        (&["show", "--bytes", "1"], "--bytes is for ROLE N"),
        (&["record", "scout"], "operands"),
        (&["record", "auto", "1"], "no role 'auto'"),
        (&["record", "scout", "0"], "TPS is '0'"),
        (&["record", "scout", "-3"], "unknown option '-3'"),
        (&["record", "scout", "nan"], "TPS is 'nan'"),
        (&["record", "scout", "1e3"], "TPS is '1e3'"),
        (&["record", "scout", "99999"], "TPS is '99999', not tokens per second from 0.1 to 10000"),
        (&["reset"], "operands"),
    ];
    for (line, words) in cases {
        let output = calls.fix(line);
        assert_eq!((output.code, output.out().as_str()), (64, ""), "{line:?}");
        assert!(
            output.err().contains(words) && output.err().contains("hint: "),
            "{line:?}: {}",
            output.err()
        );
    }
    assert_eq!(run(&mut calls.command("fixx", &["scout", "1"])).code, 64);
    // As the help says: what is not there is 69, what is there and cannot be read 74.
    for (manifest, code) in [("/nowhere/m.json", 69), ("/proc/self/stat/m.json", 69), ("/", 74)] {
        let output = run(calls.command("fix", &["scout", "1"]).env("SELFHEAL_MANIFEST", manifest));
        assert_eq!(output.code, code, "{manifest}: {}", output.err());
    }
    assert_eq!(run(calls.command("fix", &["scout", "1"]).env_remove("SELFHEAL_MANIFEST")).code, 69);
    let light = fs::read_to_string(calls.home.path("manifest.json")).unwrap();
    calls.home.file("manifest.json", light.replace("\"light\":true", "\"light\":false"));
    assert_eq!(calls.check(&["auto", "1"]).code, 3);
    assert!(!calls.home.path(".selfheal").exists());
}
