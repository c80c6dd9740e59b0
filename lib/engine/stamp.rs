//! The build stamp beside a kept engine: one JSON line that says what was built, from what, for which CPU.

use std::io::Read as _;
use std::path::Path;

use files::digest::Sha;
use serde_json::{Value, json};

/// A longer file is no stamp.
const LIMIT: u64 = 64 << 10;

/// What is recorded of a build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// [`crate::Cpu::id`] of the CPU it was built for, or [`crate::Cpu::portable_id`].
    pub cpu: String,
    /// The flags of that CPU; empty when portable.
    pub flags: Vec<String>,
    /// Whether it was built for any CPU of the architecture.
    pub portable: bool,
    /// What the source is: a git commit, or the tree an archive is known to hold.
    pub tree: String,
    /// The options given to cmake.
    pub options: Vec<String>,
    /// The compiler and its version.
    pub compiler: String,
    /// When, UTC, `YYYY-MM-DDTHH:MM:SSZ`.
    pub built: String,
    /// The programs; empty in the stamp of a build directory.
    pub programs: Vec<Program>,
}

/// One program of an engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Its file name.
    pub name: String,
    /// Exact size in bytes.
    pub bytes: u64,
    /// SHA-256 of the whole file.
    pub sha256: Sha,
}

impl Stamp {
    /// Reads a stamp; `None` when there is none or it is damaged: an engine without one is still an engine.
    pub fn read(path: &Path) -> Option<Self> {
        let (file, _) = files::open::regular(path).ok()?;
        let mut text = Vec::new();
        file.take(LIMIT).read_to_end(&mut text).ok()?;
        let value: Value = serde_json::from_slice(&text).ok()?;
        let text = |v: &Value, key: &str| Some(v.get(key)?.as_str()?.to_owned());
        let texts = |key: &str| -> Option<Vec<String>> {
            value.get(key)?.as_array()?.iter().map(|v| Some(v.as_str()?.to_owned())).collect()
        };
        let programs = value.get("programs")?.as_array()?.iter().map(|p| {
            Some(Program {
                name: text(p, "name")?,
                bytes: p.get("bytes")?.as_u64()?,
                sha256: Sha::from_hex(p.get("sha256")?.as_str()?)?,
            })
        });
        Some(Self {
            cpu: text(&value, "cpu")?,
            flags: texts("flags")?,
            portable: value.get("portable")?.as_bool()?,
            tree: text(&value, "tree")?,
            options: texts("options")?,
            compiler: text(&value, "compiler")?,
            built: text(&value, "built")?,
            programs: programs.collect::<Option<_>>()?,
        })
    }

    /// The line that [`Stamp::read`] reads, newline included.
    pub fn line(&self) -> Vec<u8> {
        let programs: Vec<_> = self
            .programs
            .iter()
            .map(|p| json!({"name": p.name, "bytes": p.bytes, "sha256": p.sha256.hex()}))
            .collect();
        let mut line = json!({
            "cpu": self.cpu,
            "flags": self.flags,
            "portable": self.portable,
            "tree": self.tree,
            "options": self.options,
            "compiler": self.compiler,
            "built": self.built,
            "programs": programs,
        })
        .to_string()
        .into_bytes();
        line.push(b'\n');
        line
    }

    /// What is recorded of a program.
    pub fn program(&self, name: &str) -> Option<&Program> {
        self.programs.iter().find(|p| p.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_home::Home;

    #[test]
    fn a_stamp_reads_back_and_half_of_it_is_none() {
        let stamp = Stamp {
            cpu: "0123456789ab".into(),
            flags: vec!["avx2".into()],
            portable: false,
            tree: "b1 \"quoted\"\n".into(),
            options: vec!["-DGGML_NATIVE=ON".into()],
            compiler: "GNU 12.2.0".into(),
            built: "2026-11-30T00:00:00Z".into(),
            programs: vec![Program { name: "llama-simple".into(), bytes: 7, sha256: Sha([7; 32]) }],
        };
        let fix = contract::mode::by_name();
        let home = Home::new();
        let path = home.path("stamp");
        let line = stamp.line();
        assert_eq!(line.iter().position(|b| *b == b'\n'), Some(line.len() - 1));
        files::atomic::write(&fix, &path, &line, 0o600).unwrap();
        assert_eq!(Stamp::read(&path), Some(stamp));
        files::atomic::write(&fix, &path, &line[..line.len() / 2], 0o600).unwrap();
        assert_eq!(Stamp::read(&path), None);
        files::atomic::write(&fix, &path, b"", 0o600).unwrap();
        assert_eq!(Stamp::read(&path), None);
    }
}
