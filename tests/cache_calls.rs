//! Calls of `prompt-cache` in a private home, with a command that counts its runs.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unreachable_pub, reason = "a module of many test programs, exported by none")]
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::private_home::{Home, Output, run, run_with};

/// When a test begins.
pub const START: u64 = 1_796_000_000;

/// A key of 64 hexadecimal digits.
pub fn key(n: usize) -> String {
    format!("{n:064x}")
}

/// A home and the moment that its calls take for now.
pub struct Calls {
    pub home: Home,
    pub now: u64,
}

impl Calls {
    pub fn new() -> Self {
        Self { home: Home::new(), now: START }
    }

    /// `prompt-cache` with this line in this mode.
    pub fn command(&self, mode: &str, line: &[&str]) -> Command {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_prompt-cache"));
        command.args(line).env("SELFHEAL_MODE", mode);
        command.env("SELFHEAL_TEST_CLOCK", format!("{}:1:b", self.now));
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

    /// `-k KEY -- sh -c BODY` in fix mode; each run of the body is counted.
    pub fn ask(&self, key: &str, body: &str) -> Output {
        let counted = format!("echo run >>\"$HOME/runs\"\n{body}");
        self.fix(&["-k", key, "--", "sh", "-c", &counted])
    }

    /// Keeps bytes under a key.
    pub fn put(&self, key: &str, body: &[u8]) -> Output {
        run_with(&mut self.command("fix", &["--put", key]), body, Duration::from_secs(60))
    }

    /// How often a command was run.
    pub fn runs(&self) -> usize {
        fs::read_to_string(self.home.path("runs")).unwrap_or_default().lines().count()
    }

    /// A file of the cache.
    pub fn file(&self, name: &str) -> PathBuf {
        self.home.path(".selfheal/cache").join(name)
    }

    /// The keys that are kept, in order.
    pub fn kept(&self) -> Vec<String> {
        let entries = fs::read_dir(self.home.path(".selfheal/cache")).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
        names.retain(|name| name.len() == 64);
        names.sort();
        names
    }

    /// A figure of `stats`; seconds in milliseconds.
    pub fn stat(&self, name: &str) -> u64 {
        let output = self.check(&["stats"]);
        let row = output.out().lines().find_map(|l| l.strip_prefix(&format!("{name}\t")).map(str::to_owned));
        row.unwrap_or_else(|| panic!("{name}: {}", output.out())).replace('.', "").parse().unwrap()
    }
}

/// Polls until something is so, at most a minute.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
