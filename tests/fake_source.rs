//! A small source tree, tools that pretend to build it, and a manifest that pins it.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unreachable_pub, reason = "a module of many test programs, exported by none")]
#![allow(clippy::disallowed_methods, reason = "tests start programs and lay out files themselves")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::private_home::{Home, Output, run};

/// The options that today's tree declares and that matter here.
const OPTIONS: &str = "option(BUILD_SHARED_LIBS \"x\" ON)\noption(LLAMA_BUILD_TESTS \"x\" ON)\n\
    option(LLAMA_BUILD_SERVER \"x\" ON)\noption(LLAMA_OPENSSL \"x\" ON)\noption(LLAMA_USE_PREBUILT_UI \"x\" ON)\n\
    llama_option_depr(WARNING LLAMA_CURL)\nllama_option_depr(WARNING LLAMA_NATIVE GGML_NATIVE)\n";

const GGML_OPTIONS: &str = "option(GGML_NATIVE \"x\" ON)\noption(GGML_CCACHE \"x\" ON)\n\
    option(GGML_SSE42 \"x\" ON)\noption(GGML_AVX \"x\" ON)\noption(GGML_AVX2 \"x\" ON)\n\
    option(GGML_BMI2 \"x\" ON)\noption(GGML_FMA \"x\" ON)\noption(GGML_F16C \"x\" ON)\n\
    configure_file(cmake/ggml-config.cmake.in x)\n";

/// Tools of the machine that the tests need; nothing else is on `PATH`.
const SYSTEM: [&str; 22] = [
    "sh", "cat", "chmod", "cp", "dirname", "echo", "env", "false", "git", "grep", "gzip", "kill", "ls",
    "mkdir", "mv", "printf", "rm", "sed", "sleep", "tar", "touch", "true",
];

/// A cmake that records what it is asked, keeps the cache as cmake does, and makes scripts for programs.
/// `$HOME/act` is sourced before it builds.
const CMAKE: &str = r#"
echo "$@" >>"$HOME/cmake.args"
env >"$HOME/cmake.env"
case $1 in
-S) src=$2; build=$4; shift 4
    mkdir -p "$build"
    { echo "CMAKE_HOME_DIRECTORY:INTERNAL=$src"; echo "CMAKE_CACHEFILE_DIR:INTERNAL=$build"
      echo "CMAKE_CXX_COMPILER:FILEPATH=$HOME/bin/c++"; echo "CMAKE_MAKE_PROGRAM:FILEPATH=$HOME/bin/make"
      for d; do
        d=${d#-D}; name=${d%%=*}; value=${d#*=}
        case $name in
        *:*) echo "$name=$value" ;;
        CMAKE_*) echo "$name:STRING=$value" ;;
        *) if grep -q "option($name " "$src/CMakeLists.txt" "$src/ggml/CMakeLists.txt"; then echo "$name:BOOL=$value"
           else echo "$name:UNINITIALIZED=$value"; fi ;;
        esac
      done
    } >"$build/CMakeCache.txt"
    case " $* " in *GGML_NATIVE=ON*) flags=-march=native ;; *) flags=-msse4.2 ;; esac
    [ ! -f "$HOME/flags" ] || flags=$(cat "$HOME/flags")
    echo "[{\"command\": \"cc $flags -c x.c\"}]" >"$build/compile_commands.json"
    [ ! -f "$HOME/configure.act" ] || . "$HOME/configure.act"
    ;;
--build) build=$2; shift 2
    if [ "$1" = --target ]; then
        for t in $(cat "$HOME/targets"); do echo "... $t"; done
        exit 0
    fi
    [ ! -f "$HOME/act" ] || . "$HOME/act"
    shift 3; mkdir -p "$build/bin"; n=0
    for t; do
        n=$((n + 25)); echo "[ $n%] Built target $t"
        cp "$HOME/program" "$build/bin/$t"
        chmod 755 "$build/bin/$t"
    done
    echo built >>"$HOME/builds"
    ;;
esac
"#;

/// What a healthy program does.
pub const PROGRAM: &str = "#!/bin/sh\necho 'version: 7 (build 7, commit abc)' >&2\n";

/// A home with `bin/` as its whole PATH: system tools, fake cmake, compilers and make.
pub fn workshop() -> Home {
    let home = Home::new();
    fs::create_dir_all(home.path("bin")).unwrap();
    for tool in SYSTEM {
        let place = ["/usr/local/bin", "/usr/bin", "/bin"].iter().map(|d| Path::new(d).join(tool));
        let found =
            place.into_iter().find(|p| p.exists()).unwrap_or_else(|| panic!("{tool} is not installed"));
        symlink(found, home.path("bin").join(tool)).unwrap();
    }
    home.script("bin/cmake", CMAKE);
    for tool in ["cc", "c++", "make"] {
        home.script(&format!("bin/{tool}"), "echo 'fake compiler 1.0'");
    }
    home.file("program", PROGRAM);
    home.file("targets", "all llama-completion llama-simple llama-simple-chat llama-bench llama-gguf");
    manifest(&home, "https://github.com/ggml-org/llama.cpp.git", "");
    home
}

