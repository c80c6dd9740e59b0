//! llama-rebuild: configuring, compiling, installing; every way in which that goes wrong.
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

mod fake_source;
mod private_home;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use fake_source::*;
use private_home::*;

const TRUSTED: &str = "https://github.com/ggml-org/llama.cpp";

/// A workshop with a trusted checkout.
fn ready() -> Home {
    let home = workshop();
    checkout(&home, "llama.cpp", TRUSTED);
    home
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path.as_ref()).unwrap_or_default()
}

/// The arguments of the first cmake call.
fn configured(home: &Home) -> String {
    text(home.path("cmake.args")).lines().next().unwrap_or_default().to_owned()
}

fn asides(home: &Home, dir: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.path(dir)).unwrap().flatten().map(|e| e.path());
    entries.filter(|p| p.to_string_lossy().contains(".aside-")).collect()
}

/// Waits, at most 20 s, until something is so.
fn until(what: &str, so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_rebuild_keeps_one_static_engine_with_its_stamp() {
    let home = ready();
    let output = run(&mut fix(&home, &["--jobs", "3"]));
    expect(&output, 0, "healed", &["version 7", "native", "compiled 20 %", "compiled 100 %", "3 at once"]);
    let id = engine::cpu().id;
    let stamp = engine::Stamp::read(&kept(&home, &id).join("stamp")).unwrap();
    assert_eq!((stamp.cpu.as_str(), stamp.portable), (id.as_str(), false));
    assert_eq!(stamp.tree, git(&home, &home.path("llama.cpp"), &["rev-parse", "HEAD"]));
    let names: Vec<_> = stamp.programs.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, engine::PROGRAMS);
    let args = configured(&home);
    for option in [
        "-DBUILD_SHARED_LIBS=OFF",
        "-DGGML_NATIVE=ON",
        "-DLLAMA_BUILD_SERVER=OFF",
        "-DLLAMA_OPENSSL=OFF",
        "-DLLAMA_USE_PREBUILT_UI=OFF",
        "-DCMAKE_EXE_LINKER_FLAGS=-s",
        "-DCMAKE_BUILD_TYPE=Release",
    ] {
        assert!(args.contains(option), "{option} is not in {args}");
    }
    for deprecated in ["LLAMA_NATIVE", "LLAMA_CURL", "LLAMA_CUBLAS", "LLAMA_SERVER"] {
        assert!(!args.contains(deprecated), "{args}");
    }
    // the fake compiler takes every flag
    assert_eq!(args.contains("-mno-amx-tile"), engine::cpu().has("amx_tile"), "{args}");
    let called = text(home.path("cmake.args"));
    assert!(
        called.contains("-j 3 --target llama-completion llama-simple llama-simple-chat llama-bench"),
        "{called}"
    );
    assert!(text(home.path(".selfheal/engine/build.log")).contains("[ 50%] Built target"));
    assert!(text(home.path(".selfheal/selfheal.log")).contains("llama-rebuild rebuild version 7"));
    assert!(asides(&home, ".selfheal/engine").is_empty() && asides(&home, "llama.cpp").is_empty());
    // healthy now: nothing more is done, unless it is asked for
    let before = home.census();
    expect(&run(&mut fix(&home, &[])), 0, "ok", &["version 7"]);
    assert_eq!(home.census(), before);
    expect(&run(&mut fix(&home, &["--force"])), 0, "healed", &["version 7"]);
    assert_eq!(text(home.path("builds")).lines().count(), 2);
}

#[test]
fn options_and_targets_are_those_the_tree_has() {
    let home = ready();
    let file = home.path("llama.cpp/CMakeLists.txt");
    let old = text(&file).replace("option(LLAMA_USE_PREBUILT_UI \"x\" ON)", "option(LLAMA_CURL \"x\" ON)");
    fs::write(&file, old.replace("llama_option_depr(WARNING LLAMA_CURL)", "")).unwrap();
    home.file("targets", "all llama-cli llama-simple llama-bench");
    expect(&run(&mut fix(&home, &[])), 0, "healed", &[]);
    let args = configured(&home);
    assert!(args.contains("-DLLAMA_CURL=OFF") && !args.contains("PREBUILT_UI"), "{args}");
    assert!(text(home.path("cmake.args")).contains("--target llama-cli llama-simple llama-bench"));
    expect(&run(&mut rebuild(&home, &["--status"])), 0, "ok", &[]);
}

