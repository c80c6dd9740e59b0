//! Whether one program of an engine works: what the file is, and what `--version` does under a bound.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use child::{Cause, NotStarted, Run, Sink};
use contract::{State, home, message};

use crate::cpu::cpu;
use crate::stamp::Stamp;

/// A healthy engine says its version in milliseconds; ten seconds is a machine that thrashes.
const BOUND: Duration = Duration::from_secs(10);

/// What is so of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Health {
    /// `--version` ended 0 and printed its version line.
    Healthy {
        /// What stands behind `version: `.
        version: String,
    },
    /// No such file.
    Missing,
    /// A file of 0 bytes: a shell would run it as an empty script that ends 0.
    Empty,
    /// Another size than the stamp records.
    Resized {
        /// Bytes it has.
        have: u64,
        /// Bytes it was built with.
        want: u64,
    },
    /// No x bit, or a file the kernel refuses to start.
    NotExecutable,
    /// The kernel cannot start it: the cause.
    NotRunnable(String),
    /// The loader does not find a shared library: its name.
    MissingLibrary(String),
    /// SIGILL: it uses an instruction that this CPU does not have.
    IllegalInstruction,
    /// The stamp names another CPU; it was not run.
    OtherCpu {
        /// The [`crate::Cpu::id`] it was built for.
        built_for: String,
    },
    /// Ended by a signal.
    Signalled(i32),
    /// Did not end within 10 s.
    Expired,
    /// Ended 0 without a version line.
    NoVersion,
    /// Ended with another status.
    Status(u8),
    /// Not known: this process received the signal while it looked.
    Interrupted(i32),
}

impl Health {
    /// Whether it works.
    pub fn is_healthy(&self) -> bool {
        matches!(self, Self::Healthy { .. })
    }

    /// The cause in words for a person.
    pub fn words(&self) -> String {
        match self {
            Self::Healthy { version } => format!("version {version}"),
            Self::Missing => "missing".into(),
            Self::Empty => "empty, 0 bytes".into(),
            Self::Resized { have, want } if have < want => format!("truncated: {have} of {want} bytes"),
            Self::Resized { have, want } => format!("other content: {have} bytes instead of {want}"),
            Self::NotExecutable => "not executable".into(),
            Self::NotRunnable(cause) => format!("cannot be run: {cause}"),
            Self::MissingLibrary(library) => format!("missing library {library} (127)"),
            Self::IllegalInstruction => "illegal instruction - built for another CPU (132)".into(),
            Self::OtherCpu { built_for } => {
                format!("built for another CPU ({built_for}, this one is {})", cpu().id)
            }
            Self::Signalled(signal) => format!("died of signal {signal} ({})", 128 + signal),
            Self::Expired => "did not say its version within 10 s".into(),
            Self::NoVersion => "ended 0 without a version line".into(),
            Self::Status(status) => format!("--version ended with {status}"),
            Self::Interrupted(signal) => format!("not checked: stopped by signal {signal}"),
        }
    }

    /// The verdict's state.
    pub fn state(&self) -> State {
        match self {
            Self::Healthy { .. } => State::Ok,
            Self::Missing | Self::MissingLibrary(_) => State::Missing,
            Self::Empty => State::Short,
            Self::Resized { have, want } if have < want => State::Short,
            Self::NotExecutable => State::Stripped,
            Self::IllegalInstruction | Self::OtherCpu { .. } => State::Bad,
            Self::Expired => State::Failed,
            Self::Interrupted(_) => State::Unknown,
            Self::Resized { .. }
            | Self::NotRunnable(_)
            | Self::Signalled(_)
            | Self::NoVersion
            | Self::Status(_) => State::Corrupt,
        }
    }
}

/// Looks at a program and runs it with `--version`, 10 s at most, standard input at its end. With a stamp, its
/// CPU and the program's size are compared first, and foreign code is not run at all.
///
/// `llama-simple` and `llama-simple-chat` know no `--version`: they end 1 with their usage, and that counts.
pub fn health(program: &Path, stamp: Option<&Stamp>) -> Health {
    let Ok(meta) = program.metadata() else { return Health::Missing };
    if !meta.is_file() {
        return Health::NotRunnable("it is not a file".into());
    }
    if meta.len() == 0 {
        return Health::Empty;
    }
    if let Some(stamp) = stamp {
        let cpu = cpu();
        let mine = if stamp.portable { cpu.portable_id() } else { cpu.id };
        if stamp.cpu != mine {
            return Health::OtherCpu { built_for: stamp.cpu.clone() };
        }
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        if let Some(record) = stamp.program(&name).filter(|r| r.bytes != meta.len()) {
            return Health::Resized { have: meta.len(), want: record.bytes };
        }
    }
    if meta.permissions().mode() & 0o111 == 0 {
        return Health::NotExecutable;
    }
    if let Some(why) = no_program(program) {
        return Health::NotRunnable(why.into());
    }
    run(program)
}