/// Writes a manifest with a remote and the archives given as JSON.
pub fn manifest(home: &Home, remote: &str, archives: &str) {
    let text = format!(
        r#"{{"version":1,"models":[],"engine":{{"remote":"{remote}","tag":"b7","archives":[{archives}]}}}}"#
    );
    home.file("manifest.json", text);
}

/// llama-rebuild in a workshop, in check mode.
pub fn rebuild(home: &Home, args: &[&str]) -> Command {
    let mut command = home.command(env!("CARGO_BIN_EXE_llama-rebuild"));
    command
        .env("PATH", home.path("bin"))
        .env("SELFHEAL_MANIFEST", home.path("manifest.json"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(args);
    command
}

/// The same with consent.
pub fn fix(home: &Home, args: &[&str]) -> Command {
    let mut command = rebuild(home, args);
    command.env("SELFHEAL_MODE", "fix");
    command
}

/// Lays out a whole source tree.
pub fn tree(home: &Home, at: &str) -> PathBuf {
    let file = |name: &str, text: &str| home.file(&format!("{at}/{name}"), text);
    file("CMakeLists.txt", OPTIONS);
    file("ggml/CMakeLists.txt", GGML_OPTIONS);
    for name in ["ggml/src/ggml.c", "ggml/cmake/ggml-config.cmake.in", "src/llama.cpp"] {
        file(name, "content\n");
    }
    file("common/CMakeLists.txt", "# common\n");
    file("tools/CMakeLists.txt", "# tools\n");
    home.path(at)
}

/// git with nothing of the caller's configuration.
pub fn git(home: &Home, dir: &Path, args: &[&str]) -> String {
    let mut command = home.command("git");
    command.env("GIT_CONFIG_NOSYSTEM", "1").current_dir(dir).args([
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@x",
    ]);
    let output = run(command.args(args));
    assert_eq!(output.code, 0, "git {args:?}: {}", output.err());
    output.out().trim().to_owned()
}

/// A whole tree as a git checkout with one remote.
pub fn checkout(home: &Home, at: &str, remote: &str) -> PathBuf {
    let dir = tree(home, at);
    git(home, &dir, &["init", "-q"]);
    git(home, &dir, &["add", "."]);
    git(home, &dir, &["commit", "-q", "-m", "x"]);
    git(home, &dir, &["remote", "add", "origin", remote]);
    dir
}

/// A repository that can be cloned at tag `b7`; returns its URL.
pub fn upstream(home: &Home) -> String {
    let dir = checkout(home, "upstream", "https://github.com/ggml-org/llama.cpp");
    git(home, &dir, &["tag", "b7"]);
    format!("file://{}", dir.display())
}

/// A source archive of a fresh tree and its pin for the manifest; `spoil` may change the tree before it is packed.
pub fn archive(home: &Home, spoil: impl FnOnce(&Path)) -> (PathBuf, String) {
    let dir = tree(home, "pack/wrapper-7/llama.cpp");
    spoil(&dir);
    let file = home.path("wrapper-7.tar.gz");
    let mut tar = home.command("tar");
    let packed = run(tar.arg("-czf").arg(&file).arg("-C").arg(home.path("pack")).arg("wrapper-7"));
    assert_eq!(packed.code, 0, "{}", packed.err());
    fs::remove_dir_all(home.path("pack")).unwrap();
    let mut open = fs::File::open(&file).unwrap();
    let (sha, bytes) = files::digest::of_reader(&mut open).unwrap();
    let pin = format!(
        r#"{{"name":"wrapper","version":"7","file":"wrapper-7.tar.gz","member":"wrapper-7/llama.cpp","bytes":{bytes},"sha256":"{}","tree":"b7"}}"#,
        sha.hex()
    );
    (file, pin)
}

/// The directory of a kept engine.
pub fn kept(home: &Home, id: &str) -> PathBuf {
    home.path(".selfheal/engine").join(id)
}

/// Keeps an engine of four programs with a stamp for `id`.
pub fn keep(home: &Home, id: &str, program: &str) -> PathBuf {
    let dir = kept(home, id);
    let mut stamp = engine::Stamp {
        cpu: id.to_owned(),
        flags: Vec::new(),
        portable: id.starts_with("portable"),
        tree: "b7".into(),
        options: Vec::new(),
        compiler: "fake".into(),
        built: "2026-11-30T00:00:00Z".into(),
        programs: Vec::new(),
    };
    for name in engine::PROGRAMS {
        let path = home.file(&format!(".selfheal/engine/{id}/{name}"), program);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let (sha256, bytes) = files::digest::of_reader(&mut program.as_bytes()).unwrap();
        stamp.programs.push(engine::stamp::Program { name: name.into(), bytes, sha256 });
    }
    fs::write(dir.join("stamp"), stamp.line()).unwrap();
    dir
}

/// Asserts code and state, with everything that was printed in the failure.
pub fn expect(output: &Output, code: i32, state: &str, words: &[&str]) {
    assert_eq!((output.code, output.field(1).as_str()), (code, state), "{}\n{}", output.out(), output.err());
    assert_eq!((output.field(2).as_str(), output.field(3).as_str()), ("binary", "engine"));
    assert_eq!(output.out().lines().count(), 1, "{}", output.out());
    for word in words {
        assert!(
            output.out().contains(word) || output.err().contains(word),
            "no '{word}' in:\n{}\n{}",
            output.out(),
            output.err()
        );
    }
}
