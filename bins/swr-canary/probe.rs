//! The probes: one property differs at a time, so that what is lost can be blamed on it.

use workspace::wipe::VOLATILE;

/// What a probe is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// A file of so many bytes with these permission bits.
    File(u64, u32),
    /// A link to this name beside it.
    Link(&'static str),
    /// An empty directory.
    Empty,
}

/// One thing to plant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Probe {
    /// The property it stands for: `size`, `suffix`, `directory`, `mode`, `count`, `link`, `empty`.
    pub(crate) property: &'static str,
    /// The property's value.
    pub(crate) value: String,
    /// Relative to where probes are planted.
    pub(crate) path: String,
    /// What it is.
    pub(crate) what: What,
}

const SIZES: [(&str, u64); 6] =
    [("0", 0), ("1K", 1 << 10), ("64K", 64 << 10), ("1M", 1 << 20), ("8M", 8 << 20), ("32M", 32 << 20)];
const LARGE: [(&str, u64); 2] = [("64M", 64 << 20), ("256M", 256 << 20)];
const SUFFIXES: [&str; 12] =
    ["txt", "sh", "py", "json", "bin", "so", "gguf", "zip", "tar.gz", "log", "tmp", "sqlite"];
const MODES: [u32; 5] = [0o600, 0o644, 0o755, 0o444, 0o700];
const MANY: usize = 300;
const SMALL: u64 = 512;

/// Every probe.
pub(crate) fn all(large: bool) -> Vec<Probe> {
    let mut all = Vec::new();
    let mut add =
        |property, value: String, path: String, what| all.push(Probe { property, value, path, what });
    for (name, size) in SIZES.iter().chain(LARGE.iter().filter(|_| large)) {
        add("size", (*name).into(), format!("size-{name}"), What::File(*size, 0o644));
    }
    for suffix in SUFFIXES {
        add("suffix", suffix.into(), format!("suffix.{suffix}"), What::File(SMALL, 0o644));
    }
    for dir in VOLATILE.iter().chain(&["src", ".config", ".local", "models", "bin", ".git"]) {
        add("directory", (*dir).into(), format!("in/{dir}/probe"), What::File(SMALL, 0o644));
    }
    for mode in MODES {
        add("mode", format!("{mode:04o}"), format!("mode-{mode:04o}"), What::File(SMALL, mode));
    }
    for n in 0..MANY {
        add("count", format!("of {MANY}"), format!("many/{n:03}"), What::File(SMALL, 0o644));
    }
    add("link", "present".into(), "link".into(), What::Link("mode-0644"));
    add("link", "dangling".into(), "link-dangling".into(), What::Link("nothing"));
    add("empty", "directory".into(), "empty".into(), What::Empty);
    all
}

/// A probe's content: the same for the same path, and different from any other's.
pub(crate) fn content(path: &str, size: u64) -> impl Iterator<Item = [u8; 4096]> {
    let mut seed =
        path.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    // xorshift64 (Marsaglia, 2003): not to be compressed away by the platform.
    std::iter::repeat_with(move || {
        let mut block = [0; 4096];
        for eight in block.chunks_exact_mut(8) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            eight.copy_from_slice(&seed.to_le_bytes());
        }
        block
    })
    .take(usize::try_from(size.div_ceil(4096)).unwrap_or(usize::MAX))
}
