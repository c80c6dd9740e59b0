//! `run-guarded` as a process: routing, the prompt's way, the command line, the answer.

mod fake_engine;
mod private_home;

use std::time::{Duration, Instant};

use fake_engine::{Fake, HELP, PLAIN, SWITCHED, gguf};
use private_home::{alive, run, run_with, wait};

const LONG: &str = "one two three four five six seven eight nine";

#[test]
fn stdout_is_the_answer_alone_and_check_mode_writes_nothing() {
    let fake = Fake::new("answer 'Paris.'");
    let before = fake.census();
    for mode in ["check", "fix"] {
        let output = run(fake.command(&["Where?", "scout", "64"]).env("SELFHEAL_MODE", mode));
        assert_eq!((output.code, output.out().as_str()), (0, "Paris.\n"), "{}", output.err());
        assert_eq!(output.err(), "run-guarded: scout, 64 tokens, at most 2 s\n");
        assert_eq!(fake.census() == before, mode == "check");
    }
}

#[test]
fn the_command_line_has_what_the_engine_lists_and_nothing_else() {
    let fake = Fake::new("answer x");
    fake.ask(&["Where?", "scout", "64"]);
    let call = fake.calls().remove(0);
    for option in [
        "-n 64",
        "-c 512",
        "--no-escape",
        "-t ",
        "-st",
        "--temp 0",
        "--no-warmup",
        "--no-display-prompt",
        "--simple-io",
        "/scout.gguf",
        "-f /proc/self/fd/",
    ] {
        assert!(call.contains(option), "{option}: {call}");
    }
    for never in ["--log-disable", "-fa", "-no-cnv", "--jinja", "Where?"] {
        assert!(!call.contains(never), "{never}: {call}");
    }
    // Longer words that contain an option are not that option.
    fake.home.file(
        "fake/help",
        HELP.replace("--temp,", "--temp-x,").replace("-st,", "-stx,").replace("-f, ", "-fx, -p,"),
    );
    fake.ask(&["Where?", "scout", "64"]);
    let call = fake.calls().remove(1);
    assert!(call.contains("-p Where?") && call.contains("-no-cnv"), "{call}");
    assert!(!call.contains("--temp") && !call.contains("-st") && !call.contains("-f "), "{call}");
}

#[test]
fn a_model_without_a_template_is_asked_as_it_stands() {
    let fake = Fake::new("answer x");
    let (with, without) = (gguf("scout", Some(PLAIN)), gguf("scout", None));
    fake.edit_manifest(&format!("\"bytes\":{},", with.len()), &format!("\"bytes\":{},", without.len()));
    fake.home.file(".selfheal/models/scout.gguf", without);
    assert_eq!(fake.ask(&["Where?", "scout", "64"]).code, 0);
    let call = fake.calls().remove(0);
    assert!(call.contains("-no-cnv") && !call.contains("-st"), "{call}");
}

#[test]
fn the_prompt_arrives_byte_for_byte() {
    let fake = Fake::new("answer x");
    let cases = [
        "plain",
        "a\\nb\\t",
        "two\nlines\n",
        "ends\n\n",
        "'quoted' \"twice\" $HOME `x`",
        "-n",
        "\u{e9}\u{1f600}",
        "  led",
    ];
    for prompt in cases {
        for (operand, input) in [(prompt, ""), ("-", prompt)] {
            let mut command = fake.command(&["--", operand, "scout", "8"]);
            let output = run_with(&mut command, input.as_bytes(), Duration::from_secs(60));
            assert_eq!(output.code, 0, "{prompt:?}: {}", output.err());
            // The engine takes one newline off the end of a file.
            assert_eq!(fake.recorded("prompt"), format!("{prompt}\n"), "{operand:?}");
        }
    }
}

#[test]
fn a_prompt_that_cannot_be_asked_is_refused_before_anything_runs() {
    let fake = Fake::new("answer x");
    let long = "x".repeat((1 << 20) + 1);
    let cases: [(&[u8], &str); 5] = [
        (long.as_bytes(), "longer than 1 MiB"),
        (b"a\0b", "NUL at byte 1"),
        (b"ab\xff", "not UTF-8 at byte 2"),
        (b" \n\t", "blank"),
        (b"\n", "blank"),
    ];
    for (input, words) in cases {
        let output = run_with(&mut fake.command(&["-", "scout", "8"]), input, Duration::from_secs(60));
        assert_eq!(output.code, 64, "{words}");
        assert!(output.err().contains(words) && output.err().contains("hint: "), "{}", output.err());
    }
    assert_eq!(fake.ask(&["-", "scout", "8"]).code, 64, "standard input at its end");
    // A stream without end is read no further than the limit.
    let endless = fake.home.script("endless", "yes | \"$@\"");
    let mut command = fake.home.command(endless);
    command.arg(env!("CARGO_BIN_EXE_run-guarded")).args(["-", "scout", "8"]);
    command.env("SELFHEAL_MANIFEST", fake.home.path("manifest.json"));
    assert_eq!(run(&mut command).code, 64);
    assert!(fake.calls().is_empty());
}