/// Why a file is neither a program of this kind of machine nor a script. Whoever starts such a file hands it to a
/// shell, which would run garbage.
fn no_program(path: &Path) -> Option<&'static str> {
    // ELF header: magic, then class and byte order at 4, machine at 18 (System V ABI, chapter 4)
    const HEADER: usize = 20;
    let head = |path: &Path| {
        let mut head = Vec::new();
        let (file, _) = files::open::regular(path).ok()?;
        file.take(HEADER as u64).read_to_end(&mut head).ok()?;
        Some(head)
    };
    // one that may be run and not read is left to the kernel
    let theirs = head(path)?;
    if theirs.starts_with(b"#!") {
        return None;
    }
    if !theirs.starts_with(b"\x7fELF") {
        return Some("it is neither a program nor a script");
    }
    if theirs.len() < HEADER {
        return Some("it is truncated");
    }
    let ours = head(Path::new("/proc/self/exe")).filter(|h| h.len() == HEADER)?;
    let same = theirs[4..6] == ours[4..6] && theirs[18..20] == ours[18..20];
    (!same).then_some("it was built for another kind of machine")
}

/// A run of one of the engine's programs without the caller's variables that it reads: each would change the
/// answer, the log or the place of files, and a bad one ends even `--version` and `--help` with 1.
pub fn unswayed(program: &Path) -> Run {
    let names = ["LLAMA_", "GGML_", "HF_", "GOMP_"].into_iter().flat_map(home::names_with_prefix);
    names.fold(Run::new(program), Run::env_remove)
}

fn run(program: &Path) -> Health {
    let simple = program.file_name().is_some_and(|n| n.to_string_lossy().starts_with("llama-simple"));
    let outcome = unswayed(program)
        .arg("--version")
        .stdout(Sink::Head(64 << 10))
        .stderr(Sink::Head(64 << 10))
        .limit(BOUND)
        .grace(Duration::from_secs(1))
        .run();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&outcome.stdout), text(&outcome.stderr));
    match outcome.cause {
        Cause::Exited(0) => version_line(&err)
            .or_else(|| version_line(&out))
            .map_or(Health::NoVersion, |version| Health::Healthy { version }),
        Cause::Exited(1) if simple && out.contains("usage") => {
            Health::Healthy { version: "not told by this program".into() }
        }
        Cause::Exited(127) => missing_library(&err).map_or(Health::Status(127), Health::MissingLibrary),
        // A wrapper script hands the status of its child on.
        Cause::Exited(status @ 129..=192) => signalled(i32::from(status) - 128),
        Cause::Exited(status) => Health::Status(status),
        Cause::Signalled(signal) => signalled(signal),
        Cause::Interrupted(signal) => Health::Interrupted(signal),
        Cause::Expired | Cause::Idle => Health::Expired,
        Cause::OutputCap => Health::NoVersion,
        Cause::NotStarted(NotStarted::NotFound) => {
            Health::NotRunnable("its interpreter or loader is missing".into())
        }
        Cause::NotStarted(NotStarted::NotRunnable(cause)) => Health::NotRunnable(message::cause_of(&cause)),
    }
}

fn signalled(signal: i32) -> Health {
    const SIGILL: i32 = 4;
    if signal == SIGILL { Health::IllegalInstruction } else { Health::Signalled(signal) }
}

fn version_line(text: &str) -> Option<String> {
    let line = text.lines().find_map(|l| l.strip_prefix("version: "))?;
    Some(message::one_line(line.trim())).filter(|v| !v.is_empty())
}

/// The library that glibc's or musl's loader names.
fn missing_library(text: &str) -> Option<String> {
    let rest = text.lines().find_map(|l| {
        l.split_once("loading shared libraries: ")
            .or_else(|| l.split_once("loading shared library "))
            .map(|s| s.1)
    })?;
    let name = rest.split(':').next()?.trim();
    Some(message::one_line(name)).filter(|n| !n.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_words_name_the_library() {
        let glibc = "/x/llama-cli: error while loading shared libraries: libllama.so: cannot open shared object \
                     file: No such file or directory\n";
        let musl = "Error loading shared library libggml.so: No such file or directory (needed by ./a)\n";
        assert_eq!(missing_library(glibc).as_deref(), Some("libllama.so"));
        assert_eq!(missing_library(musl).as_deref(), Some("libggml.so"));
        assert_eq!(missing_library("sh: 1: exec: nothing: not found"), None);
    }

    #[test]
    fn only_a_line_that_begins_with_version_counts() {
        assert_eq!(
            version_line("ggml: loaded\nversion: 0.6.0-dev (build 0)\n").as_deref(),
            Some("0.6.0-dev (build 0)")
        );
        for none in ["", "version:", "version: \n", "the version: 3", "Version: 3"] {
            assert_eq!(version_line(none), None, "{none:?}");
        }
    }
}
