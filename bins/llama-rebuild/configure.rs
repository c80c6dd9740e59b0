//! cmake's first step: today's option names, a build directory that fits, and proof that both were taken.

use std::path::{Path, PathBuf};
use std::time::Duration;

use child::Run;
use contract::clock::{self, Deadline};
use contract::{Fix, State, home, message};
use engine::Stamp;
use files::atomic;

use crate::cache::Cache;
use crate::cmake_cache::CMakeCache;
use crate::halt::{Halt, io, say};
use crate::log::Log;
use crate::machine::{self, Toolchain};
use crate::source::Source;
use crate::tree::read_text;
use crate::unity;

/// Left unused on a CPU that has AMX: gcc 12 compiles AMX code that dies of SIGILL in the first prompt, because its
/// `_tile_loadconfig` declares 8 of the 64 bytes it reads.
const NO_AMX: [&str; 3] = ["-mno-amx-tile", "-mno-amx-int8", "-mno-amx-bf16"];

/// What an engine for any x86-64 of the last decade may use: SSE4.2, as in x86-64-v2. AVX would leave out every
/// Celeron, Pentium and Atom before 2021.
const PORTABLE_OFF: [&str; 7] =
    ["GGML_AVX", "GGML_AVX2", "GGML_AVX_VNNI", "GGML_AVX512", "GGML_BMI2", "GGML_FMA", "GGML_F16C"];

/// Compiler flags that must not stand in a portable build.
const TOO_NEW: [&str; 9] =
    [" -march=", " -mcpu=", "=native", " -mavx", " -mamx", " -mfma", " -mf16c", " -mbmi", " -mlzcnt"];

/// A build directory that cmake has configured.
pub(crate) struct Build {
    /// The directory.
    pub(crate) dir: PathBuf,
    /// What is recorded of it; its programs are still to come.
    pub(crate) stamp: Stamp,
    /// The targets to build, the first one answers.
    pub(crate) targets: Vec<String>,
}

/// Everything that building one source on this machine needs to know.
pub(crate) struct Recipe<'a> {
    /// The source.
    pub(crate) source: &'a Source,
    /// Its id and flags: of this CPU, or portable.
    pub(crate) id: String,
    /// Whether any CPU of the architecture must run it.
    pub(crate) portable: bool,
    /// What compiles it.
    pub(crate) tools: &'a Toolchain,
    /// The compiler cache, if any.
    pub(crate) cache: Option<&'a Cache>,
    /// Where output goes.
    pub(crate) log: &'a Log,
    /// When it must be over.
    pub(crate) deadline: Deadline,
}

