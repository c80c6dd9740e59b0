//! `run-guarded` when something is wrong: the causes are told apart, and each leads to its own step.

mod fake_engine;
mod private_home;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use fake_engine::{Fake, HELP, PLAIN, SWITCHED, aligned_gguf, gguf};
use private_home::{Output, alive, run, run_with};

/// Every line of the text that says a cause, without the tool's name.
fn causes(output: &Output) -> Vec<String> {
    let said = output.err();
    let lines = said.lines().filter_map(|l| l.strip_prefix("run-guarded: "));
    lines.filter(|l| !l.contains(" at most ")).map(str::to_owned).collect()
}

#[test]
fn d03_a_program_that_asks_gets_end_of_input_and_the_question_is_named() {
    let fake =
        Fake::new("printf 'Ok to proceed? (y) '; read -r line && echo \"$line\" >\"$f/given\" || exit 1");
    fake.manifest(60.0);
    // The caller's standard input is a pipe that stays open and never brings anything.
    let open = fake.home.script("open", "mkfifo fifo && exec 3<>fifo && exec \"$@\" <&3");
    let mut command = fake.home.command(open);
    command.arg(env!("CARGO_BIN_EXE_run-guarded")).args(["Where?", "scout", "8"]);
    command.env("SELFHEAL_MANIFEST", fake.home.path("manifest.json"));
    let output = run_with(&mut command, b"", Duration::from_secs(30));
    assert_eq!(output.code, 2, "{}", output.err());
    assert!(output.wall < Duration::from_secs(15), "{:?}", output.wall);
    assert!(causes(&output)[0].starts_with("asks a question"), "{}", output.err());
    assert!(output.err().contains("'Ok to proceed? (y)'"), "{}", output.err());
    assert!(output.stdout.is_empty());
    assert_eq!(fake.recorded("given"), "");
}

