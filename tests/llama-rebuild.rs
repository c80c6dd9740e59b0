//! llama-rebuild: what it says of an engine, and that it writes nothing without consent.
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

mod fake_source;
mod private_home;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use fake_source::*;
use private_home::*;

/// Each damage of a program that nobody stamped, and the words it must have.
const DAMAGE: &[(&str, &str, u32, &str, &str)] = &[
    (
        "killed by SIGILL",
        "#!/bin/sh\nkill -ILL $$\n",
        0o755,
        "bad",
        "illegal instruction - built for another CPU (132)",
    ),
    (
        "a wrapper's 132",
        "#!/bin/sh\nexit 132\n",
        0o755,
        "bad",
        "illegal instruction - built for another CPU (132)",
    ),
    (
        "no library",
        "#!/bin/sh\necho 'llama: error while loading shared libraries: libllama.so: cannot open' >&2\nexit 127\n",
        0o755,
        "missing",
        "missing library libllama.so",
    ),
    ("no x bit", PROGRAM, 0o644, "stripped", "not executable"),
    ("0 bytes, which a shell runs as an empty script", "", 0o755, "short", "empty, 0 bytes"),
    ("silent", "#!/bin/sh\nexit 0\n", 0o755, "corrupt", "without a version line"),
    ("half a header", "\x7fELF\x02", 0o755, "corrupt", "cannot be run: it is truncated"),
    (
        "garbage, which a shell would run",
        "touch was-run\n",
        0o755,
        "corrupt",
        "neither a program nor a script",
    ),
    (
        "a program of another machine",
        "\x7fELF\x01\x02\x01\0\0\0\0\0\0\0\0\0\x02\0\x08\0",
        0o755,
        "corrupt",
        "another kind of machine",
    ),
    ("its interpreter is gone", "#!/no/such/interpreter\n", 0o755, "corrupt", "interpreter"),
    ("a bus error", "#!/bin/sh\nkill -BUS $$\n", 0o755, "corrupt", "signal 7 (135)"),
    ("another status", "#!/bin/sh\nexit 3\n", 0o755, "corrupt", "ended with 3"),
];

#[test]
fn a_home_that_cannot_be_written_is_said_with_the_variables_that_name_another() {
    let home = Home::new();
    let mut command = home.command(env!("CARGO_BIN_EXE_llama-rebuild"));
    let output = run(command.env("SELFHEAL_MODE", "fix").env("SELFHEAL_HOME", "/proc/none"));
    assert_eq!(output.code, 74, "{}", output.err());
    let hint = output.err().lines().last().unwrap_or_default().to_owned();
    assert!(
        hint.starts_with("hint: ") && hint.contains("SELFHEAL_HOME") && hint.contains("SELFHEAL_LLAMA_DIR"),
        "{}",
        output.err()
    );
}

#[test]
fn d20_each_damage_of_the_engine_has_its_own_words() {
    let home = workshop();
    for (name, content, mode, state, words) in DAMAGE {
        let program = home.file("llama.cpp/build/bin/llama-completion", content);
        fs::set_permissions(&program, fs::Permissions::from_mode(*mode)).unwrap();
        let before = home.census();
        let output = run(&mut rebuild(&home, &["--status"]));
        expect(&output, 4, state, &[words]);
        assert!(!output.out().contains("model"), "{name}: a model is blamed");
        assert_eq!(home.census(), before, "{name}");
    }
}

#[test]
fn a_healthy_engine_is_found_in_every_place_and_left_alone() {
    for place in
        ["llama.cpp/build/bin/llama-completion", "bin/llama-completion", "llama.cpp/build/bin/llama-cli"]
    {
        let home = workshop();
        let program = home.file(place, PROGRAM);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let before = home.census();
        expect(&run(&mut rebuild(&home, &["--status"])), 0, "ok", &["version 7"]);
        expect(&run(&mut fix(&home, &[])), 0, "ok", &["version 7"]);
        assert_eq!(home.census(), before, "{place}");
    }
}

#[test]
fn llama_simple_alone_is_not_the_whole_engine() {
    let home = workshop();
    home.script("llama.cpp/build/bin/llama-simple", "echo 'example usage: x'; exit 1");
    expect(&run(&mut rebuild(&home, &["--status"])), 4, "missing", &["only llama-simple"]);
}

#[test]
fn a_kept_engine_is_compared_with_its_stamp() {
    let id = engine::cpu().id;
    let home = workshop();
    let dir = keep(&home, &id, PROGRAM);
    expect(&run(&mut rebuild(&home, &["--status"])), 0, "ok", &["native, kept"]);
    let spoil: &[(&str, &[u8], &str, &str)] = &[
        ("llama-completion", &PROGRAM.as_bytes()[..20], "short", "llama-completion: truncated"),
        ("llama-bench", &PROGRAM.as_bytes()[..20], "short", "llama-bench is truncated"),
        (
            "llama-completion",
            b"#!/bin/sh\necho 'version: 8 (build 7, commit abc)' >&2\n",
            "corrupt",
            "other bytes",
        ),
        ("llama-completion", b"", "short", "empty"),
    ];
    for (name, content, state, words) in spoil {
        fs::write(dir.join(name), content).unwrap();
        expect(&run(&mut rebuild(&home, &["--status"])), 4, state, &[words]);
        fs::write(dir.join(name), PROGRAM).unwrap();
    }
    fs::remove_file(dir.join("llama-simple")).unwrap();
    expect(&run(&mut rebuild(&home, &["--status"])), 4, "missing", &["llama-simple is missing"]);
}