impl Recipe<'_> {
    /// cmake for this source: no repository around the tree is read for its version.
    pub(crate) fn cmake(&self) -> Run {
        let run = machine::command(&self.tools.cmake)
            .env("GIT_CEILING_DIRECTORIES", machine::ceiling(&self.source.dir))
            .stdout(self.log.sink())
            .stderr(self.log.sink());
        match self.cache {
            Some(cache) => cache.around(run),
            None => run,
        }
    }

    /// Configures the build directory of the source and proves what came of it.
    pub(crate) fn configure(&self, fix: &Fix) -> Result<Build, Halt> {
        let dir = self.source.dir.join("build");
        let options = self.options()?;
        let mut stamp = Stamp {
            cpu: self.id.clone(),
            flags: if self.portable { Vec::new() } else { engine::cpu().flags },
            portable: self.portable,
            tree: self.source.tree.clone(),
            options: options.iter().map(Choice::argument).collect(),
            compiler: String::new(),
            built: clock::utc(clock::now().wall),
            programs: Vec::new(),
        };
        if let Some(why) = self.misfit(&dir)? {
            let aside = atomic::move_aside(fix, &dir).map_err(io("move aside", &dir))?;
            say(&format!("the build directory {why}; it is now {}", message::quoted(aside.as_os_str())));
        }
        atomic::make_dir(fix, &dir).map_err(io("make", &dir))?;
        // Before cmake: a build that is cut short is still known to be for this CPU.
        let stamp_path = dir.join(engine::place::STAMP);
        let before = Stamp::read(&stamp_path).map(|s| s.compiler).unwrap_or_default();
        stamp.compiler = before;
        atomic::write(fix, &stamp_path, &stamp.line(), 0o600).map_err(io("write", &stamp_path))?;
        say(&format!("configuring {}", message::quoted(self.source.dir.as_os_str())));
        let mut run = self.cmake().arg("-S").arg(&self.source.dir).arg("-B").arg(&dir);
        if self.tools.ninja && CMakeCache::read(&dir).is_empty() {
            run = run.args(["-G", "Ninja"]);
        }
        let generated = unity::Before::read(&dir);
        self.log.begin();
        let limit = self.deadline.left().min(Duration::from_secs(900));
        let outcome = run.args(options.iter().map(Choice::argument)).limit(limit).run();
        crate::compile::ended(&outcome, self.log, "configuring")?;
        let cache = CMakeCache::read(&dir);
        prove_options(&cache, &options)?;
        prove_flags(&dir, self.portable)?;
        generated.relocate(fix, &self.source.dir, &dir)?;
        stamp.compiler = compiler(&cache)?.unwrap_or_default();
        atomic::write(fix, &stamp_path, &stamp.line(), 0o600).map_err(io("write", &stamp_path))?;
        let targets = self.targets(&dir)?;
        Ok(Build { dir, stamp, targets })
    }

    /// Why an existing build directory cannot be used.
    fn misfit(&self, dir: &Path) -> Result<Option<String>, Halt> {
        if dir.symlink_metadata().is_err() {
            return Ok(None);
        }
        let Some(stamp) = Stamp::read(&dir.join(engine::place::STAMP)) else {
            return Ok(Some("was not made by llama-rebuild".into()));
        };
        if stamp.cpu != self.id {
            return Ok(Some(format!("was made for another CPU ({})", stamp.cpu)));
        }
        let cache = CMakeCache::read(dir);
        if cache.is_empty() {
            return Ok(None);
        }
        for (name, want) in
            [("CMAKE_HOME_DIRECTORY", self.source.dir.as_path()), ("CMAKE_CACHEFILE_DIR", dir)]
        {
            let is = cache.value(name).unwrap_or_default();
            if Path::new(is).canonicalize().ok() != want.canonicalize().ok() {
                return Ok(Some(format!("was made for another directory ({is})")));
            }
        }
        if compiler(&cache)?.is_none_or(|c| c != stamp.compiler) {
            return Ok(Some(format!("was made by another compiler ({})", stamp.compiler)));
        }
        let make = cache.value("CMAKE_MAKE_PROGRAM").unwrap_or_default();
        let gone = !home::is_executable(Path::new(make));
        Ok(gone.then(|| format!("was made for a make that is gone ({make})")))
    }

    /// The options, only names that this tree declares.
    fn options(&self) -> Result<Vec<Choice>, Halt> {
        let mut flags = String::new();
        if !self.portable && engine::cpu().has("amx_tile") {
            let compiler = ["cc", "gcc", "clang"].iter().find_map(|n| home::find_on_path(n.as_ref()));
            if let Some(compiler) = compiler
                && machine::accepts(&compiler, &NO_AMX)?
            {
                flags = NO_AMX.join(" ");
            }
        }
        let mut options = vec![
            Choice::of("CMAKE_BUILD_TYPE", "Release", true),
            Choice::typed("CMAKE_EXPORT_COMPILE_COMMANDS", ":BOOL", "ON"),
            Choice::of("CMAKE_C_FLAGS", &flags, true),
            Choice::of("CMAKE_CXX_FLAGS", &flags, true),
            // stripped by the linker: no second program is needed for it
            Choice::of("CMAKE_EXE_LINKER_FLAGS", "-s", true),
        ];
        let dir = &self.source.dir;
        let text = read_text(&dir.join("CMakeLists.txt")) + &read_text(&dir.join("ggml/CMakeLists.txt"));
        let on = |yes: bool| if yes { "ON" } else { "OFF" };
        let mut own = vec![
            Choice::of("BUILD_SHARED_LIBS", "OFF", true),
            Choice::of("GGML_NATIVE", on(!self.portable), true),
            Choice::of("GGML_CCACHE", on(self.cache.is_some()), false),
            Choice::of("LLAMA_BUILD_TESTS", "OFF", false),
            Choice::of("LLAMA_BUILD_SERVER", "OFF", false),
            Choice::of("LLAMA_OPENSSL", "OFF", false),
            Choice::of("LLAMA_CURL", "OFF", false),
            Choice::of("LLAMA_USE_PREBUILT_UI", "OFF", false),
        ];
        if self.portable && cfg!(target_arch = "x86_64") {
            own.push(Choice::of("GGML_SSE42", "ON", false));
            own.extend(PORTABLE_OFF.iter().map(|name| Choice::of(name, "OFF", false)));
        }
        own.retain(|o| o.required || declares(&text, o.name));
        options.append(&mut own);
        // An archive's tree has no repository to be asked; a checkout's commit is 40 digits and git tells it.
        let tree = &self.source.tree;
        let number = tree.strip_prefix('b').filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
        let commit = tree.len() < 40 && tree.bytes().all(|b| b.is_ascii_hexdigit());
        if (number.is_some() || commit) && text.contains("NOT DEFINED LLAMA_BUILD_NUMBER") {
            options.push(Choice::typed("LLAMA_BUILD_NUMBER", ":STRING", number.unwrap_or("0")));
            options.push(Choice::typed("LLAMA_BUILD_COMMIT", ":STRING", tree));
        }
        Ok(options)
    }

    /// The programs this tree can build. An unknown target would fail at once and build nothing.
    fn targets(&self, dir: &Path) -> Result<Vec<String>, Halt> {
        let asked = machine::command(&self.tools.cmake)
            .arg("--build")
            .arg(dir)
            .args(["--target", "help"])
            .stdout(child::Sink::Head(4 << 20))
            .stderr(child::Sink::Null)
            .limit(self.deadline.left().min(Duration::from_secs(120)));
        let outcome = machine::run(asked)?;
        let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
        let known: Vec<_> =
            text.split(|c: char| c.is_whitespace() || c == ':').filter(|w| w.starts_with("llama-")).collect();
        let mut targets: Vec<String> =
            engine::PROGRAMS.iter().filter(|p| known.contains(p)).map(|p| (*p).to_owned()).collect();
        if !known.contains(&"llama-completion") {
            if !known.contains(&"llama-cli") {
                let words = "the source tree builds neither llama-completion nor llama-cli";
                return Err(Halt::new(State::Bad, words));
            }
            targets.insert(0, "llama-cli".into());
        }
        Ok(targets)
    }
}

