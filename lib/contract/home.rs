//! The environment: the only place that reads it, and where the toolkit keeps things.
#![expect(clippy::disallowed_methods, reason = "this is the one home of environment reads")]

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::exit;
use crate::message::{Error, quoted};

/// A variable that is set and not empty.
fn set(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|v| !v.is_empty())
}

/// The user's home; an error that says so when `HOME` is not an absolute path.
pub fn user_home() -> Result<PathBuf, Error> {
    set("HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute())
        .ok_or_else(|| Error::new(exit::IO, "HOME is not set to an absolute path").hint("export HOME"))
}

/// `SELFHEAL_HOME`, else `~/.selfheal`.
pub fn selfheal_home() -> Result<PathBuf, Error> {
    dir("SELFHEAL_HOME", || user_home().map(|h| h.join(".selfheal")))
}

/// `SELFHEAL_MODELS_DIR`, else `models` in [`selfheal_home`].
pub fn models_dir() -> Result<PathBuf, Error> {
    dir("SELFHEAL_MODELS_DIR", || selfheal_home().map(|h| h.join("models")))
}

/// `SELFHEAL_LLAMA_DIR`, else `~/llama.cpp`.
pub fn llama_dir() -> Result<PathBuf, Error> {
    dir("SELFHEAL_LLAMA_DIR", || user_home().map(|h| h.join("llama.cpp")))
}

/// `SWR_HOME`, else `~/.swr`.
pub fn swr_home() -> Result<PathBuf, Error> {
    dir("SWR_HOME", || user_home().map(|h| h.join(".swr")))
}

/// `SWR_AS`: how `sh/swr` was called, where it is not on `PATH`.
pub(crate) fn swr_as() -> Option<OsString> {
    set("SWR_AS")
}

fn dir(name: &str, default: impl FnOnce() -> Result<PathBuf, Error>) -> Result<PathBuf, Error> {
    match set(name).map(PathBuf::from) {
        None => default().map_err(|error| error.hint(format!("export HOME, or set {name}"))),
        Some(path) if path.is_absolute() => Ok(path),
        Some(_) => Err(Error::usage(format!("{name} is not an absolute path"))),
    }
}

/// `SELFHEAL_MODE`, uninterpreted: see [`crate::mode`].
pub(crate) fn mode() -> Option<OsString> {
    set("SELFHEAL_MODE")
}

/// `SELFHEAL_TEST_CLOCK`, uninterpreted: see [`crate::clock`].
pub(crate) fn test_clock() -> Option<String> {
    set("SELFHEAL_TEST_CLOCK")?.into_string().ok()
}

/// Whether `SELFHEAL_DEEP_VERIFY=1` asks for hashes.
pub fn deep_verify() -> bool {
    set("SELFHEAL_DEEP_VERIFY").is_some_and(|v| v == "1")
}

/// Whether `SELFHEAL_LLAMA_ANY_REMOTE=1` approves a source tree of another remote.
pub fn any_remote() -> bool {
    set("SELFHEAL_LLAMA_ANY_REMOTE").is_some_and(|v| v == "1")
}

/// `HF_ENDPOINT`: the hub, or a server that stands for it.
pub fn hub_endpoint() -> Option<OsString> {
    set("HF_ENDPOINT")
}

/// `HF_TOKEN`. It is a secret: it goes into one header and nowhere else.
pub fn hub_token() -> Option<OsString> {
    set("HF_TOKEN")
}

/// `https_proxy`, for https alone.
pub fn https_proxy() -> Option<OsString> {
    either("https_proxy", "HTTPS_PROXY")
}

/// `all_proxy`, for every scheme without a variable of its own.
pub fn all_proxy() -> Option<OsString> {
    either("all_proxy", "ALL_PROXY")
}

/// `no_proxy`: what is reached directly all the same.
pub fn no_proxy() -> Option<OsString> {
    either("no_proxy", "NO_PROXY")
}

/// A variable that is written in both cases; the lower one wins, as curl has it.
fn either(lower: &str, upper: &str) -> Option<OsString> {
    set(lower).or_else(|| set(upper))
}

/// Certificate files and directories that the caller trusts, each with its variable's name: `SSL_CERT_FILE`,
/// `SSL_CERT_DIR` (a list like `PATH`), `CURL_CA_BUNDLE`, `REQUESTS_CA_BUNDLE`.
pub fn ca_places() -> Vec<(&'static str, PathBuf)> {
    let one = |name| set(name).map(|v| (name, PathBuf::from(v)));
    let mut places: Vec<_> =
        ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"].into_iter().filter_map(one).collect();
    if let Some(dirs) = set("SSL_CERT_DIR") {
        places.extend(env::split_paths(&dirs).filter(|d| d != Path::new("")).map(|d| ("SSL_CERT_DIR", d)));
    }
    places
}

/// Whether `SELFHEAL_TEST_HTTP=1` allows plain http, and any port, on the loopback interface: for tests.
pub fn test_http() -> bool {
    set("SELFHEAL_TEST_HTTP").is_some_and(|v| v == "1")
}

/// The directories of `PATH`; an empty member, which would mean the current directory, is left out.
pub fn path_dirs() -> Vec<PathBuf> {
    set("PATH").map(|p| env::split_paths(&p).filter(|d| d.is_absolute()).collect()).unwrap_or_default()
}

/// `PATH` as it stands, for a command that is handed on and finds its programs as execvp would.
pub fn path() -> Option<OsString> {
    env::var_os("PATH")
}

/// The whole environment, for a command that is handed on with some of it changed.
pub fn environment() -> Vec<(OsString, OsString)> {
    env::vars_os().collect()
}

/// The names of environment variables that begin with `prefix`.
pub fn names_with_prefix(prefix: &str) -> Vec<OsString> {
    env::vars_os().map(|(name, _)| name).filter(|n| n.as_bytes().starts_with(prefix.as_bytes())).collect()
}

/// Where `manifest.json` is: `SELFHEAL_MANIFEST`, else beside the toolkit's programs.
///
/// Beside means, from the directory of this program: `.`, `..`, `../share/selfheal`.
pub fn manifest() -> Result<PathBuf, Error> {
    if let Some(path) = set("SELFHEAL_MANIFEST").map(PathBuf::from) {
        return match path.metadata() {
            Err(cause) if matches!(cause.kind(), NotFound | NotADirectory) => {
                let what =
                    format!("SELFHEAL_MANIFEST names {}, which is not there", quoted(path.as_os_str()));
                Err(Error::new(exit::PROGRAM_MISSING, what)
                    .hint("unset it, or set it to a manifest.json of the toolkit"))
            }
            // Whatever else is wrong with it, who reads it will say.
            _ => Ok(path),
        };
    }
    let here = own_dir();
    let places = ["manifest.json", "../manifest.json", "../share/selfheal/manifest.json"];
    places.iter().filter_map(|p| here.as_ref().map(|d| d.join(p))).find(|p| p.is_file()).ok_or_else(|| {
        Error::new(exit::PROGRAM_MISSING, "manifest.json is not beside the toolkit's programs")
            .hint("set SELFHEAL_MANIFEST, or reinstall: make install")
    })
}

/// Whether the caller named a manifest, which is then not missed in silence.
pub fn manifest_is_named() -> bool {
    set("SELFHEAL_MANIFEST").is_some()
}

/// Finds a program: `SELFHEAL_BIN_DIR`, beside this program, `~/.shim`, `PATH`; a regular file with an x bit.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let mut dirs: Vec<PathBuf> = set("SELFHEAL_BIN_DIR").map(PathBuf::from).into_iter().collect();
    dirs.extend(own_dir());
    dirs.extend(user_home().ok().map(|h| h.join(".shim")));
    dirs.extend(path_dirs());
    dirs.into_iter().map(|d| d.join(name)).find(|p| is_executable(p))
}

/// Finds a program of the machine (git, cmake) on `PATH` alone.
pub fn find_on_path(name: &OsStr) -> Option<PathBuf> {
    path_dirs().into_iter().map(|d| d.join(name)).find(|p| is_executable(p))
}

/// A regular file (links followed) with any x bit.
pub fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

fn own_dir() -> Option<PathBuf> {
    env::current_exe().ok()?.parent().map(Path::to_path_buf)
}