#[test]
fn an_engine_of_another_cpu_is_named_and_never_run() {
    let home = workshop();
    keep(&home, "0123456789ab", &format!("#!/bin/sh\n: >'{}'\n", home.path("was-run").display()));
    expect(&run(&mut rebuild(&home, &["--status"])), 4, "bad", &["built for another CPU (0123456789ab"]);
    let stamp = fs::read(kept(&home, "0123456789ab").join("stamp")).unwrap();
    home.script("llama.cpp/build/bin/llama-completion", ": >\"$HOME/was-run\"");
    home.file("llama.cpp/build/stamp", stamp);
    expect(&run(&mut rebuild(&home, &["--status"])), 4, "bad", &["built for another CPU (0123456789ab"]);
    assert!(!home.path("was-run").exists());
}

#[test]
fn the_engine_for_this_cpu_comes_before_the_portable_one() {
    let home = workshop();
    let cpu = engine::cpu();
    keep(&home, &cpu.portable_id(), PROGRAM);
    expect(&run(&mut rebuild(&home, &["--status"])), 0, "ok", &["portable, kept"]);
    keep(&home, &cpu.id, PROGRAM);
    expect(&run(&mut rebuild(&home, &["--status"])), 0, "ok", &["native, kept"]);
    expect(&run(&mut rebuild(&home, &["--status", "--portable"])), 0, "ok", &["portable, kept"]);
}

#[test]
fn lost_execute_bits_are_given_back_without_compiling() {
    let home = workshop();
    let dir = keep(&home, &engine::cpu().id, PROGRAM);
    for name in engine::PROGRAMS {
        fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    let before = home.census();
    expect(&run(&mut rebuild(&home, &["--status"])), 4, "stripped", &["not executable"]);
    expect(&run(&mut rebuild(&home, &[])), 5, "would", &["DRY: would give", "not executable"]);
    assert_eq!(home.census(), before);
    expect(&run(&mut fix(&home, &[])), 0, "healed", &["execute bits given back"]);
    expect(&run(&mut rebuild(&home, &["--status"])), 0, "ok", &[]);
    assert!(!home.path("cmake.args").exists(), "nothing was compiled");
    let log = fs::read_to_string(home.path(".selfheal/selfheal.log")).unwrap();
    assert!(log.contains("llama-rebuild execute-bits"), "{log}");
}

#[test]
fn without_consent_nothing_is_written() {
    let home = workshop();
    checkout(&home, "llama.cpp", "https://github.com/ggml-org/llama.cpp");
    let before = home.census();
    for args in [&[][..], &["--force"], &["--portable"], &["--keep-ccache", "keep"], &["--json"]] {
        let output = run(&mut rebuild(&home, args));
        assert_eq!(output.code, 5, "{args:?}: {}{}", output.out(), output.err());
        assert!(output.err().contains("DRY: would rebuild the engine from"), "{}", output.err());
        assert_eq!(home.census(), before, "{args:?}");
    }
    let json = run(&mut rebuild(&home, &["--json"])).out();
    assert!(json.starts_with("{\"") && json.contains("\"state\":\"would\""), "{json}");
}

#[test]
fn status_writes_nothing_even_with_consent() {
    let home = workshop();
    checkout(&home, "llama.cpp", "https://github.com/ggml-org/llama.cpp");
    let before = home.census();
    expect(&run(&mut fix(&home, &["--status"])), 4, "missing", &["there is no engine"]);
    assert_eq!(home.census(), before);
}

#[test]
fn wrong_usage_is_64_and_says_how() {
    let home = workshop();
    for args in [
        &["--nonsense"][..],
        &["operand"],
        &["--jobs", "0"],
        &["--jobs", "-1"],
        &["--jobs", "99999999999999999999"],
        &["--limit", "0"],
        &["--limit", "soon"],
        &["--from-archive"],
        &["--status=x"],
    ] {
        let output = run(&mut rebuild(&home, args));
        assert_eq!((output.code, output.out().as_str()), (64, ""), "{args:?}: {}", output.err());
        assert!(output.err().contains("hint: llama-rebuild --help"), "{args:?}: {}", output.err());
    }
    let output = run(rebuild(&home, &[]).env("SELFHEAL_MODE", "Fix"));
    assert_eq!(output.code, 64, "{}", output.err());
    let help = run(&mut rebuild(&home, &["--help"]));
    assert_eq!(help.code, 0);
    assert!(help.out().starts_with("llama-rebuild - "));
}

#[test]
fn a_home_that_cannot_be_written_is_74() {
    let home = workshop();
    checkout(&home, "llama.cpp", "https://github.com/ggml-org/llama.cpp");
    let output = run(fix(&home, &[]).env("SELFHEAL_HOME", "/proc/selfheal"));
    assert_eq!((output.code, output.out().as_str()), (74, ""), "{}", output.err());
    assert!(output.err().contains("cannot make '/proc/selfheal"), "{}", output.err());
}

#[test]
fn a_name_with_a_newline_stays_on_one_line() {
    let home = workshop();
    let dir = checkout(&home, "a\nb\u{1b}[31m", "https://github.com/evil/llama.cpp");
    let output = run(rebuild(&home, &[]).env("SELFHEAL_LLAMA_DIR", dir));
    expect(&output, 4, "bad", &["a\\\\nb"]);
    assert!(!output.out().contains('\u{1b}') && !output.err().contains('\u{1b}'));
}

#[test]
fn a_missing_manifest_is_69() {
    let home = workshop();
    let output = run(rebuild(&home, &[]).env_remove("SELFHEAL_MANIFEST"));
    // beside the test binary there is none
    assert_eq!((output.code, output.out().as_str()), (69, ""), "{}", output.err());
}