/// One option for cmake.
struct Choice {
    name: &'static str,
    value: String,
    /// Without it the engine would be another one.
    required: bool,
    /// The type to be told to cmake, `:BOOL`; empty where the tree declares it.
    kind: &'static str,
}

impl Choice {
    fn of(name: &'static str, value: &str, required: bool) -> Self {
        Self { name, value: value.into(), required, kind: "" }
    }

    /// A variable that the tree reads without declaring it: cmake is told its type.
    fn typed(name: &'static str, kind: &'static str, value: &str) -> Self {
        Self { name, value: value.into(), required: false, kind }
    }

    fn argument(&self) -> String {
        format!("-D{}{}={}", self.name, self.kind, self.value)
    }
}

/// Whether cmake text declares an option.
fn declares(text: &str, name: &str) -> bool {
    text.split("option(").skip(1).any(|rest| rest.split_whitespace().next() == Some(name))
}

fn prove_options(cache: &CMakeCache, options: &[Choice]) -> Result<(), Halt> {
    for option in options.iter().filter(|o| !cache.took(o.name, &o.value)) {
        let words = format!("the source tree does not take {}", option.argument());
        if option.required {
            return Err(Halt::new(State::Bad, words));
        }
        say(&words);
    }
    Ok(())
}

/// Looks at the commands that will compile: the option's name is no proof of what it does.
fn prove_flags(dir: &Path, portable: bool) -> Result<(), Halt> {
    use std::io::Read as _;
    let path = dir.join("compile_commands.json");
    let mut text = Vec::new();
    if let Ok((file, _)) = files::open::regular(&path) {
        file.take(32 << 20).read_to_end(&mut text).map_err(io("read", &path))?;
    }
    if !cfg!(target_arch = "x86_64") {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let native = text.contains(" -march=native");
    let too_new = TOO_NEW.iter().find(|flag| text.contains(**flag));
    match (portable, too_new) {
        (true, Some(flag)) => {
            let words = format!("a portable build would be compiled with{flag}, which not every CPU has");
            Err(Halt::new(State::Bad, words))
        }
        (false, _) if !native => {
            Err(Halt::new(State::Bad, "a native build would be compiled without -march=native"))
        }
        _ => Ok(()),
    }
}

/// The compiler that a build directory uses, as it names itself now.
fn compiler(cache: &CMakeCache) -> Result<Option<String>, Halt> {
    cache.value("CMAKE_CXX_COMPILER").map_or(Ok(None), |path| machine::version_of(Path::new(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deprecated_name_is_not_a_declared_option() {
        let text = "option(GGML_NATIVE \"x\" ON)\n    option(GGML_F16C         \"y\" OFF)\n\
                    llama_option_depr(WARNING LLAMA_CURL)\nllama_option_depr(FATAL_ERROR LLAMA_CUBLAS GGML_CUDA)\n";
        assert!(declares(text, "GGML_NATIVE") && declares(text, "GGML_F16C"));
        for name in ["LLAMA_CURL", "LLAMA_CUBLAS", "GGML", "LLAMA_SERVER"] {
            assert!(!declares(text, name), "{name}");
        }
    }
}