#[test]
fn a_tree_that_ignores_an_option_or_has_no_program_is_refused() {
    let home = ready();
    let file = home.path("llama.cpp/ggml/CMakeLists.txt");
    let ggml = text(&file);
    fs::write(&file, ggml.replace("option(GGML_NATIVE \"x\" ON)", "")).unwrap();
    expect(&run(&mut fix(&home, &[])), 4, "bad", &["does not take -DGGML_NATIVE=ON"]);
    fs::write(&file, &ggml).unwrap();
    home.file("targets", "all main server");
    expect(&run(&mut fix(&home, &[])), 4, "bad", &["neither llama-completion nor llama-cli"]);
    home.file("flags", "-O3");
    expect(&run(&mut fix(&home, &[])), 4, "bad", &["compiled without -march=native"]);
    assert!(!home.path("builds").exists());
}

#[test]
fn a_build_directory_of_something_else_is_moved_aside() {
    type Spoil = fn(&Home);
    let cases: [(&str, Spoil); 6] = [
        ("was not made by llama-rebuild", |home| {
            fs::remove_file(home.path("llama.cpp/build/stamp")).unwrap();
        }),
        ("was made for another CPU (0123456789ab)", |home| {
            let path = home.path("llama.cpp/build/stamp");
            fs::write(&path, text(&path).replace(&engine::cpu().id, "0123456789ab")).unwrap();
        }),
        ("was made for another directory (/nowhere)", |home| {
            let path = home.path("llama.cpp/build/CMakeCache.txt");
            let home_dir = home.path("llama.cpp").display().to_string();
            let old = format!("CMAKE_HOME_DIRECTORY:INTERNAL={home_dir}");
            fs::write(&path, text(&path).replace(&old, "CMAKE_HOME_DIRECTORY:INTERNAL=/nowhere")).unwrap();
        }),
        ("was made for another directory (/nowhere)", |home| {
            let path = home.path("llama.cpp/build/CMakeCache.txt");
            let build = home.path("llama.cpp/build").display().to_string();
            let old = format!("CMAKE_CACHEFILE_DIR:INTERNAL={build}");
            fs::write(&path, text(&path).replace(&old, "CMAKE_CACHEFILE_DIR:INTERNAL=/nowhere")).unwrap();
        }),
        ("was made by another compiler (fake compiler 1.0)", |home| {
            drop(home.script("bin/c++", "echo 'fake compiler 2.0'"));
        }),
        ("was made for a make that is gone", |home| {
            fs::rename(home.path("bin/make"), home.path("bin/gmake")).unwrap();
        }),
    ];
    for (words, spoil) in cases {
        let home = ready();
        expect(&run(&mut fix(&home, &[])), 0, "healed", &[]);
        home.file("llama.cpp/build/mine", "mine");
        expect(&run(&mut fix(&home, &["--force"])), 0, "healed", &[]);
        assert!(asides(&home, "llama.cpp").is_empty(), "{words}: a build directory that fits is used again");
        spoil(&home);
        expect(&run(&mut fix(&home, &["--force"])), 0, "healed", &[words, "it is now"]);
        assert_eq!(text(home.path("llama.cpp/build.aside-1/mine")), "mine");
    }
}

#[test]
fn a_portable_engine_uses_no_instruction_that_a_cpu_may_lack() {
    let home = ready();
    expect(&run(&mut fix(&home, &[])), 0, "healed", &["native"]);
    home.file("flags", "-msse4.2 -mavx2");
    expect(&run(&mut fix(&home, &["--portable"])), 4, "bad", &["would be compiled with -mavx"]);
    expect(&run(&mut rebuild(&home, &["--status"])), 0, "ok", &["native, kept"]);
    fs::remove_file(home.path("flags")).unwrap();
    let output = run(&mut fix(&home, &["--portable"]));
    expect(&output, 0, "healed", &["portable", "the native engine is now"]);
    let args = text(home.path("cmake.args"));
    let last = args.lines().rfind(|l| l.starts_with("-S")).unwrap();
    for option in
        ["-DGGML_NATIVE=OFF", "-DGGML_SSE42=ON", "-DGGML_AVX=OFF", "-DGGML_AVX2=OFF", "-DGGML_FMA=OFF"]
    {
        assert!(last.contains(option), "{option} is not in {last}");
    }
    // it is the one that is used now, on this and on any other CPU
    expect(&run(&mut rebuild(&home, &["--status"])), 0, "ok", &["portable, kept"]);
    expect(&run(&mut fix(&home, &[])), 0, "ok", &["portable, kept"]);
}