#[test]
fn wrong_usage_is_64_and_says_what_would_be_right() {
    let fake = Fake::new("answer x");
    let cases: [(&[&str], &str); 10] = [
        (&[], "PROMPT is missing"),
        (&["x"], "ROLE is missing"),
        (&["x", "auto"], "N is missing"),
        (&["x", "auto", "1", "2"], "unexpected argument '2'"),
        (&["x", "auto", "0"], "N is '0'"),
        (&["x", "auto", "16385"], "N is '16385'"),
        (&["x", "auto", "+1"], "N is '+1'"),
        (&["x", "auto", "1.5"], "N is '1.5'"),
        (&["x", "wizard", "1"], "no role 'wizard'"),
        (&["x", "auto", "1", "--fast"], "unknown option '--fast'"),
    ];
    for (operands, words) in cases {
        let output = fake.ask(operands);
        assert_eq!(output.code, 64, "{operands:?}");
        assert!(output.err().contains(words) && output.err().contains("hint: "), "{}", output.err());
        assert!(output.stdout.is_empty());
    }
    assert!(fake.ask(&["x", "wizard", "1"]).err().contains("auto, scout, spark, forge, sage, demo"));
    let output = run(fake.command(&["x", "auto", "1"]).env("SELFHEAL_MANIFEST", "/nowhere/manifest.json"));
    assert_eq!(output.code, 69);
    let output = run(fake.command(&["x", "auto", "1"]).env_remove("SELFHEAL_MANIFEST"));
    assert_eq!(output.code, 69);
    assert!(fake.calls().is_empty());
}

#[test]
fn a_short_question_goes_to_the_scout_with_96_tokens_and_a_long_one_to_spark() {
    let fake = Fake::new("answer x");
    fake.all_models();
    let cases = [
        ("Where is it?", "auto", "64", "scout", "-n 64", 0),
        ("one two three four five six seven eight", "auto", "500", "scout", "-n 96", 1),
        (LONG, "auto", "500", "spark", "-n 500", 0),
        ("Where is it?", "scout", "500", "scout", "-n 500", 0),
        ("Where is it?", "forge", "64", "forge", "-n 64", 0),
        (LONG, "sage", "64", "sage", "-n 64", 0),
        ("Where is it?", "demo", "64", "demo", "-n 64", 0),
    ];
    for (prompt, role, tokens, answers, option, notes) in cases {
        let output = fake.ask(&[prompt, role, tokens]);
        assert_eq!(output.code, 0, "{role}: {}", output.err());
        let call = fake.calls().pop().unwrap();
        assert!(call.contains(&format!("/{answers}.gguf")) && call.contains(option), "{role}: {call}");
        assert_eq!(output.err().matches("96 tokens instead of").count(), notes, "{}", output.err());
    }
}

#[test]
fn another_role_stands_in_and_that_is_5() {
    let fake = Fake::new("answer x");
    for (present, asked, prompt, answers) in [
        ("spark", "auto", "Where?", "spark"),
        ("forge", "auto", "Where?", "forge"),
        ("scout", "auto", LONG, "scout"),
        ("scout", "sage", "Where?", "scout"),
        ("scout", "demo", "Where?", "scout"),
    ] {
        fake.home.file(".selfheal/models/scout.gguf", "Entry not found");
        fake.model(present);
        let output = fake.ask(&[prompt, asked, "8"]);
        assert_eq!((output.code, output.out().as_str()), (5, "x\n"), "{asked}: {}", output.err());
        assert!(
            output.err().contains(&format!("degraded: {answers} answered instead of")),
            "{}",
            output.err()
        );
        assert!(output.err().contains("model not usable: "), "{}", output.err());
        if present != "scout" {
            fake.home.file(&format!(".selfheal/models/{present}.gguf"), "");
        }
    }
}

#[test]
fn neither_a_slow_nor_a_test_role_stands_in() {
    let fake = Fake::new("answer x");
    fake.all_models();
    for role in ["scout", "spark", "forge"] {
        fake.home.file(&format!(".selfheal/models/{role}.gguf"), "");
    }
    for (prompt, role) in [("Where?", "auto"), (LONG, "auto"), ("Where?", "spark")] {
        let output = fake.ask(&[prompt, role, "8"]);
        assert_eq!(output.code, 3, "{role}: {}", output.err());
        assert!(output.err().contains("hint: gguf-verify "), "{}", output.err());
    }
    assert!(fake.calls().is_empty());
}

