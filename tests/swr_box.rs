//! A small healthy workspace in a private home, its entries captured and signed by the libraries the tools use.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unreachable_pub, reason = "a module of several test programs, exported by none")]
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use contract::mode;
use files::beneath::Root;
use seal::SigningKey;
use workspace::capture::{self, As, TreeOptions};
use workspace::{Entry, Manifest, Shape};

use crate::private_home::Home;

/// A home whose workspace is the home itself.
pub struct Box {
    pub home: Home,
    pub manifest: Manifest,
    key: SigningKey,
}

impl Box {
    pub fn new() -> Self {
        let home = Home::new();
        let swr = home.path(".swr");
        fs::create_dir(&swr).unwrap();
        fs::set_permissions(&swr, fs::Permissions::from_mode(0o700)).unwrap();
        let key = SigningKey::create(&mode::by_name(), &swr.join("signing.key")).unwrap();
        Self { home, manifest: Manifest::empty(b"~"), key }
    }

    /// Captures `path` as it is now.
    pub fn add(
        &mut self,
        id: &str,
        path: &[u8],
        tier: u8,
        restore: Option<&str>,
        needs: &[&str],
    ) -> &mut Self {
        self.add_tree(id, path, tier, restore, needs, &TreeOptions { jobs: 1, ..TreeOptions::default() })
    }

    /// The same with tree options.
    pub fn add_tree(
        &mut self,
        id: &str,
        path: &[u8],
        tier: u8,
        restore: Option<&str>,
        needs: &[&str],
        options: &TreeOptions,
    ) -> &mut Self {
        let root = Root::open(&self.home.dir).unwrap();
        let shape = capture::shape(&root, path, As::Fitting, options).unwrap();
        self.put(id, path, tier, shape, restore, needs)
    }

    /// Puts an entry of any shape.
    pub fn put(
        &mut self,
        id: &str,
        path: &[u8],
        tier: u8,
        shape: Shape,
        restore: Option<&str>,
        needs: &[&str],
    ) -> &mut Self {
        self.manifest.put(Entry {
            id: id.to_owned().into(),
            path: path.to_vec().into(),
            tier,
            shape,
            needs: needs.iter().map(|n| (*n).to_owned().into()).collect(),
            restore: restore.map(|text| text.to_owned().into()),
            timeout_s: Some(30),
            notes: None,
        });
        self
    }

    /// Signs and writes the manifest.
    pub fn sign(&mut self) -> &mut Self {
        self.manifest.header.seq += 1;
        self.manifest.rebuild();
        let line = self.key.sign(&self.manifest.body);
        self.manifest.signatures.push(line);
        self.write(&self.manifest.to_bytes());
        self
    }

    /// Writes any bytes as the manifest.
    pub fn write(&self, bytes: &[u8]) {
        fs::write(self.home.path(".swr/manifest.jsonl"), bytes).unwrap();
    }

    /// A tree of files with text in them: `(path, text, mode)`.
    pub fn tree(&self, name: &str, files: &[(&str, &str, u32)]) {
        for (path, text, mode) in files {
            let path = self.home.file(&format!("{name}/{path}"), text);
            fs::set_permissions(path, fs::Permissions::from_mode(*mode)).unwrap();
        }
    }
}

/// Sets permission bits.
pub fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// One missing file whose recipe leaves a mark.
pub fn missing() -> Box {
    let mut b = Box::new();
    b.home.file("f", "content");
    b.add("f", b"f", 1, Some("printf content >f; touch ran"), &[]).sign();
    fs::remove_file(b.home.path("f")).unwrap();
    b
}

/// Copies a tree with `cp -a`, which keeps modes and links.
pub fn copy(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

/// Opens the directory of a file to others; whether they get to it then, through all that is above it.
pub fn in_reach(path: &Path) -> bool {
    let dir = path.parent().unwrap();
    chmod(dir, 0o755);
    dir.ancestors().all(|d| fs::metadata(d).unwrap().permissions().mode() & 0o011 != 0)
}

/// A signing key that proves nothing.
pub struct UnfitKey {
    pub what: &'static str,
    /// Words of the refusal.
    pub words: &'static str,
    /// Makes it of a good one; false where this user cannot.
    pub make: fn(&Path) -> bool,
}

/// Every way in which a key file is none.
pub fn unfit_keys() -> [UnfitKey; 7] {
    let key = |what, words, make| UnfitKey { what, words, make };
    [
        key("a link to a good key", "is a link", |p| {
            fs::rename(p, p.with_extension("moved")).unwrap();
            std::os::unix::fs::symlink("signing.moved", p).is_ok()
        }),
        key("a key of somebody else", "belongs to user 54321", |p| {
            std::os::unix::fs::chown(p, Some(54321), None).is_ok()
        }),
        key("a key others can write", "open to others, mode 0602", |p| {
            chmod(p, 0o602);
            in_reach(p)
        }),
        key("a short key", "has 31 bytes", |p| fs::write(p, [7; 31]).is_ok()),
        key("a long key", "has 33 bytes", |p| fs::write(p, [7; 33]).is_ok()),
        key("an empty key", "has 0 bytes", |p| fs::write(p, []).is_ok()),
        key("a directory", "is a directory", |p| {
            fs::remove_file(p).unwrap();
            fs::create_dir(p).is_ok()
        }),
    ]
}
