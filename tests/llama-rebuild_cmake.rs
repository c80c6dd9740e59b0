//! llama-rebuild with the real cmake and the real compiler, on a tree small enough for a test.
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

mod fake_source;
mod private_home;

use std::fs;
use std::process::Command;

use fake_source::*;
use private_home::*;

const TRUSTED: &str = "https://github.com/ggml-org/llama.cpp";

/// What the pretended tree lacks to be built in earnest.
const PROJECT: &str = r#"
cmake_minimum_required(VERSION 3.14)
project("llama.cpp" C CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
function(llama_option_depr)
endfunction()
"#;

const PROGRAMS: &str = r"
add_subdirectory(ggml)
if (GGML_NATIVE)
    add_compile_options(-march=native)
endif()
add_library(llama STATIC src/llama.cpp src/more.cpp)
set_target_properties(llama PROPERTIES UNITY_BUILD ON)
foreach(name llama-completion llama-simple llama-simple-chat llama-bench)
    add_executable(${name} src/program.c)
    target_link_libraries(${name} llama)
endforeach()
";

const MAIN: &str = r#"#include <stdio.h>
int main(void) { fprintf(stderr, "version: 9 (build 9, commit def)\n"); return 0; }
"#;

fn real(home: &Home) {
    let dir = checkout(home, "llama.cpp", TRUSTED);
    let options = fs::read_to_string(dir.join("CMakeLists.txt")).unwrap();
    fs::write(dir.join("CMakeLists.txt"), format!("{PROJECT}{options}{PROGRAMS}")).unwrap();
    fs::write(dir.join("src/program.c"), MAIN).unwrap();
    fs::write(dir.join("src/llama.cpp"), "int one() { return 1; }\n").unwrap();
    fs::write(dir.join("src/more.cpp"), "int two() { return 2; }\n").unwrap();
    let ggml = fs::read_to_string(dir.join("ggml/CMakeLists.txt")).unwrap();
    fs::write(
        dir.join("ggml/CMakeLists.txt"),
        ggml.replace("ggml-config.cmake.in x", "ggml-config.cmake.in x COPYONLY"),
    )
    .unwrap();
}

/// With the machine's own tools.
fn earnest(mut command: Command) -> Output {
    run(command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"))
}

#[test]
fn cmake_takes_every_option_and_the_engine_runs_here() {
    let home = workshop();
    real(&home);
    let output = earnest(fix(&home, &[]));
    expect(&output, 0, "healed", &["version 9", "native"]);
    assert!(!output.err().contains("does not take"), "{}", output.err());
    let program = kept(&home, &engine::cpu().id).join("llama-completion");
    let direct = run(home.command(&program).arg("--version"));
    assert_eq!((direct.code, direct.err().contains("version: 9")), (0, true));
    // stripped: the linker left no symbol table (section name .symtab)
    let bytes = fs::read(&program).unwrap();
    assert!(!bytes.windows(7).any(|w| w == b".symtab"), "{} bytes", bytes.len());
    // generated files name the tree's from their own place, and a second run compiles none of them again
    let unity =
        fs::read_to_string(home.path("llama.cpp/build/CMakeFiles/llama.dir/Unity/unity_0_cxx.cxx")).unwrap();
    assert!(
        unity.contains("#include \"../../../../src/more.cpp\"") && !unity.contains("/llama.cpp/src"),
        "{unity}"
    );
    let log = || fs::read_to_string(home.path(".selfheal/engine/build.log")).unwrap();
    assert!(log().contains("Unity/unity_0_cxx.cxx.o"), "{}", log());
    expect(&earnest(fix(&home, &["--force"])), 0, "healed", &["version 9"]);
    assert!(!log().contains("Building"), "{}", log());
    // a tree that was moved: its cache names the old place and would break the build
    fs::rename(home.path("llama.cpp"), home.path("moved")).unwrap();
    let mut moved = fix(&home, &["--force"]);
    moved.env("SELFHEAL_LLAMA_DIR", home.path("moved"));
    expect(&earnest(moved), 0, "healed", &["was made for another directory", "version 9"]);
}

#[test]
fn cmake_ends_0_for_a_name_that_nothing_declares_and_it_is_noticed() {
    let home = workshop();
    real(&home);
    let file = home.path("llama.cpp/ggml/CMakeLists.txt");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("option(GGML_NATIVE \"x\" ON)", "set(GGML_NATIVE ON)")).unwrap();
    expect(&earnest(fix(&home, &[])), 4, "bad", &["does not take -DGGML_NATIVE=ON"]);
}

#[test]
fn a_file_that_does_not_compile_is_named() {
    let home = workshop();
    real(&home);
    home.file("llama.cpp/src/program.c", "int main(void) { return nonsense; }\n");
    let output = earnest(fix(&home, &["--jobs", "1"]));
    expect(&output, 4, "failed", &["compiling failed", "nonsense", "hint: less"]);
}