#[test]
fn the_callers_variables_do_not_reach_the_engine() {
    let fake = Fake::new("answer x");
    let mut command = fake.command(&["Where?", "scout", "8"]);
    let bad = [
        "LLAMA_ARG_THREADS",
        "LLAMA_ARG_CTX_SIZE",
        "LLAMA_LOG_FILE",
        "GGML_BACKEND_PATH",
        "HF_TOKEN",
        "GOMP_SPINCOUNT",
    ];
    command.envs(bad.map(|name| (name, "1"))).env("OMP_WAIT_POLICY", "active").env("KEPT", "1");
    assert_eq!(run(&mut command).code, 0);
    let env = fake.recorded("env");
    for name in bad {
        assert!(!env.contains(name), "{name}: {env}");
    }
    for line in ["OMP_WAIT_POLICY=passive\n", "GGML_NO_BACKTRACE=1\n", "KEPT=1\n"] {
        assert!(env.contains(line), "{line}: {env}");
    }
}

#[test]
fn thinking_is_turned_off_for_a_light_role_and_left_on_for_a_slow_one() {
    let fake = Fake::new("answer '<think>hm</think>\nParis.'");
    fake.all_models();
    let output = fake.ask(&["Where?", "sage", "8"]);
    assert_eq!((output.code, output.out().as_str()), (0, "Paris.\n"));
    let call = fake.calls().pop().unwrap();
    assert!(call.contains("-st --jinja") && !call.contains("--chat-template-file"), "{call}");

    fake.edit_manifest("\"light\":false", "\"light\":true");
    let output = fake.ask(&["Where?", "sage", "8"]);
    assert_eq!((output.code, output.out().as_str()), (0, "Paris.\n"));
    assert_eq!(fake.recorded("template"), format!("{{%- set enable_thinking = false -%}}{SWITCHED}"));
}

#[test]
fn measured_speed_of_this_cpu_scales_the_budget() {
    let fake = Fake::new("answer x");
    let cpu = engine::cpu().id;
    let engine = fake.engine().label();
    let state = |cpu: &str, tps: &str| {
        format!(
            "{{\"version\":1,\"roles\":{{\"scout\":{{\"tps\":{tps},\"cpu\":\"{cpu}\",\"engine\":\"{engine}\"}}}}}}"
        )
    };
    // 1 s and 10 ms for each of 400 tokens at 30 tokens per second.
    for (state, bound) in [
        (String::new(), "at most 5 s"),
        (state(&cpu, "15"), "at most 9 s"),
        (state(&cpu, "60"), "at most 3 s"),
        (state(&cpu, "0.2"), "at most 20 s"),
        (state(&cpu, "-1"), "at most 5 s"),
        (state("another", "15"), "at most 5 s"),
        (state(&cpu, "15").replace("unstamped", "b1"), "at most 5 s"),
        ("{".into(), "at most 5 s"),
    ] {
        fake.home.file(".selfheal/state/state.json", &state);
        let output = fake.ask(&["Where?", "scout", "400"]);
        assert!(output.err().contains(bound), "{state}: {}", output.err());
    }
}

#[test]
fn a_long_prompt_gets_the_time_it_takes_to_read() {
    let fake = Fake::new("answer x");
    let output = fake.ask(&[&"x".repeat(2048 + 3200), "scout", "400"]);
    assert!(output.err().contains("at most 6 s"), "{}", output.err());
}

#[test]
fn a_signal_ends_the_engine_too() {
    let fake = Fake::new("sleep 987654 & sleep 987655");
    fake.manifest(15.0);
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let mut child =
            fake.command(&["Where?", "scout", "8"]).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        while !(alive("sleep 987654") && alive("sleep 987655")) {
            assert!(Instant::now() < end, "the engine did not start");
        }
        let kill = fake.home.command("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        let status = wait(&mut child, end).expect("it ends");
        assert_eq!(status.code(), Some(code));
        assert!(!alive("sleep 987654") && !alive("sleep 987655"));
    }
}

#[test]
fn two_at_once_do_not_disturb_each_other() {
    let other = Fake::new("answer 'two'");
    let first = Fake::new("answer 'one'");
    let mut children: Vec<_> = [&first, &other, &first, &other]
        .iter()
        .map(|f| f.command(&["Where?", "scout", "8"]).stdout(std::process::Stdio::piped()).spawn().unwrap())
        .collect();
    for (n, child) in children.drain(..).enumerate() {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.stdout, if n % 2 == 0 { b"one\n" } else { b"two\n" });
    }
}

#[test]
fn a_closed_stdout_is_noticed_before_the_run() {
    let fake = Fake::new("answer x");
    let closed = fake.home.script("closed", "exec \"$@\" >&-");
    let mut command = fake.home.command(closed);
    command.arg(env!("CARGO_BIN_EXE_run-guarded")).args(["Where?", "scout", "8"]);
    command.env("SELFHEAL_MANIFEST", fake.home.path("manifest.json"));
    assert_eq!(run(&mut command).code, 74);
    assert!(fake.calls().is_empty());
    let full = fake.home.script("full", "exec \"$@\" >/dev/full");
    let mut command = fake.home.command(full);
    command.arg(env!("CARGO_BIN_EXE_run-guarded")).args(["Where?", "scout", "8"]);
    command.env("SELFHEAL_MANIFEST", fake.home.path("manifest.json"));
    assert_eq!(run(&mut command).code, 74);
}
