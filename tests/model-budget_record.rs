//! `model-budget record` and `reset`: the moving average, consent, and many writers at once.
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

mod budget_calls;
mod private_home;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;
use std::time::{Duration, Instant};

use budget_calls::Calls;
use private_home::wait;

#[test]
fn a_new_measurement_counts_three_tenths() {
    let calls = Calls::new();
    for (tps, average) in [("30", "30"), ("40", "33"), ("33", "33"), ("13.5", "27.15"), ("27.1517", "27.151")]
    {
        let output = calls.fix(&["record", "scout", tps]);
        assert_eq!((output.code, output.field(1).as_str(), output.field(3).as_str()), (0, "ok", "scout"));
        assert_eq!(calls.show("scout")[1], average, "{tps}");
    }
    assert_eq!(calls.show("spark")[2], "default (unmeasured)");
}

#[test]
fn check_mode_says_what_would_be_recorded_and_writes_nothing() {
    let calls = Calls::new();
    let empty = calls.home.census();
    let output = calls.check(&["record", "scout", "30"]);
    assert_eq!((output.code, output.field(1).as_str()), (5, "would"));
    assert_eq!(output.err(), "DRY: would record 30 tokens/s of scout\n");
    assert_eq!(calls.check(&["reset", "scout"]).code, 0, "nothing was measured");
    assert_eq!(calls.home.census(), empty);
    calls.fix(&["record", "scout", "30"]);
    let before = calls.home.census();
    assert_eq!(calls.check(&["record", "scout", "40"]).err(), "DRY: would record 33 tokens/s of scout\n");
    let output = calls.check(&["reset", "scout"]);
    assert_eq!((output.code, output.field(1).as_str()), (5, "would"));
    assert_eq!(output.err(), "DRY: would forget what was measured of scout\n");
    assert_eq!(calls.home.census(), before);
    let json = calls.check(&["record", "--json", "scout", "40"]).out();
    assert!(json.starts_with("{\"state\":\"would\",\"kind\":\"host\",\"subject\":\"scout\","), "{json}");
}

#[test]
fn another_engine_or_cpu_begins_anew() {
    let calls = Calls::new();
    calls.fix(&["record", "scout", "30"]);
    calls.build("another build");
    calls.fix(&["record", "scout", "10"]);
    assert_eq!(calls.show("scout")[1], "10");
    let state = calls.home.path(".selfheal/state/state.json");
    let cpu = calls.state()["roles"]["scout"]["cpu"].as_str().unwrap().to_owned();
    fs::write(&state, fs::read_to_string(&state).unwrap().replace(&cpu, "0123456789ab")).unwrap();
    calls.fix(&["record", "scout", "50"]);
    assert_eq!(calls.show("scout")[1], "50");
    let reset = "model-budget reset scout: measured with another CPU or engine before";
    assert_eq!(calls.log(), [reset, reset]);
}

#[test]
fn only_a_drift_of_more_than_a_fifth_is_a_line_in_the_log() {
    let calls = Calls::new();
    for tps in ["30", "36", "25.5"] {
        calls.fix(&["record", "scout", tps]);
    }
    assert_eq!(calls.log(), [""; 0]);
    assert_eq!(calls.show("scout")[1], "29.91");
    calls.fix(&["record", "scout", "20"]);
    calls.fix(&["record", "scout", "40"]);
    assert_eq!(
        calls.log(),
        [
            "model-budget drift scout: 29.91 tokens/s before, 20 now",
            "model-budget drift scout: 26.937 tokens/s before, 40 now"
        ]
    );
}

#[test]
fn reset_forgets_one_role() {
    let calls = Calls::new();
    calls.fix(&["record", "scout", "30"]);
    calls.fix(&["record", "sage", "7"]);
    assert_eq!(calls.fix(&["reset", "scout"]).field(4), "forgotten");
    assert_eq!(calls.fix(&["reset", "scout"]).field(4), "nothing was measured");
    assert_eq!(calls.show("scout")[2], "default (unmeasured)");
    assert_eq!(calls.show("sage")[1], "7");
}

#[test]
fn many_at_once_lose_nothing_and_leave_a_whole_file() {
    let calls = Calls::new();
    let roles = ["scout", "spark", "forge", "sage", "demo"];
    let mut children: Vec<_> = (0..20)
        .map(|n| {
            let mut command = calls.command("fix", &["record", roles[n % 5], "30"]);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let end = Instant::now() + Duration::from_secs(60);
    for child in &mut children {
        assert_eq!(wait(child, end).expect("it ends").code(), Some(0));
    }
    for role in roles {
        assert_eq!(calls.show(role)[1..3], ["30", "measured"], "{role}");
    }
    // A writer killed at any moment leaves the old file or the new one.
    for n in 0..40_u32 {
        let mut child =
            calls.command("fix", &["record", "scout", "30"]).stdout(Stdio::null()).spawn().unwrap();
        let end = Instant::now() + Duration::from_micros(u64::from(n) * 400);
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        let _ = child.kill();
        child.wait().unwrap();
        assert_eq!(calls.state()["roles"].as_object().unwrap().len(), 5);
    }
    assert_eq!(calls.fix(&["record", "scout", "30"]).code, 0);
    let names: Vec<_> =
        fs::read_dir(calls.home.path(".selfheal/state")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["state.json"], "no litter");
}

#[test]
fn a_damaged_state_starts_anew_and_a_link_is_not_followed() {
    let calls = Calls::new();
    let state = calls.home.path(".selfheal/state/state.json");
    for damage in ["", "{\"version\":1,\"roles\"", "<html>"] {
        calls.home.file(".selfheal/state/state.json", damage);
        let output = calls.fix(&["record", "scout", "30"]);
        assert_eq!(output.code, 0, "{damage}");
        assert!(output.err().contains("measuring starts anew"), "{}", output.err());
        assert_eq!(calls.show("scout")[1], "30", "{damage}");
    }
    assert_eq!(state.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let elsewhere = calls.home.file("elsewhere", "kept");
    fs::remove_file(&state).unwrap();
    symlink(&elsewhere, &state).unwrap();
    assert_eq!(calls.fix(&["record", "scout", "20"]).code, 0);
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "kept");
    assert!(state.symlink_metadata().unwrap().is_file());
}

#[test]
fn what_cannot_be_measured_or_written_is_said() {
    let calls = Calls::new();
    fs::remove_file(calls.home.path("llama.cpp/build/bin/llama-completion")).unwrap();
    let output = calls.fix(&["record", "scout", "30"]);
    assert_eq!((output.code, output.out().as_str()), (4, ""));
    assert!(output.err().contains("hint: "), "{}", output.err());
    calls.build("one");
    calls.home.file(".selfheal", "a file where the directory should be");
    let output = calls.fix(&["record", "scout", "30"]);
    assert_eq!((output.code, output.out().as_str()), (74, ""));
    assert_eq!(calls.check(&["scout", "80"]).out(), "34\n");
}
