//! One entry from damage to health: look, repair natively, move aside, run the recipe, look again.

use std::path::PathBuf;

use contract::message::{note, quoted};
use contract::{Error, Fix, State, clock};
use files::beneath::Root;
use workspace::place::Places;
use workspace::verify::{self, Depth, Finding, Repair};
use workspace::{Entry, Manifest, Shape};

use crate::journal::Journal;
use crate::{native, quarantine, recipe};

/// Looks after native repairs at most: as many as a path has directories, or a tree pages of modes.
const ROUNDS: usize = 200;

/// What became of an entry.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Nothing was wrong any more.
    Healthy,
    /// It was damaged and is healthy.
    Healed(String),
    /// It would be repaired so.
    Would(String),
    /// It could not be repaired, and what a person can do.
    Failed(String, Option<String>),
    /// It could not be checked.
    Unknown(String),
    /// Its repair ended well and it is still damaged; where what was there stands aside.
    Still(Vec<Finding>, Vec<PathBuf>),
    /// This process was told to stop.
    Stopped(i32),
}

/// Says what a repair would do.
pub(crate) fn dry(entry: &Entry, findings: &[Finding]) -> Outcome {
    if let Some(finding) = findings.iter().find(|f| f.repair == Repair::Nothing) {
        return Outcome::Unknown(finding.detail.clone());
    }
    let by_recipe = findings.iter().any(|f| f.repair == Repair::Recipe);
    match (&entry.restore, by_recipe) {
        (None, true) => Outcome::Failed(format!("{}; it has no recipe", findings[0].detail), None),
        (Some(recipe), true) => Outcome::Would(format!("{}; would run: {recipe}", findings[0].detail)),
        (_, false) => Outcome::Would(format!("{}; repaired without a recipe", findings[0].detail)),
    }
}

/// Whether there may be work in a tree that no commit has: no recipe is let at it, whoever asks for that.
fn holds_repository(root: &Root, entry: &Entry, path: &[u8]) -> bool {
    let Shape::Tree { git, .. } = &entry.shape else { return false };
    let known = git.iter().flatten().map(Vec::as_slice);
    known.chain([&b".git"[..]]).any(|git| root.stat(&[path, b"/", git].concat()).is_ok())
}

/// What a repair moved.
#[derive(Default)]
pub(crate) struct Moved {
    /// Where things stand aside.
    pub(crate) aside: Vec<PathBuf>,
    /// How many entries below came back from there.
    pub(crate) below: usize,
}

/// All that a repair needs beside the entry.
pub(crate) struct Bench<'a> {
    pub(crate) fix: &'a Fix,
    pub(crate) home: PathBuf,
    pub(crate) manifest: &'a Manifest,
    pub(crate) places: &'a Places,
    pub(crate) journal: Option<&'a Journal<'a>>,
    pub(crate) quarantine: bool,
    pub(crate) deep: bool,
    pub(crate) jobs: usize,
}

