//! One home with breakers in it, called under an injected clock.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]
#![allow(clippy::disallowed_methods, reason = "tests start programs and lay out files themselves")]

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::private_home::{Home, Output, run, run_with};

/// The moment tests begin at; see [`Calls::at`].
pub const START: u64 = 1_796_000_000;

/// A home and the clock its breakers see.
pub struct Calls {
    pub home: Home,
    /// `WALL:MONO:BOOT`.
    pub clock: String,
    pub mode: &'static str,
}

impl Calls {
    /// Fix mode, at second 0 of one boot. `attempt STATUS [TEXT]` is a command that notes its run, prints and ends.
    pub fn new() -> Self {
        let home = Home::new();
        home.script("attempt", "echo run >>\"$HOME/runs\"\nprintf \"${2-}\"\nexit \"$1\"");
        let mut calls = Self { home, clock: String::new(), mode: "fix" };
        calls.at(0);
        calls
    }

    /// Goes to so many seconds after the start, in the same boot.
    pub fn at(&mut self, seconds: u64) {
        self.clock = format!("{}:{}:boot-a", START + seconds, 500 + seconds);
    }

    /// A command in this home with mode and clock set.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.home.command(program);
        command.env("SELFHEAL_MODE", self.mode).env("SELFHEAL_TEST_CLOCK", &self.clock);
        command
    }

    /// The breaker, ready to be run.
    pub fn breaker(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_breaker"));
        command.args(args);
        command
    }

    pub fn call(&self, args: &[&str]) -> Output {
        run(&mut self.breaker(args))
    }

    /// The breaker as a filter of `input`.
    pub fn filter(&self, input: &str) -> Output {
        run_with(&mut self.breaker(&[]), input.as_bytes(), Duration::from_secs(60))
    }

    /// `breaker SUBJECT -- attempt STATUS`.
    pub fn attempt(&self, subject: &str, status: &str) -> Output {
        self.call(&[subject, "--", "./attempt", status])
    }

    /// `breaker --verdicts scout -- attempt STATUS TEXT`.
    pub fn verdicts(&self, status: &str, text: &str) -> Output {
        self.call(&["--verdicts", "scout", "--", "./attempt", status, text])
    }

    /// Opens a subject now.
    pub fn open(&self, subject: &str) {
        for _ in 0..3 {
            assert_eq!(self.attempt(subject, "1").code, 1);
        }
    }

    /// How often a command was really run.
    pub fn runs(&self) -> usize {
        fs::read_to_string(self.home.path("runs")).unwrap_or_default().lines().count()
    }

    /// The state word of `breaker status SUBJECT`.
    pub fn status(&self, subject: &str) -> String {
        self.call(&["status", subject]).field(1)
    }

    /// A file of the state directory.
    pub fn state(&self, name: &str) -> PathBuf {
        self.home.path(".selfheal/state/breaker").join(name)
    }

    /// Events of selfheal.log without their times.
    pub fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.home.path(".selfheal/selfheal.log")).unwrap_or_default();
        text.lines().map(|l| l.split_once(' ').unwrap().1.to_owned()).collect()
    }
}

/// Waits until `done`, at most a minute.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "waited a minute for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
