//! What a restore has done so far, so that one killed half way can be resumed and nothing moved aside is forgotten.

use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use contract::{Error, Fix, exit, message};
use files::digest::Sha;
use workspace::json::{self, Json};
use workspace::name;

const LIMIT: u64 = 8 << 20;

/// The journal of the restore under way.
pub(crate) struct Journal<'a> {
    fix: &'a Fix,
    path: PathBuf,
    /// Why it could not be begun: nothing is moved aside then, for nothing would say where it is.
    trouble: Option<String>,
}

/// What the journal said of an earlier restore that did not end.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    /// The body digest of the manifest it worked on.
    pub(crate) manifest: Option<Sha>,
    /// Entries it had finished.
    pub(crate) done: Vec<String>,
    /// Entries whose things stand aside, and where; put back or done ones are not in it.
    pub(crate) aside: Vec<(String, PathBuf)>,
}

impl<'a> Journal<'a> {
    /// Reads what an earlier restore left; `None` when it ended.
    pub(crate) fn unfinished(home: &Path) -> Result<Option<Unfinished>, Error> {
        let path = home.join("journal.jsonl");
        let lines = files::records::read(&path, LIMIT).map_err(|cause| {
            let hint = format!("move {} away; nothing else is lost", message::quoted(path.as_os_str()));
            Error::io("read", path.as_os_str(), &cause).hint(hint)
        })?;
        let mut found: Option<Unfinished> = None;
        for line in lines {
            // A torn line says nothing that the disk does not say again.
            let Ok(Json::Object(pairs)) = json::parse(&line) else { continue };
            let text = |key: &str| match pairs.iter().find(|(k, _)| k == key) {
                Some((_, Json::Text(text))) => Some(text.as_ref()),
                _ => None,
            };
            match (text("step"), text("id"), &mut found) {
                (Some("begin"), ..) => {
                    let kept = found.take().map(|u| u.aside).unwrap_or_default();
                    let manifest = text("manifest").and_then(Sha::from_hex);
                    found = Some(Unfinished { manifest, done: Vec::new(), aside: kept });
                }
                (Some("end"), ..) => found = None,
                (Some("done"), Some(id), Some(u)) => {
                    u.aside.retain(|(i, _)| i != id);
                    u.done.push(id.to_owned());
                }
                (Some("back"), Some(id), Some(u)) => u.aside.retain(|(i, _)| i != id),
                (Some("aside"), Some(id), Some(u)) => {
                    let place = text("place").and_then(name::decode);
                    u.aside.extend(place.map(|p| (id.to_owned(), std::ffi::OsString::from_vec(p).into())));
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// Begins a restore: a fresh journal, or one more run in an unfinished one. Where it cannot be written, the restore
    /// goes on with what needs none, such as permission bits: a full disk is no reason to leave those.
    pub(crate) fn begin(fix: &'a Fix, home: &Path, manifest: Sha, keep: bool) -> Self {
        let mut journal = Self { fix, path: home.join("journal.jsonl"), trouble: None };
        let line = format!("{{\"step\":\"begin\",\"manifest\":{}}}", json::quote(&manifest.hex()));
        let begun = if keep {
            journal.append(&line)
        } else {
            files::atomic::write(fix, &journal.path, format!("{line}\n").as_bytes(), 0o600)
                .map_err(|cause| Error::io("write", journal.path.as_os_str(), &cause))
        };
        journal.trouble = begun.err().map(|trouble| trouble.message);
        journal
    }

    /// An entry is finished, well or not. What cannot be noted is looked at once more by a resumed run.
    pub(crate) fn done(&self, id: &str) {
        self.note(&format!("{{\"step\":\"done\",\"id\":{}}}", json::quote(id)));
    }

    /// An entry's thing is about to stand at `place`; written before it is moved.
    pub(crate) fn aside(&self, id: &str, place: &Path) -> Result<(), Error> {
        if let Some(trouble) = &self.trouble {
            return Err(Error::new(exit::IO, trouble));
        }
        let place = json::quote(&name::encode(place.as_os_str().as_bytes()));
        self.append(&format!("{{\"step\":\"aside\",\"id\":{},\"place\":{place}}}", json::quote(id)))
    }

    /// An entry's thing is back where it was.
    pub(crate) fn back(&self, id: &str) {
        self.note(&format!("{{\"step\":\"back\",\"id\":{}}}", json::quote(id)));
    }

    /// The restore ended.
    pub(crate) fn end(&self) {
        self.note("{\"step\":\"end\"}");
    }

    /// Appends what is good to know and changes no verdict.
    fn note(&self, line: &str) {
        if self.trouble.is_none()
            && let Err(trouble) = self.append(line)
        {
            message::note("swr-restore", &trouble.message);
        }
    }

    fn append(&self, line: &str) -> Result<(), Error> {
        files::records::append(self.fix, &self.path, line.as_bytes())
            .map_err(|cause| Error::io("write", self.path.as_os_str(), &cause))
    }
}
