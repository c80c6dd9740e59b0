//! Calls of `model-budget` in a private home with the shipped manifest and an engine that is only there.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unreachable_pub, reason = "a module of two test programs, exported by none")]
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

use std::fs;
use std::process::Command;

use crate::private_home::{Home, Output, run};

/// A home and the moment that its calls take for now.
pub struct Calls {
    pub home: Home,
}

impl Calls {
    pub fn new() -> Self {
        let calls = Self { home: Home::new() };
        calls.build("one");
        let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifest.json");
        calls.home.file("manifest.json", fs::read_to_string(shipped).unwrap());
        calls
    }

    /// Puts another build of the engine in its place.
    pub fn build(&self, text: &str) {
        self.home.script("llama.cpp/build/bin/llama-completion", text);
    }

    /// `model-budget` with this line in this mode.
    pub fn command(&self, mode: &str, line: &[&str]) -> Command {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_model-budget"));
        command.args(line).env("SELFHEAL_MODE", mode).env("SELFHEAL_TEST_CLOCK", "1796000399:1:b");
        command.env("SELFHEAL_MANIFEST", self.home.path("manifest.json"));
        command
    }

    /// Runs it in fix mode.
    pub fn fix(&self, line: &[&str]) -> Output {
        run(&mut self.command("fix", line))
    }

    /// Runs it in check mode.
    pub fn check(&self, line: &[&str]) -> Output {
        run(&mut self.command("check", line))
    }

    /// The columns of `show ROLE`.
    pub fn show(&self, role: &str) -> Vec<String> {
        let output = self.check(&["show", role]);
        assert_eq!((output.code, output.out().lines().count()), (0, 1), "{}", output.err());
        output.out().trim_end_matches('\n').split('\t').map(str::to_owned).collect()
    }

    /// The state as it is on the disk.
    pub fn state(&self) -> serde_json::Value {
        let text = fs::read(self.home.path(".selfheal/state/state.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    /// The events of selfheal.log, without their time.
    pub fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.home.path(".selfheal/selfheal.log")).unwrap_or_default();
        text.lines().filter_map(|l| l.split_once(' ')).map(|(_, event)| event.to_owned()).collect()
    }
}