#[test]
fn an_engine_that_does_not_work_replaces_nothing() {
    let home = ready();
    expect(&run(&mut fix(&home, &[])), 0, "healed", &[]);
    for (program, words) in [
        ("#!/bin/sh\nkill -ILL $$\n", "illegal instruction - built for another CPU (132)"),
        ("#!/bin/sh\nexit 0\n", "without a version line"),
        ("", "empty, 0 bytes"),
    ] {
        home.file("program", program);
        let output = run(&mut fix(&home, &["--force"]));
        expect(
            &output,
            4,
            "bad",
            &["the new llama-completion does not work", words, "hint: llama-rebuild --portable"],
        );
        expect(&run(&mut rebuild(&home, &["--status"])), 0, "ok", &[]);
        let left: Vec<_> = fs::read_dir(home.path(".selfheal/engine")).unwrap().flatten().collect();
        assert!(!left.iter().any(|e| e.file_name().to_string_lossy().ends_with(".tmp")), "{left:?}");
    }
}

#[test]
fn what_is_not_ours_in_the_engines_place_is_moved_aside() {
    let home = ready();
    home.file(&format!(".selfheal/engine/{}/notes", engine::cpu().id), "mine");
    expect(&run(&mut fix(&home, &[])), 0, "healed", &["the old engine is now"]);
    assert_eq!(text(asides(&home, ".selfheal/engine")[0].join("notes")), "mine");
}

#[test]
fn a_failure_is_named_by_its_cause() {
    let cases = [
        (
            "act",
            "echo 'x.c: fatal error: error writing to x.o: No space left on device'; exit 2",
            "the disk is full",
            "df -h",
        ),
        (
            "act",
            "echo 'c++: fatal error: Killed signal terminated program cc1plus' >&2; exit 2",
            "the compiler ran out of memory",
            "--jobs 1",
        ),
        (
            "configure.act",
            "echo 'The C++ compiler \"/usr/bin/c++\" is not able to compile a simple test program.'; exit 1",
            "configuring failed: the compiler does not work",
            "build.log",
        ),
        (
            "act",
            "echo '[ 3%] x'; echo 'x.c:1:2: error: no such thing'; echo make: done; exit 2",
            "x.c:1:2: error: no such thing",
            "build.log",
        ),
        ("act", "exit 3", "compiling failed: it said nothing", "build.log"),
        ("act", "kill -SEGV $$", "compiling died of signal 11", "what is compiled is kept"),
    ];
    for (act, script, words, hint) in cases {
        let home = ready();
        home.file(act, script);
        let output = run(&mut fix(&home, &[]));
        expect(&output, 4, "failed", &[words]);
        assert!(
            output.err().lines().any(|l| l.starts_with("hint: ") && l.contains(hint)),
            "{}",
            output.err()
        );
        assert!(text(home.path(".selfheal/selfheal.log")).contains("rebuild-failed"));
    }
}

#[test]
fn what_is_not_installed_is_named_with_the_line_that_installs_it() {
    for (tool, words) in [
        ("cmake", "cmake is not installed"),
        ("c++", "a C++ compiler is not installed"),
        ("cc", "a C compiler is not installed"),
        ("make", "make is not installed"),
        ("git", "git is not installed"),
    ] {
        let home = ready();
        fs::remove_file(home.path("bin").join(tool)).unwrap();
        home.script("bin/apt-get", "exit 1");
        for mut command in [rebuild(&home, &[]), fix(&home, &[])] {
            let output = run(&mut command);
            expect(&output, 4, "missing", &[words, "hint: apt-get install -y"]);
        }
    }
}

#[test]
fn a_compiler_that_hangs_is_cut_and_nothing_of_it_survives() {
    let home = ready();
    home.file("act", "echo '[ 10%] slow'; sleep 4711 & sleep 4711");
    let output = run(&mut fix(&home, &["--limit", "2"]));
    expect(&output, 4, "failed", &["was not over in time", "hint: run it again"]);
    assert!(output.wall < Duration::from_secs(30), "{:?}", output.wall);
    assert!(!alive("sleep 4711"));
}

#[test]
fn a_signal_stops_it_cleanly_and_the_next_run_goes_on() {
    let home = ready();
    home.file("act", ": >\"$HOME/compiling\"; sleep 4712");
    let mut child = fix(&home, &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("it compiles", || home.path("compiling").exists());
    assert_eq!(run(home.command("kill").args(["-TERM", &child.id().to_string()])).code, 0);
    assert!(wait(&mut child, Instant::now() + Duration::from_secs(20)).is_some(), "it did not stop");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.starts_with("failed\tbinary\tengine\tstopped by signal 15"), "{said}");
    assert!(!alive("sleep 4712"));
    fs::remove_file(home.path("act")).unwrap();
    expect(&run(&mut fix(&home, &[])), 0, "healed", &[]);
    assert!(asides(&home, "llama.cpp").is_empty(), "the build directory was used again");
}

