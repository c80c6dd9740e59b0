//! The compiler cache: where it lives, and why an object of another CPU can never come out of it.
//!
//! Both caches take `-march=native` for a word, whatever CPU it means. So ccache gets a directory for each CPU and
//! sccache, which may be shared by a fleet, the CPU's id in each key.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use child::Run;
use contract::Fix;
use files::atomic;

use crate::halt::{Halt, io};
use crate::machine;

/// A compiler cache in use.
pub(crate) struct Cache {
    /// `ccache` or `sccache`.
    pub(crate) name: &'static str,
    env: Vec<(&'static str, OsString)>,
}

/// Finds a working compiler cache and makes its directory: `<id>` in `keep`, else in `$SELFHEAL_HOME/engine/ccache`.
pub(crate) fn prepare(
    fix: &Fix,
    keep: Option<&Path>,
    id: &str,
    source: &Path,
) -> Result<Option<Cache>, Halt> {
    let Some(name) = machine::compiler_cache()? else { return Ok(None) };
    let base = match keep {
        Some(dir) => dir.to_owned(),
        None => engine::kept_dir()?.join("ccache"),
    };
    let dir = base.join(id);
    atomic::make_dir(fix, &dir).map_err(io("make", &dir))?;
    let env = if name == "ccache" { of_ccache(&dir, source) } else { of_sccache(&dir, id) };
    Ok(Some(Cache { name, env }))
}

fn of_ccache(dir: &Path, source: &Path) -> Vec<(&'static str, OsString)> {
    vec![
        ("CCACHE_DIR", dir.into()),
        // A whole build is 11 MB.
        ("CCACHE_MAXSIZE", "200M".into()),
        // Paths below the tree relative, the directory itself not in the key: hits after the tree moved.
        ("CCACHE_BASEDIR", source.into()),
        ("CCACHE_NOHASHDIR", "1".into()),
        // A restored image may give the compiler another time stamp, or another compiler the same.
        ("CCACHE_COMPILERCHECK", "content".into()),
    ]
}

fn of_sccache(dir: &Path, id: &str) -> Vec<(&'static str, OsString)> {
    // A server of our own, so that a running one with another directory is not used by mistake; it leaves by itself.
    let process = std::process::id();
    let port = 20_000 + process % 20_000;
    let socket: PathBuf = format!("/tmp/selfheal-sccache-{process}.sock").into();
    vec![
        ("SCCACHE_DIR", dir.into()),
        ("SCCACHE_CACHE_SIZE", "200M".into()),
        ("SCCACHE_C_CUSTOM_CACHE_BUSTER", id.into()),
        ("SCCACHE_SERVER_UDS", socket.into()),
        ("SCCACHE_SERVER_PORT", port.to_string().into()),
        ("SCCACHE_IDLE_TIMEOUT", "60".into()),
        ("SCCACHE_IGNORE_SERVER_IO_ERROR", "1".into()),
    ]
}

impl Cache {
    /// Gives a command the cache's environment. A server that the command starts may outlive it, to be ended
    /// by [`Cache::finish`].
    pub(crate) fn around(&self, run: Run) -> Run {
        let run = self.env.iter().fold(run, |run, (name, value)| run.env(name, value));
        run.leave(self.name == "sccache")
    }

    /// Ends a server in order: what it has not stored yet is stored.
    pub(crate) fn finish(&self) {
        if self.name == "sccache" {
            let run = machine::command(self.name).arg("--stop-server");
            let run = run.stdout(child::Sink::Null).stderr(child::Sink::Null);
            self.around(run).leave(false).run();
        }
    }
}
