//! `CMakeCache.txt`: which options the source tree really knows, and what a build directory was made for.

use std::path::Path;

use crate::tree::read_text;

/// The entries of a cache file, `NAME:TYPE=VALUE` a line.
pub(crate) struct CMakeCache(Vec<Entry>);

struct Entry {
    name: String,
    kind: String,
    value: String,
}

impl CMakeCache {
    /// Reads the cache of a build directory; empty when there is none.
    pub(crate) fn read(build: &Path) -> Self {
        Self::parse(&read_text(&build.join("CMakeCache.txt")))
    }

    fn parse(text: &str) -> Self {
        let entries = text.lines().filter(|line| !line.starts_with(['#', '/'])).filter_map(|line| {
            let (name, rest) = line.split_once(':')?;
            let (kind, value) = rest.split_once('=')?;
            let name = name.trim_matches('"');
            Some(Entry { name: name.to_owned(), kind: kind.to_owned(), value: value.to_owned() })
        });
        Self(entries.collect())
    }

    /// Whether there is a cache at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An entry's value.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.entry(name).map(|entry| entry.value.as_str())
    }

    /// Whether an option given on the command line was taken: cmake keeps a name that nothing declares without a
    /// type, and ends 0 all the same.
    pub(crate) fn took(&self, name: &str, value: &str) -> bool {
        self.entry(name).is_some_and(|entry| entry.kind != "UNINITIALIZED" && entry.value == value)
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_nothing_declares_was_not_taken() {
        let cache = CMakeCache::parse(
            "# This is the CMakeCache file.\n//help: x=y\nGGML_NATIVE:BOOL=ON\n\n\
             //No help, variable specified on the command line.\nLLAMA_SERVER:UNINITIALIZED=OFF\n\
             CMAKE_C_FLAGS:STRING=-DA=b -O2\nCMAKE_HOME_DIRECTORY:INTERNAL=/src\n",
        );
        assert!(cache.took("GGML_NATIVE", "ON"));
        assert!(!cache.took("GGML_NATIVE", "OFF"));
        assert!(!cache.took("LLAMA_SERVER", "OFF"));
        assert!(!cache.took("LLAMA_CURL", "OFF"));
        assert!(cache.took("CMAKE_C_FLAGS", "-DA=b -O2"));
        assert_eq!(cache.value("CMAKE_HOME_DIRECTORY"), Some("/src"));
    }
}