#[test]
fn a_run_that_was_killed_leaves_nothing_for_ever() {
    let home = ready();
    // beyond the largest process number there is
    home.file(".selfheal/engine/.0123.4194399.tmp/llama-completion", "half");
    home.file(".selfheal/engine/source/.b7.old.4194399.tmp/x", "half");
    home.file("act", ": >\"$HOME/compiling\"; exec sleep 4713");
    let mut child = fix(&home, &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("it compiles", || home.path("compiling").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    until("cmake dies with it", || !alive("sleep 4713"));
    fs::remove_file(home.path("act")).unwrap();
    expect(&run(&mut fix(&home, &[])), 0, "healed", &[]);
    let left: Vec<_> = home.census().into_iter().filter(|line| line.contains(".tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn two_at_once_build_once() {
    let home = ready();
    home.file("act", ": >\"$HOME/compiling\"; until [ -f \"$HOME/go\" ]; do sleep 0.01; done");
    let mut first = fix(&home, &[]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    until("the first compiles", || home.path("compiling").exists());
    let second = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| run(&mut fix(&home, &["--limit", "50"])));
        // in vain while the first is at work
        let busy = run(&mut fix(&home, &["--limit", "0.2"]));
        assert_eq!((busy.code, busy.out().as_str()), (75, ""), "{}", busy.err());
        assert!(busy.err().contains("another llama-rebuild is at work"), "{}", busy.err());
        home.file("go", "");
        waiter.join().unwrap()
    });
    expect(&second, 0, "ok", &["waiting for it", "version 7"]);
    assert!(wait(&mut first, Instant::now() + Duration::from_secs(20)).unwrap().success());
    assert_eq!(text(home.path("builds")).lines().count(), 1);
}

#[test]
fn the_compiler_cache_is_separate_for_each_cpu_and_kept_where_asked() {
    let id = engine::cpu().id;
    let home = ready();
    home.script("bin/ccache", "echo 'ccache version 4.7.5'");
    expect(&run(&mut fix(&home, &["--keep-ccache", "kept cache"])), 0, "healed", &["with ccache"]);
    let env = text(home.path("cmake.env"));
    let dir = home.path("kept cache").join(&id);
    assert!(env.contains(&format!("CCACHE_DIR={}\n", dir.display())), "{env}");
    assert!(env.contains(&format!("CCACHE_BASEDIR={}\n", home.path("llama.cpp").display())), "{env}");
    assert!(dir.is_dir() && configured(&home).contains("-DGGML_CCACHE=ON"));
    expect(&run(&mut fix(&home, &["--portable"])), 0, "healed", &[]);
    let portable = home.path(".selfheal/engine/ccache").join(engine::cpu().portable_id());
    assert!(text(home.path("cmake.env")).contains(&format!("CCACHE_DIR={}\n", portable.display())));
    // one that is emptied would make every compilation an empty success
    let home = ready();
    let ccache = home.script("bin/ccache", "");
    fs::write(ccache, "").unwrap();
    home.script("bin/sccache", "[ \"$1\" != --stop-server ] || : >\"$HOME/stopped\"; echo 'sccache 0.4.0'");
    expect(&run(&mut fix(&home, &[])), 0, "healed", &["with sccache"]);
    let env = text(home.path("cmake.env"));
    assert!(env.contains(&format!("SCCACHE_C_CUSTOM_CACHE_BUSTER={id}\n")), "{env}");
    assert!(home.path("stopped").exists(), "its server is stopped in order");
    fs::remove_file(home.path("bin/sccache")).unwrap();
    let output = run(&mut fix(&home, &["--force"]));
    expect(&output, 0, "healed", &["no ccache"]);
}

#[test]
fn the_callers_flags_do_not_change_what_is_built() {
    let home = ready();
    let mut command = fix(&home, &[]);
    for name in ["CFLAGS", "CXXFLAGS", "LDFLAGS", "MAKEFLAGS", "DESTDIR", "TAR_OPTIONS"] {
        command.env(name, "stray");
    }
    expect(&run(&mut command), 0, "healed", &[]);
    let env = text(home.path("cmake.env"));
    assert!(!env.contains("=stray"), "{env}");
    let ceiling = format!("GIT_CEILING_DIRECTORIES={}\n", home.dir.display());
    assert!(env.contains(&ceiling), "{env}");
}
