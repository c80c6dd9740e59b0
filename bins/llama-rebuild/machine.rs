//! What the machine offers: git, cmake, a compiler, a compiler cache, cores and free memory.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use child::{Cause, Outcome, Run, Sink};
use contract::{State, home};

use crate::halt::Halt;

/// Peak memory of one compiler process on the largest source file is 662 MB (gcc 12).
const BYTES_PER_JOB: u64 = 700 << 20;

/// Variables that would point git, make or the compiler somewhere else than the tree at hand, or change how it
/// is compiled behind the options that are recorded.
const STRAY: [&str; 26] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
    "MAKEFILES",
    "DESTDIR",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "ASMFLAGS",
    "LDFLAGS",
    "CMAKE_BUILD_PARALLEL_LEVEL",
    "CMAKE_BUILD_TYPE",
    "CMAKE_TOOLCHAIN_FILE",
    "CMAKE_C_COMPILER_LAUNCHER",
    "CMAKE_CXX_COMPILER_LAUNCHER",
    "NINJA_STATUS",
    "TAR_OPTIONS",
    "LC_CTYPE",
    "LC_MESSAGES",
];

/// A command that asks nothing, speaks English and takes nothing stray from the caller. Every variable of the
/// language is fixed, because ccache has each of them in its key.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Run {
    let run = Run::new(program.as_ref()).quiet_env().env("LC_ALL", "C").env("LANG", "C.UTF-8");
    STRAY.into_iter().fold(run, Run::env_remove)
}

/// Runs a command to its end. A signal that this process received meanwhile ends the whole rebuild: the command
/// that was cut has told nothing.
pub(crate) fn run(run: Run) -> Result<Outcome, Halt> {
    let outcome = run.run();
    match outcome.cause {
        Cause::Interrupted(signal) => Err(stopped(signal)),
        _ => Ok(outcome),
    }
}

/// The verdict when a signal ends the rebuild.
pub(crate) fn stopped(signal: i32) -> Halt {
    Halt::new(State::Failed, format!("stopped by signal {signal}")).hint("run it again: what is done is kept")
}

/// git, which runs no hook and no file-system monitor of a repository.
pub(crate) fn git() -> Result<Run, Halt> {
    let git = require("git", "git")?;
    Ok(command(git).args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]))
}

/// git in a tree; a repository around the tree is not looked for.
pub(crate) fn git_in(tree: &Path) -> Result<Run, Halt> {
    Ok(git()?.env("GIT_CEILING_DIRECTORIES", ceiling(tree)).current_dir(tree))
}

/// The directory above a tree, where git's search for a repository ends.
pub(crate) fn ceiling(tree: &Path) -> PathBuf {
    let real = tree.canonicalize().unwrap_or_else(|_| tree.to_owned());
    real.parent().map_or_else(|| real.clone(), Path::to_path_buf)
}

/// A program that must be there; what is missing is named with the line that installs it.
pub(crate) fn require(program: &str, package: &str) -> Result<PathBuf, Halt> {
    home::find_on_path(OsStr::new(program)).ok_or_else(|| missing(program, package))
}

fn missing(what: &str, package: &str) -> Halt {
    Halt::new(State::Missing, format!("{what} is not installed")).hint(install_line(package))
}

/// How this machine installs a package.
fn install_line(package: &str) -> String {
    const MANAGERS: [(&str, &str); 5] = [
        ("apt-get", "apt-get install -y --no-install-recommends"),
        ("dnf", "dnf install -y"),
        ("apk", "apk add"),
        ("pacman", "pacman -S --noconfirm"),
        ("zypper", "zypper --non-interactive install"),
    ];
    let found = MANAGERS.iter().find(|(program, _)| home::find_on_path(OsStr::new(program)).is_some());
    found.map_or_else(|| format!("install {package}"), |(_, line)| format!("{line} {package}"))
}

/// What compiling needs.
pub(crate) struct Toolchain {
    /// cmake.
    pub(crate) cmake: PathBuf,
    /// Whether only ninja is there and no make.
    pub(crate) ninja: bool,
}

/// Finds cmake, compilers and make, or names the first that is missing. Any of the names cmake looks for will do.
pub(crate) fn toolchain() -> Result<Toolchain, Halt> {
    let any = |names: &[&str]| names.iter().any(|n| home::find_on_path(OsStr::new(n)).is_some());
    let cmake = require("cmake", "cmake")?;
    if !any(&["c++", "g++", "clang++", "icpx"]) {
        return Err(missing("a C++ compiler", "g++"));
    }
    if !any(&["cc", "gcc", "clang", "icx"]) {
        return Err(missing("a C compiler", "gcc"));
    }
    let make = any(&["make", "gmake"]);
    if !make && !any(&["ninja"]) {
        return Err(missing("make", "make"));
    }
    Ok(Toolchain { cmake, ninja: !make })
}

/// The first line that `PROGRAM --version` says; `None` when it does not work.
pub(crate) fn version_of(program: &Path) -> Result<Option<String>, Halt> {
    let asked = command(program).arg("--version").limit(Duration::from_secs(20));
    let outcome = run(asked.stdout(Sink::Head(4 << 10)).stderr(Sink::Null))?;
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let line = text.lines().next().unwrap_or_default().trim();
    Ok((outcome.success() && !line.is_empty()).then(|| line.to_owned()))
}

/// Whether a compiler takes flags: it compiles an empty file with them.
pub(crate) fn accepts(compiler: &Path, flags: &[&str]) -> Result<bool, Halt> {
    let asked = command(compiler).args(flags).args(["-x", "c", "-fsyntax-only", "/dev/null"]);
    let asked = asked.stdout(Sink::Null).stderr(Sink::Null).limit(Duration::from_secs(20));
    Ok(run(asked)?.success())
}

/// A compiler cache that works, ccache first as the source tree itself prefers it. An emptied program would make
/// every compilation an empty success, so it must say its name.
pub(crate) fn compiler_cache() -> Result<Option<&'static str>, Halt> {
    for name in ["ccache", "sccache"] {
        if let Some(program) = home::find_on_path(OsStr::new(name))
            && version_of(&program)?.is_some_and(|line| line.starts_with(name))
        {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// How many compilers to run at once: cores by affinity and quota, and memory.
pub(crate) fn jobs() -> usize {
    let by_memory = free_memory().map_or(u64::MAX, |free| free / BYTES_PER_JOB);
    engine::threads::available().min(usize::try_from(by_memory).unwrap_or(usize::MAX)).max(1)
}

/// Bytes that can still be used: of the machine, and of the control group where one sets a limit.
fn free_memory() -> Option<u64> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| {
        let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let group = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
        let (root, limit, usage, reclaimable) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "),
            "memory" => (
                "/sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_inactive_file ",
            ),
            _ => return None,
        };
        let root = Path::new(root);
        // inside a container the path is the host's, and the group's own files are at the root
        [root.join(path), root.to_owned()].iter().find_map(|dir| {
            let number = |name: &str| read(&dir.join(name))?.trim().parse::<u64>().ok();
            let (limit, usage) = (number(limit)?, number(usage)?);
            let stat = read(&dir.join("memory.stat")).unwrap_or_default();
            let cached = stat.lines().find_map(|l| l.strip_prefix(reclaimable)?.trim().parse::<u64>().ok());
            Some(limit.saturating_sub(usage.saturating_sub(cached.unwrap_or(0))))
        })
    });
    group.chain(machine).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_bounded_by_cores_and_memory() {
        let free = free_memory().unwrap();
        assert!(free > 0 && free < 1 << 50, "{free}");
        assert!((1..=engine::threads::available()).contains(&jobs()));
    }
}
