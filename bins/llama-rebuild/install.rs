//! The new engine takes its place as a whole: copied, proven, stamped, then renamed.

use std::fs::Permissions;
use std::io::{self as stdio, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use contract::clock;
use contract::{Fix, State};
use engine::stamp::Program;
use engine::{Health, Stamp};
use files::digest::{Hasher, Sha};
use files::{atomic, tree as renames};

use crate::configure::Build;
use crate::halt::{Halt, io, say};
use crate::machine;

/// Installs the programs of a build as `$SELFHEAL_HOME/engine/<cpu>/` and returns the version they say.
pub(crate) fn install(fix: &Fix, build: &Build) -> Result<String, Halt> {
    let kept = engine::kept_dir()?;
    let id = &build.stamp.cpu;
    let temporary = kept.join(format!(".{id}.{}.tmp", std::process::id()));
    atomic::make_dir(fix, &temporary).map_err(io("make", &temporary))?;
    let result = fill(fix, build, &temporary).and_then(|version| {
        swap(fix, &temporary, &kept.join(id))?;
        Ok(version)
    });
    if result.is_err() {
        let _ = renames::remove_own(fix, &temporary);
    }
    result
}

/// Copies and stamps the programs; none of them replaces anything before all of them work.
fn fill(fix: &Fix, build: &Build, temporary: &Path) -> Result<String, Halt> {
    let mut version = String::new();
    let mut stamp = Stamp { built: clock::utc(clock::now().wall), ..build.stamp.clone() };
    for (number, name) in build.targets.iter().enumerate() {
        let (from, to) = (build.dir.join("bin").join(name), temporary.join(name));
        let (sha256, bytes) = copy(fix, &from, &to).map_err(io("copy", &from))?;
        stamp.programs.push(Program { name: name.clone(), bytes, sha256 });
        match engine::health(&to, Some(&stamp)) {
            Health::Healthy { version: said } if number == 0 => version = said,
            Health::Healthy { .. } => {}
            Health::Interrupted(signal) => return Err(machine::stopped(signal)),
            // older ones know no --version, and nothing answers with it
            Health::Status(_) | Health::NoVersion if name == "llama-bench" => {}
            // Keeping it would only fail later, in the middle of an answer.
            health => {
                let words = format!("the new {name} does not work: {}", health.words());
                return Err(Halt::new(State::Bad, words).hint("llama-rebuild --portable --force"));
            }
        }
    }
    let path = temporary.join(engine::place::STAMP);
    atomic::write(fix, &path, &stamp.line(), 0o600).map_err(io("write", &path))?;
    Ok(version)
}

fn copy(fix: &Fix, from: &Path, to: &Path) -> stdio::Result<(Sha, u64)> {
    let mut source = std::fs::File::open(from)?;
    let mut pending = atomic::begin(fix, to)?;
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; 64 << 10];
    let mut count = 0;
    loop {
        let n = source.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        hasher.update(&buffer[..n]);
        pending.write_all(&buffer[..n])?;
        count += n as u64;
    }
    pending.commit(0o755)?;
    Ok((hasher.finish(), count))
}

/// Renames `new` to `place`. What was there is removed when all of it is ours, else moved aside.
fn swap(fix: &Fix, new: &Path, place: &Path) -> Result<(), Halt> {
    if place.symlink_metadata().is_ok() {
        if only_ours(place) {
            let name = place.file_name().unwrap_or_default().to_string_lossy();
            let old = place.with_file_name(format!(".{name}.old.{}.tmp", std::process::id()));
            renames::rename_new(place, &old).map_err(io("move", place))?;
            let renamed = renames::rename_new(new, place).map_err(io("move", new));
            let _ = renames::remove_own(fix, &old);
            return renamed;
        }
        let aside = atomic::move_aside(fix, place).map_err(io("move aside", place))?;
        say(&format!("the old engine is now {}", contract::message::quoted(aside.as_os_str())));
    }
    renames::rename_new(new, place).map_err(io("move", new))
}

/// Whether a directory holds nothing but what [`install`] puts there.
fn only_ours(dir: &Path) -> bool {
    let Ok(entries) = dir.read_dir() else { return false };
    entries.flatten().all(|entry| {
        let name = entry.file_name();
        let ours = engine::PROGRAMS.iter().chain(&["llama-cli", engine::place::STAMP]);
        ours.into_iter().any(|n| name == *n) && entry.file_type().is_ok_and(|t| t.is_file())
    })
}

/// Gives programs their x bit back.
pub(crate) fn unstrip(_fix: &Fix, programs: &[PathBuf]) -> Result<(), Halt> {
    for path in programs {
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).map_err(io("change", path))?;
    }
    Ok(())
}

/// Takes a native engine of this CPU aside after a portable one was built: the native one is looked for first.
pub(crate) fn step_aside(fix: &Fix) -> Result<(), Halt> {
    let native = engine::kept_dir()?.join(engine::cpu().id);
    if native.symlink_metadata().is_ok() {
        let aside = atomic::move_aside(fix, &native).map_err(io("move aside", &native))?;
        say(&format!("the native engine is now {}", contract::message::quoted(aside.as_os_str())));
    }
    Ok(())
}

/// Removes what earlier runs that were killed left in a directory: our temporary directories, `.NAME.PID.tmp`,
/// whose names begin with `prefix` and whose process is gone.
pub(crate) fn sweep(fix: &Fix, dir: &Path, prefix: &str) {
    for entry in dir.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let pid = name.strip_prefix(prefix).and_then(|n| n.strip_suffix(".tmp")?.rsplit('.').next());
        let Some(pid) = pid.and_then(|p| p.parse::<u32>().ok()) else { continue };
        let gone = !Path::new("/proc").join(pid.to_string()).exists();
        if gone && entry.file_type().is_ok_and(|t| t.is_dir()) {
            let _ = renames::remove_own(fix, &entry.path());
        }
    }
}