#[test]
fn d06_an_impostor_is_named_and_never_executed() {
    let fake = Fake::new("answer x");
    let size = gguf("scout", Some(PLAIN)).len();
    let html = "<!DOCTYPE html>\n<html><head><title>404</title></head><body>Not Found</body></html>\n";
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:9acfc1e001311f34b4252001b626f2e4\
                   66d592a42065f66571bff3790d4e1b14\nsize 484220320\n";
    let mut big = html.repeat(size / html.len() + 1);
    big.truncate(size);
    let impostors: [(&str, Vec<u8>, &str); 7] = [
        ("html15", b"Entry not found".to_vec(), "entry not found"),
        ("html_big", big.into_bytes(), "html"),
        ("lfs", pointer.into(), "lfs pointer"),
        ("json401", br#"{"error":"Invalid credentials in Authorization header"}"#.to_vec(), "json"),
        ("ggjt", b"tjgg\x03\0\0\0\0\x7d\0\0".to_vec(), "ggjt"),
        ("empty", Vec::new(), "empty"),
        ("short", gguf("scout", Some(PLAIN))[..size - 1].to_vec(), "bytes"),
    ];
    for (name, bytes, kind) in impostors {
        fake.home.file(".selfheal/models/scout.gguf", bytes);
        let output = fake.ask(&["Where?", "scout", "8"]);
        assert_eq!(output.code, 3, "{name}: {}", output.err());
        assert!(output.err().to_lowercase().contains(kind), "{name}: {}", output.err());
        assert!(output.err().contains("hint: gguf-verify scout"), "{name}: {}", output.err());
        assert!(output.stdout.is_empty() && fake.calls().is_empty(), "{name}");
    }
}

#[test]
fn d06_other_bytes_of_the_right_size_are_found_by_the_hash_alone() {
    let fake = Fake::new("answer x");
    let good = gguf("scout", Some(PLAIN));
    let pin = files::digest::of_reader(&mut &good[..]).unwrap().0.hex();
    fake.edit_manifest("\"sha256\":null", &format!("\"sha256\":\"{pin}\""));
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for (bytes, deep, code) in [(&good, "1", 0), (&flipped, "0", 0), (&flipped, "1", 3)] {
        fake.home.file(".selfheal/models/scout.gguf", bytes);
        let output = run(fake.command(&["Where?", "scout", "8"]).env("SELFHEAL_DEEP_VERIFY", deep));
        assert_eq!(output.code, code, "{}", output.err());
    }
}

#[test]
fn a_model_that_is_less_than_ok_answers_and_that_is_5_unless_its_hash_is_the_pinned_one() {
    let fake = Fake::new("answer x");
    let doubtful = aligned_gguf("scout", Some(PLAIN), 16);
    fake.edit_manifest(
        &format!("\"bytes\":{}", gguf("scout", Some(PLAIN)).len()),
        &format!("\"bytes\":{}", doubtful.len()),
    );
    fake.home.file(".selfheal/models/scout.gguf", &doubtful);
    let output = fake.ask(&["Where?", "scout", "8"]);
    assert_eq!((output.code, output.out().as_str()), (5, "x\n"), "{}", output.err());
    assert!(causes(&output)[0].starts_with("degraded: scout: alignment 16"), "{}", output.err());
    let pin = files::digest::of_reader(&mut &doubtful[..]).unwrap().0.hex();
    fake.edit_manifest("\"sha256\":null", &format!("\"sha256\":\"{pin}\""));
    assert_eq!(fake.ask(&["Where?", "scout", "8"]).code, 0);
}

#[test]
fn d20_a_damaged_engine_is_4_each_cause_in_its_own_words_and_no_model_is_blamed() {
    let fake = Fake::new("answer x");
    fake.all_models();
    let loader = "echo \"$0: error while loading shared libraries: libllama.so: cannot open shared object file\" >&2; exit 127";
    let cases = [
        ("kill -ILL $$", 0o755, "illegal instruction - built for another CPU (132)"),
        (loader, 0o755, "missing library libllama.so (127)"),
        ("echo 'version: 1' >&2", 0o644, "not executable"),
        ("exit 0", 0o755, "ended 0 without a version line"),
        ("kill -SEGV $$", 0o755, "died of signal 11 (139)"),
    ];
    let mut said = Vec::new();
    for (body, mode, words) in cases {
        let program = fake.raw_program("llama-completion", body);
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        let output = fake.ask(&["Where?", "auto", "8"]);
        assert_eq!(output.code, 4, "{words}: {}", output.err());
        assert!(causes(&output)[0].starts_with(words), "{words}: {}", output.err());
        assert!(output.err().contains("llama-rebuild"), "{}", output.err());
        for blamed in ["scout", "spark", "gguf-verify", ".gguf"] {
            assert!(!output.err().contains(blamed), "{words}: {}", output.err());
        }
        said.push(causes(&output).remove(0));
    }
    fake.home.file("llama.cpp/build/bin/llama-completion", "");
    let empty = fake.ask(&["Where?", "auto", "8"]);
    assert_eq!(empty.code, 4);
    assert!(causes(&empty)[0].starts_with("empty, 0 bytes"), "{}", empty.err());
    fake.remove("llama-completion");
    let missing = fake.ask(&["Where?", "auto", "8"]);
    assert_eq!(missing.code, 4);
    said.extend([causes(&empty).remove(0), causes(&missing).remove(0)]);
    said.sort();
    said.dedup();
    assert_eq!(said.len(), cases.len() + 2);
    assert!(fake.calls().is_empty());
}

#[test]
fn d20_an_engine_that_breaks_in_its_first_prompt_is_4_as_well() {
    // It says its version, and the prompt needs an instruction that this CPU does not have; or it is swept away
    // between the two.
    let cases = [
        ("kill -ILL $$", "illegal instruction - built for another CPU (132)"),
        ("exit 132", "illegal instruction - built for another CPU (132)"),
        ("chmod 644 \"$0\"; exit 126", "not executable"),
        (": >\"$0\"; exit 127", "empty, 0 bytes"),
    ];
    for (body, words) in cases {
        let fake = Fake::new(body);
        fake.all_models();
        let output = fake.ask(&["Where?", "auto", "8"]);
        assert_eq!(output.code, 4, "{}", output.err());
        assert!(causes(&output)[0].starts_with(words), "{}", output.err());
        assert!(
            output.err().contains("llama-rebuild") && !output.err().contains("gguf-verify"),
            "{}",
            output.err()
        );
        assert_eq!(fake.calls().len(), 1, "no other model is tried");
    }
}

#[test]
fn d22_thoughts_an_echo_and_white_space_are_no_answers() {
    let cases = [
        ("answer '<think>Let me see'", "only thoughts"),
        ("answer '<think>Let me see</think>'", "only thoughts"),
        ("answer 'Where?'", "only the prompt came back"),
        ("answer ' \t\n  '", "only white space"),
        ("printf '\\n\\n'; echo common_perf_print: >&2", "empty answer"),
    ];
    for (body, words) in cases {
        let fake = Fake::new(body);
        let before = fake.census();
        let output = run(fake.command(&["Where?", "scout", "8"]).env("SELFHEAL_MODE", "fix"));
        assert_eq!(output.code, 2, "{words}: {}", output.err());
        assert!(causes(&output)[0].starts_with(words), "{words}: {}", output.err());
        assert!(output.stdout.is_empty(), "{words}");
        assert!(fake.calls().len() > 1, "{words}: the next step is tried");
        assert_eq!(fake.census(), before, "{words}");
    }
}

#[test]
fn d22_only_thoughts_are_asked_again_without_thinking() {
    let fake = Fake::new(
        "case $given in *--chat-template-file*) answer Paris. ;; *) answer '<think>Let me see' ;; esac",
    );
    fake.all_models();
    let output = fake.ask(&["Where?", "sage", "8"]);
    assert_eq!((output.code, output.out().as_str()), (0, "Paris.\n"), "{}", output.err());
    assert_eq!(fake.calls().len(), 2);
    assert_eq!(fake.recorded("template"), format!("{{%- set enable_thinking = false -%}}{SWITCHED}"));
}

#[test]
fn every_cause_is_told_apart_and_ends_2() {
    let cases = [
        ("kill -KILL $$", "killed from outside (137)"),
        ("kill -ABRT $$", "crashed: SIGABRT (134)"),
        ("kill -SEGV $$", "crashed: SIGSEGV (139)"),
        ("exit 139", "crashed: SIGSEGV (139)"),
        (
            "echo '0.00.1 E llama_completion: broken pipe of thoughts' >&2; exit 1",
            "ended with 1: llama_completion: broken pipe of thoughts",
        ),
        ("echo 'ggml_backend: failed to allocate buffer of size 9' >&2; exit 1", "out of memory"),
        ("echo std::bad_alloc >&2; kill -ABRT $$", "out of memory"),
        ("yes", "never ends: cut after"),
        ("yes >&2", "never ends: cut after"),
        ("sleep 99", "expired after 2 s, before its first word"),
        ("printf Par; sleep 99", "expired after 2 s, in the middle of its answer"),
        ("printf Par; exit 0", "incomplete"),
        ("printf 'Paris.\\n\\n'", "incomplete"),
        ("echo 'cannot find it' >&2; exit 127", "ended with 127: cannot find it"),
        ("echo 'Password: ' >&2; exit 1", "asks a question"),
    ];
    for (body, words) in cases {
        let fake = Fake::new(body);
        let output = fake.ask(&["Where?", "scout", "8"]);
        assert_eq!(output.code, 2, "{body}: {}", output.err());
        assert!(causes(&output)[0].starts_with(words), "{body}: {}", output.err());
        assert!(output.err().contains("no answer: ") && output.err().contains("hint: "), "{}", output.err());
        assert!(output.stdout.is_empty(), "{body}");
        assert!(output.wall < Duration::from_secs(20), "{body}: {:?}", output.wall);
    }
}

#[test]
fn nothing_of_an_expired_run_is_left() {
    let fake =
        Fake::new("setsid sh -c 'trap \"\" TERM; sleep 876543' & trap '' TERM; sleep 876544; sleep 876545");
    let output = fake.ask(&["Where?", "scout", "8"]);
    assert_eq!(output.code, 2, "{}", output.err());
    for mark in ["876543", "876544", "876545"] {
        assert!(!alive(mark), "{mark}");
    }
}

#[test]
fn an_expired_or_failing_sage_is_answered_by_the_scout_and_that_is_5() {
    for body in ["printf x; sleep 99", "exit 1", "kill -SEGV $$", "echo std::bad_alloc >&2; exit 1"] {
        let fake = Fake::new(&format!("case $given in *scout*) answer Paris. ;; *) {body} ;; esac"));
        fake.all_models();
        let output = fake.ask(&["Where?", "sage", "8"]);
        assert_eq!((output.code, output.out().as_str()), (5, "Paris.\n"), "{body}: {}", output.err());
        assert!(output.err().contains("degraded: scout answered instead of sage"), "{}", output.err());
    }
}

#[test]
fn lost_output_is_asked_for_once_more_and_then_of_llama_simple() {
    let fake = Fake::new("[ $(calls) -gt 1 ] && answer Paris. || printf Par");
    let output = fake.ask(&["Where?", "scout", "8"]);
    assert_eq!((output.code, output.out().as_str()), (0, "Paris.\n"), "{}", output.err());
    assert_eq!(fake.calls().len(), 2);

    let simple = "printf '<s>%s Paris.\\n' \"${given#*-n 8 }\"; \
                  echo 'main: decoded 2 tokens in 0.1 s' >&2; echo 'llama_perf_context_print: x' >&2";
    let fake = Fake::new("printf Par");
    fake.program("llama-simple", simple);
    let output = fake.ask(&["Where?", "scout", "8"]);
    assert_eq!((output.code, output.out().as_str()), (0, " Paris.\n"), "{}", output.err());
    assert_eq!(fake.calls().len(), 3);
    assert!(fake.calls()[2].starts_with("llama-simple -m "), "{:?}", fake.calls());
    assert!(fake.calls()[2].ends_with("/scout.gguf -n 8 Where?"), "{:?}", fake.calls());

    // A prompt that came by standard input is not put on a command line, where everybody could read it.
    let output = run_with(&mut fake.command(&["-", "scout", "8"]), b"Where?", Duration::from_secs(60));
    assert_eq!(output.code, 2);
    assert!(fake.calls()[3..].iter().all(|call| !call.contains("Where?")), "{:?}", fake.calls());
    assert!(fake.calls().last().unwrap().contains("llama-completion"));
}

#[test]
fn an_engine_of_llama_simple_alone_answers_what_stands_on_the_command_line() {
    let fake = Fake::new("");
    fake.remove("llama-completion");
    let body = "printf '%s Paris.\\n' \"${given#*-n 8 }\"; printf 'decoded 2 tokens in 1 s\\nllama_perf_context_print:\\n' >&2";
    fake.program("llama-simple", body);
    let output = fake.ask(&["Where?", "scout", "8"]);
    assert_eq!((output.code, output.out().as_str()), (0, " Paris.\n"), "{}", output.err());
    let output = run_with(&mut fake.command(&["-", "scout", "8"]), b"Where?", Duration::from_secs(60));
    assert_eq!(output.code, 4, "{}", output.err());
    assert_eq!(fake.calls().len(), 1);
}

#[test]
fn an_engine_without_an_option_for_a_file_gets_only_what_stands_on_the_command_line() {
    let fake = Fake::new("answer x");
    fake.home.file("fake/help", HELP.replace("-f, ", "-p, "));
    assert_eq!(fake.ask(&["Where?", "scout", "8"]).code, 0);
    let output = run_with(&mut fake.command(&["-", "scout", "8"]), b"Secret?", Duration::from_secs(60));
    assert_eq!(output.code, 4, "{}", output.err());
    assert_eq!(fake.calls().len(), 1);
}

#[test]
fn a_prompt_that_needs_more_context_gets_it_where_the_model_has_it() {
    let fake = Fake::new(
        "[ $(calls) -gt 1 ] && answer x && exit\necho 'E x: prompt is too long (700 tokens, max 508)' >&2; exit 1",
    );
    let output = fake.ask(&["Where?", "scout", "8"]);
    assert_eq!(output.code, 0, "{}", output.err());
    assert!(
        causes(&output)[0].starts_with("prompt too long: 700 tokens, the context holds 508"),
        "{}",
        output.err()
    );
    assert!(
        fake.calls()[0].contains("-c 512 ") && fake.calls()[1].contains("-c 1024 "),
        "{:?}",
        fake.calls()
    );

    let fake = Fake::new("echo 'E x: prompt is too long (9000 tokens, max 1020)' >&2; exit 1");
    let output = fake.ask(&["Where?", "scout", "8"]);
    assert_eq!(output.code, 2, "{}", output.err());
    assert_eq!(fake.calls().len(), 1, "a model made for 1024 tokens is not asked again");
}

#[test]
fn a_template_that_the_engine_has_not_built_in_is_rendered() {
    let fake = Fake::new(
        "case $given in *--jinja*) answer x ;; *) echo 'try using --jinja' >&2; kill -ABRT $$ ;; esac",
    );
    let output = fake.ask(&["Where?", "scout", "8"]);
    assert_eq!((output.code, output.out().as_str()), (0, "x\n"), "{}", output.err());
    assert_eq!(fake.calls().len(), 2);
}

#[test]
fn an_engine_that_only_converses_or_hides_its_options_is_4() {
    let fake = Fake::new("answer x");
    for help in ["", "usage: -x", &HELP.replace("-m, ", "-M, ")] {
        fake.home.file("fake/help", help);
        let output = fake.ask(&["Where?", "scout", "8"]);
        assert_eq!(output.code, 4, "{help}: {}", output.err());
        assert!(causes(&output)[0].starts_with("unknown engine"), "{}", output.err());
    }
    fake.remove("llama-completion");
    fake.program("llama-cli", "answer x");
    fake.home.file("fake/help", HELP.replace("-cnv,", "-x,").replace("-no-cnv,", ""));
    assert_eq!(fake.ask(&["Where?", "scout", "8"]).code, 4);
    fake.home.file("fake/help", HELP);
    assert_eq!(fake.ask(&["Where?", "scout", "8"]).code, 0);
    assert_eq!(fake.calls().len(), 1);
}
