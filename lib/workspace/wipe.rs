//! The wipe signature: which habit of a platform explains a pattern of damage.

use contract::State;

use crate::entry::{Entry, Shape};
use crate::verify::Finding;

/// Directory names that platforms sweep whatever is in them: to be rebuilt, never storage.
pub const VOLATILE: [&str; 8] =
    ["build", "dist", "out", "target", "node_modules", ".venv", "__pycache__", ".cache"];

/// A named pattern and why it fits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// One of the names of this module.
    pub name: &'static str,
    /// The evidence, in words.
    pub why: String,
}

/// Names the pattern that explains the damage best; `None` when nothing is damaged or nothing fits.
/// `looked` has every entry that was looked at with what was found.
pub fn signature(looked: &[(&Entry, &[Finding])]) -> Option<Signature> {
    let is_damage = |f: &Finding| !matches!(f.state, State::Unknown);
    let damaged: Vec<_> = looked.iter().filter(|(_, found)| found.iter().any(is_damage)).collect();
    let healthy: Vec<_> = looked.iter().filter(|(_, found)| found.is_empty()).collect();
    if damaged.is_empty() {
        return None;
    }
    let findings = || damaged.iter().flat_map(|(_, found)| found.iter()).filter(|f| is_damage(f));
    let every = |state: State| findings().all(|f| f.state == state);
    let total = looked.len();
    let named = |name, why: String| Some(Signature { name, why });
    if every(State::Missing) && damaged.len() > 1 && damaged.len() * 10 >= total * 9 {
        return named("cold-start", format!("{} of {total} entries are gone", damaged.len()));
    }
    if every(State::Stripped) {
        return named(
            "permission-reset",
            format!("{} entries lost permission bits, no content", damaged.len()),
        );
    }
    if damaged.iter().all(|(e, _)| is_volatile(&e.path)) {
        return named(
            "exclusion-sweep",
            "all damage is below directories that platforms sweep (build, cache ...)".into(),
        );
    }
    let gone = |f: &Finding| matches!(f.state, State::Missing | State::Short);
    if damaged.iter().all(|(e, _)| is_credential(e)) && findings().all(gone) {
        return named("credential-loss", format!("{} credentials or shims, nothing else", damaged.len()));
    }
    let lost = |(_, found): &&&(&Entry, &[Finding])| {
        found
            .iter()
            .any(|f| matches!(f.state, State::Missing | State::Short) || f.detail.starts_with("sentinel"))
    };
    let smallest_lost = damaged.iter().filter(lost).map(|(e, _)| size(e)).min();
    let largest_kept = healthy.iter().map(|(e, _)| size(e)).max().unwrap_or(0);
    if damaged.iter().all(|d| lost(&d))
        && let Some(smallest) = smallest_lost
        && smallest > largest_kept
        && smallest >= 1 << 20
    {
        let why =
            format!("everything of {smallest} bytes and more is gone, nothing up to {largest_kept} bytes is");
        return named("size-cap-eviction", why);
    }
    if findings().all(|f| f.state == State::Corrupt) {
        return named("local-corruption", format!("content changed in {} of {total} entries", damaged.len()));
    }
    None
}

/// Whether a component of the path is one that platforms sweep.
pub fn is_volatile(path: &[u8]) -> bool {
    path.split(|b| *b == b'/').any(|c| VOLATILE.iter().any(|v| v.as_bytes() == c))
}

/// Where programs keep a secret: names of files, some with the directory that makes them one.
const SECRETS: [&str; 12] = [
    "token",
    "credentials",
    ".env",
    ".env.local",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".config/gh/hosts.yml",
    ".docker/config.json",
    ".kube/config",
    ".config/gcloud/application_default_credentials.json",
];

/// Whether a file at this path holds a secret by its name.
pub fn is_secret(path: &[u8]) -> bool {
    let text = String::from_utf8_lossy(path).to_lowercase();
    let is =
        |name: &&str| text.strip_suffix(*name).is_some_and(|front| front.is_empty() || front.ends_with('/'));
    SECRETS.iter().any(is) || text.contains(".ssh/id_") && text.strip_suffix(".pub").is_none()
}

/// Tier 0, or a name that says so.
fn is_credential(entry: &Entry) -> bool {
    let path = String::from_utf8_lossy(&entry.path).to_lowercase();
    let telling = ["token", "credential", "secret", ".ssh/", ".netrc", ".npmrc", ".pypirc", "auth"];
    entry.tier == 0 || is_secret(&entry.path) || telling.iter().any(|t| path.contains(t))
}

fn size(entry: &Entry) -> u64 {
    match entry.shape {
        Shape::Link { .. } => 0,
        Shape::File { size, .. } | Shape::Blob { size, .. } => size,
        Shape::Tree { bytes, .. } => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::Repair;
    use files::digest::Sha;

    fn entry(path: &str, tier: u8, size: u64) -> Entry<'static> {
        let shape = Shape::File { size, sha256: Sha([0; 32]), mode: 0o644, escrow: None };
        let (needs, restore) = (Vec::new(), None);
        Entry {
            id: path.replace('/', "-").into(),
            path: path.as_bytes().to_vec().into(),
            tier,
            shape,
            needs,
            restore,
            timeout_s: None,
            notes: None,
        }
    }

    fn named(list: &[(&str, u8, u64, Option<State>)]) -> Option<&'static str> {
        let entries: Vec<_> = list.iter().map(|(path, tier, size, _)| entry(path, *tier, *size)).collect();
        let found: Vec<Vec<Finding>> = list
            .iter()
            .map(|(.., state)| {
                state
                    .iter()
                    .map(|s| Finding { state: *s, detail: String::new(), repair: Repair::Recipe })
                    .collect()
            })
            .collect();
        let looked: Vec<_> = entries.iter().zip(&found).map(|(e, f)| (e, f.as_slice())).collect();
        signature(&looked).map(|s| s.name)
    }

    #[test]
    fn each_pattern_has_its_name() {
        use State::{Corrupt, Missing, Short, Stripped, Unknown};
        let m = 1 << 20;
        for (list, want) in [
            (vec![("a", 1, 9, None), ("b", 1, 9, None)], None),
            (vec![("a", 1, 9, Some(Unknown)), ("b", 1, 9, None)], None),
            (vec![("a", 1, 9, Some(Missing)), ("b", 2, m, Some(Missing))], Some("cold-start")),
            (
                vec![("a", 1, 9, None), ("m", 3, 99 * m, Some(Missing)), ("n", 3, 50 * m, Some(Short))],
                Some("size-cap-eviction"),
            ),
            (
                vec![
                    ("a", 1, 9, None),
                    ("x/build/y", 4, 9, Some(Missing)),
                    ("node_modules", 2, m, Some(Short)),
                ],
                Some("exclusion-sweep"),
            ),
            (vec![("a", 1, 9, Some(Stripped)), ("b", 1, 9, Some(Stripped))], Some("permission-reset")),
            (
                vec![("a", 1, 9, None), (".clawhub/TOKEN", 1, 9, Some(Missing)), ("c", 2, m, None)],
                Some("credential-loss"),
            ),
            (
                vec![("a", 1, 9, Some(Corrupt)), ("b", 1, m, None), ("c", 1, 9, None)],
                Some("local-corruption"),
            ),
            // Another content is no loss, also of a token.
            (vec![("token", 0, 9, Some(Corrupt)), ("b", 1, m, None)], Some("local-corruption")),
            (vec![("a", 1, 9, Some(Missing)), ("b", 1, m, None), ("c", 1, 9, Some(Stripped))], None),
        ] {
            assert_eq!(named(&list), want, "{list:?}");
        }
    }
}