impl Bench<'_> {
    /// Looks anew, without the cache; blobs whole after a repair or when that is asked for.
    pub(crate) fn look(&self, root: &Root, entry: &Entry, path: &[u8], deep: bool) -> Vec<Finding> {
        let depth = Depth { deep: deep || self.deep, cache: None, now: clock::now().wall, jobs: self.jobs };
        verify::entry(root, entry, path, &depth).findings
    }

    /// Repairs one entry. Whatever goes wrong is its verdict, so that the others have their turn.
    pub(crate) fn repair(&self, root: &Root, entry: &Entry, path: &[u8]) -> Outcome {
        let findings = self.look(root, entry, path, false);
        let Some(first) = findings.first() else { return Outcome::Healthy };
        let was = first.detail.clone();
        if let Some(unknown) = findings.iter().find(|f| f.repair == Repair::Nothing) {
            return Outcome::Unknown(unknown.detail.clone());
        }
        let mut moved = Moved::default();
        if let Err(why) = self.natively(root, entry, path, &findings, &mut moved) {
            return Outcome::Failed(format!("{was}; {}", why.message), why.hint);
        }
        let by_recipe = findings.iter().any(|f| f.repair == Repair::Recipe);
        let ended = if by_recipe { self.by_recipe(root, entry, path, &mut moved) } else { Ok(None) };
        match ended {
            Err(trouble) => Outcome::Failed(format!("{was}; {}", trouble.message), trouble.hint),
            Ok(Some(Outcome::Failed(why, hint))) => Outcome::Failed(format!("{was}; {why}"), hint),
            Ok(Some(other)) => other,
            Ok(None) => self.judge(root, entry, path, &was, moved),
        }
    }

    /// Runs the recipe; `None` when it ended well.
    fn by_recipe(
        &self,
        root: &Root,
        entry: &Entry,
        path: &[u8],
        moved: &mut Moved,
    ) -> Result<Option<Outcome>, Error> {
        let Some(recipe) = &entry.restore else {
            return Ok(Some(Outcome::Failed("it has no recipe".into(), None)));
        };
        let mut stood = None;
        native::make_parents(root, path, &mut |at| {
            self.aside(root, entry, at, moved)?;
            stood = moved.aside.last().map(|place| (at.to_vec(), place.clone()));
            Ok(())
        })?;
        if (self.quarantine || holds_repository(root, entry, path)) && root.stat(path).is_ok() {
            self.aside(root, entry, path, moved)?;
            stood = moved.aside.last().map(|place| (path.to_vec(), place.clone()));
        }
        let ended = recipe::run(self.fix, entry, recipe, root.path(), &self.home);
        let why = match ended {
            recipe::End::Well => None,
            recipe::End::Badly(why) => {
                let log = recipe::log(&self.home, &entry.id);
                let hint = format!("what the recipe of {} said is in {}", entry.id, quoted(log.as_os_str()));
                Some(Outcome::Failed(why, Some(hint)))
            }
            recipe::End::Stopped(signal) => Some(Outcome::Stopped(signal)),
        };
        if let Some((at, place)) = stood {
            let back = if why.is_some() { self.back(root, entry, &at, &place, moved) } else { Ok(()) };
            let below =
                if at == path { self.put_below_back(root, entry, path, &place, moved) } else { Ok(()) };
            back.and(below)?;
        }
        Ok(why)
    }

    /// Applies every repair that needs no recipe.
    pub(crate) fn natively(
        &self,
        root: &Root,
        entry: &Entry,
        path: &[u8],
        findings: &[Finding],
        moved: &mut Moved,
    ) -> Result<(), Error> {
        for finding in findings {
            let mut aside = |at: &[u8]| self.aside(root, entry, at, moved);
            native::apply(root, entry, path, &finding.repair, &mut aside)?;
        }
        Ok(())
    }

    fn judge(&self, root: &Root, entry: &Entry, path: &[u8], was: &str, mut moved: Moved) -> Outcome {
        let mut left = self.look(root, entry, path, true);
        let native = |f: &Finding| !matches!(f.repair, Repair::Nothing | Repair::Recipe);
        // A recipe brings content; its modes are those of its umask. And each directory that is opened again may show more.
        for _ in 0..ROUNDS {
            if left.is_empty() || !left.iter().all(native) {
                break;
            }
            if let Err(why) = self.natively(root, entry, path, &left, &mut moved) {
                return Outcome::Failed(why.message, why.hint);
            }
            left = self.look(root, entry, path, true);
        }
        if left.iter().any(|f| f.state == State::Unknown) {
            return Outcome::Unknown(left[0].detail.clone());
        }
        if !left.is_empty() {
            return Outcome::Still(left, moved.aside);
        }
        let below = match moved.below {
            0 => String::new(),
            1 => "; 1 entry below it put back".into(),
            n => format!("; {n} entries below it put back"),
        };
        let places: Vec<_> = moved.aside.iter().map(|a| quoted(a.as_os_str())).collect();
        let kept =
            if places.is_empty() { String::new() } else { format!("; kept aside: {}", places.join(" ")) };
        Outcome::Healed(format!("was: {was}{below}{kept}"))
    }

    /// Moves what is at `path` to the quarantine; the journal knows the place before it happens.
    pub(crate) fn aside(
        &self,
        root: &Root,
        entry: &Entry,
        path: &[u8],
        moved: &mut Moved,
    ) -> Result<(), Error> {
        let place = quarantine::place(self.fix, &self.home, &entry.id, path)?;
        if let Some(journal) = self.journal {
            journal.aside(&entry.id, &place)?;
        }
        let absolute = native::absolute(root, path);
        let aside = quarantine::move_aside(root, path, &place);
        quarantine::tidy(&self.home, &place);
        let aside = aside.map_err(|cause| {
            let hint =
                format!("let {} be renamed by this user, then run this again", quoted(absolute.as_os_str()));
            Error::io("move aside", absolute.as_os_str(), &cause).hint(hint)
        })?;
        if let Some(journal) = self.journal.filter(|_| aside != place) {
            journal.aside(&entry.id, &aside)?;
        }
        note(
            "swr-restore",
            &format!("moved {} to {}", quoted(absolute.as_os_str()), quoted(aside.as_os_str())),
        );
        moved.aside.push(aside);
        Ok(())
    }

    /// A failed recipe: what it left goes aside too, and the original comes back.
    fn back(
        &self,
        root: &Root,
        entry: &Entry,
        path: &[u8],
        original: &std::path::Path,
        moved: &mut Moved,
    ) -> Result<(), Error> {
        if root.stat(path).is_ok() {
            self.aside(root, entry, path, moved)?;
        }
        let absolute = native::absolute(root, path);
        quarantine::put_back(root, path, original)
            .map_err(|cause| Error::io("put back", absolute.as_os_str(), &cause))?;
        quarantine::tidy(&self.home, original);
        note("swr-restore", &format!("put {} back", quoted(absolute.as_os_str())));
        if let Some(journal) = self.journal {
            journal.back(&entry.id);
        }
        Ok(())
    }
}
