//! Where a manifest's entries are on this box: below the workspace root, or below the home.

use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use contract::{Error, exit, home};
use files::beneath::{Neighbours, Root};

use crate::entry::Entry;
use crate::manifest::Header;
use crate::verify::{self, Depth, Result as Found};

/// The two directories that entries live below, open.
pub struct Places {
    root: Root,
    home: Option<Root>,
}

impl Places {
    /// Opens the root that the header names, and the home if there is one.
    pub fn open(header: &Header) -> Result<Self, Error> {
        let path = root_path(header)?;
        let root = open_root(&path)?;
        let home = home::user_home().ok().and_then(|h| Root::open(&h).ok());
        Ok(Self { root, home })
    }

    /// The directory and the path below it that an entry's `path` stands for.
    pub fn of<'a>(&'a self, entry: &'a Entry) -> Result<(&'a Root, &'a [u8]), Error> {
        match entry.path.strip_prefix(b"~/") {
            None => Ok((&self.root, &entry.path)),
            Some(below) => {
                let home = self.home.as_ref();
                let home =
                    home.ok_or_else(|| Error::new(exit::IO, "HOME is not a directory that can be opened"))?;
                Ok((home, below))
            }
        }
    }

    /// For looking at many entries one after the other.
    pub fn near(&self) -> Near<'_> {
        Near {
            places: self,
            root: Neighbours::new(&self.root),
            home: self.home.as_ref().map(Neighbours::new),
        }
    }

    /// The workspace root.
    pub fn root(&self) -> &Root {
        &self.root
    }
}

/// Looks at entries; fastest where neighbours follow each other.
pub struct Near<'a> {
    places: &'a Places,
    root: Neighbours<'a>,
    home: Option<Neighbours<'a>>,
}

impl Near<'_> {
    /// What an entry looks like now.
    pub fn look(&mut self, entry: &Entry, depth: &Depth) -> Result<Found, Error> {
        let (root, path) = self.places.of(entry)?;
        let near = self.home.as_mut().filter(|_| entry.path.len() != path.len()).unwrap_or(&mut self.root);
        Ok(verify::known(root, entry, path, near.stat(path), depth))
    }
}

/// The workspace root, open.
pub fn open_root(path: &Path) -> Result<Root, Error> {
    Root::open(path).map_err(|cause| {
        Error::io("open the workspace", path.as_os_str(), &cause)
            .hint("bring the directory back first: what is in it is looked at then")
    })
}

/// The absolute path of the root that a header names.
pub fn root_path(header: &Header) -> Result<PathBuf, Error> {
    let bytes = |b: &[u8]| PathBuf::from(std::ffi::OsString::from_vec(b.to_vec()));
    match header.root.strip_prefix(b"~") {
        None => Ok(bytes(&header.root)),
        Some(b"") => home::user_home(),
        Some(below) => Ok(home::user_home()?.join(bytes(&below[1..]))),
    }
}
