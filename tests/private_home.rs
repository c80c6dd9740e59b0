//! A throwaway home, and real programs run in it with nothing of the caller's environment and a bound.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unreachable_pub, reason = "a module of many test programs, exported by none")]
#![allow(clippy::unnecessary_debug_formatting, reason = "a census must tell names apart that look alike")]
#![allow(clippy::disallowed_methods, reason = "tests start programs and lay out files themselves")]

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Copies a program by another process: a descriptor that this one has open for writing goes along into what other threads
/// start meanwhile, and until they have begun the copy is "Text file busy".
pub fn copy_program(from: &str, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}

/// A private `HOME` with nothing in it, removed at the end.
pub struct Home {
    pub dir: PathBuf,
}

/// What a finished program left.
#[derive(Debug)]
pub struct Output {
    /// The exit status as a shell would give it: 128 + N after signal N.
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub wall: Duration,
}

impl Output {
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Field `n` (1 based) of the first verdict line.
    pub fn field(&self, n: usize) -> String {
        self.out().lines().next().and_then(|l| l.split('\t').nth(n - 1)).unwrap_or("").to_owned()
    }
}

impl Home {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("selfheal-test-{}-{n}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Self { dir: dir.canonicalize().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Writes a file (parents made) and returns its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Writes an executable `/bin/sh` script and returns its path.
    pub fn script(&self, name: &str, body: &str) -> PathBuf {
        let path = self.file(name, format!("#!/bin/sh\n{body}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A command with an environment of `HOME` and `PATH` alone, in this home, stdin at its end.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", &self.dir)
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LC_ALL", "C")
            .current_dir(&self.dir)
            .stdin(Stdio::null());
        command
    }

    /// Every file below this home with its size, mode and mtime: equal before and after means nothing was written.
    pub fn census(&self) -> Vec<String> {
        fn walk(dir: &Path, out: &mut Vec<String>) {
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                let meta = entry.path().symlink_metadata().unwrap();
                let mode = meta.permissions().mode();
                out.push(format!(
                    "{:?} {} {mode:o} {:?}",
                    entry.path(),
                    meta.len(),
                    meta.modified().unwrap()
                ));
                if meta.is_dir() {
                    walk(&entry.path(), out);
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.dir, &mut out);
        out.sort();
        out
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if fs::remove_dir_all(&self.dir).is_err() {
            // A test may have taken its own rights away.
            unlock(&self.dir);
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

fn unlock(dir: &Path) {
    let _ = fs::set_permissions(dir, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            unlock(&entry.path());
        }
    }
}

/// Runs to the end, at most 60 s; a program that hangs fails the test and is killed.
pub fn run(command: &mut Command) -> Output {
    run_with(command, b"", Duration::from_secs(60))
}

/// Runs with bytes on standard input (when not empty) and a bound.
pub fn run_with(command: &mut Command, input: &[u8], bound: Duration) -> Output {
    if !input.is_empty() {
        command.stdin(Stdio::piped());
    }
    let start = Instant::now();
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let feed = child.stdin.take().map(|mut pipe| {
        let input = input.to_vec();
        std::thread::spawn(move || drop(pipe.write_all(&input)))
    });
    let out = drain(child.stdout.take().unwrap());
    let err = drain(child.stderr.take().unwrap());
    let status = wait(&mut child, start + bound).unwrap_or_else(|| {
        let _ = child.kill();
        panic!("hung for more than {bound:?}: {command:?}");
    });
    let wall = start.elapsed();
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    // Whoever still holds the streams of a program that has ended was left behind by it.
    while !(out.is_finished() && err.is_finished()) {
        assert!(
            start.elapsed() < wall + Duration::from_secs(20),
            "left behind, holding the output: {command:?}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    if let Some(feed) = feed {
        let _ = feed.join();
    }
    Output { code, stdout: out.join().unwrap(), stderr: err.join().unwrap(), wall }
}

fn drain(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

/// Polls a child until `end`.
pub fn wait(child: &mut Child, end: Instant) -> Option<std::process::ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if Instant::now() > end {
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until a file is there.
pub fn appears(path: &Path) {
    let end = Instant::now() + Duration::from_secs(20);
    while !path.exists() {
        assert!(Instant::now() < end, "{} never appeared", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process whose command line contains `mark` is alive (zombies do not count).
pub fn alive(mark: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let cmdline = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&cmdline).replace('\0', " ");
        text.contains(mark) && entry.file_name() != *std::process::id().to_string()
    })
}
