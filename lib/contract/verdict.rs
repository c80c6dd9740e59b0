//! The verdict line `STATE<TAB>KIND<TAB>SUBJECT<TAB>DETAIL`: words that travel through pipes.

use std::fmt;
use std::io::{self, Write as _};
use std::marker::PhantomData;

use crate::exit::{self, Code, Family};
use crate::message::{Error, cause_of, kept_to_one_line};

/// Makes an enum whose members are words of the protocol, with the list and both conversions.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$mdoc:meta])* $member:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name { $($(#[$mdoc])* $member),* }

        impl $name {
            /// Every member.
            pub const ALL: &'static [Self] = &[$(Self::$member),*];

            /// The word of the protocol.
            pub fn word(self) -> &'static str {
                match self { $(Self::$member => $word),* }
            }

            /// The member a word stands for.
            pub fn from_word(word: &[u8]) -> Option<Self> {
                Self::ALL.iter().copied().find(|m| m.word().as_bytes() == word)
            }
        }
    };
}

words! {
    /// What is so of a subject.
    State {
        /// As it should be.
        Ok = "ok",
        /// Was damaged, is repaired and checked.
        Healed = "healed",
        /// Would be repaired if there were consent.
        Would = "would",
        /// Is not there.
        Missing = "missing",
        /// Is there in part.
        Short = "short",
        /// Has other content than it should.
        Corrupt = "corrupt",
        /// Lost its permission bits.
        Stripped = "stripped",
        /// An attempt failed that may succeed later.
        Failed = "failed",
        /// Not attempted: its breaker is open.
        Open = "open",
        /// Not attempted for another reason.
        Skipped = "skipped",
        /// Works, but not fully.
        Degraded = "degraded",
        /// Could not be checked; never repaired, never called missing.
        Unknown = "unknown",
        /// Wrong for good: trying again is pointless.
        Bad = "bad",
        /// Exists and nothing protects it.
        Untracked = "untracked",
    }
}

words! {
    /// What sort of thing a subject is.
    Kind {
        /// A model file.
        Model = "model",
        /// A program.
        Binary = "binary",
        /// Something of the machine.
        Host = "host",
        /// One run of a command.
        Run = "run",
        /// A cache entry.
        Cache = "cache",
        /// A small file of the workspace.
        File = "file",
        /// A large file of the workspace.
        Blob = "blob",
        /// A directory tree.
        Tree = "tree",
        /// A workspace manifest.
        Manifest = "manifest",
        /// A copy on a backend.
        Paste = "paste",
        /// A probe of what the platform keeps.
        Canary = "canary",
    }
}

/// One subject and what is so of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// The state as a word.
    pub state: State,
    /// The kind as a word.
    pub kind: Kind,
    /// What it is about: a role, an id or a path; any bytes.
    pub subject: Vec<u8>,
    /// Prose for a person, the cause first; never parsed.
    pub detail: String,
}

impl Verdict {
    /// A verdict; the detail is kept to one line.
    pub fn new(state: State, kind: Kind, subject: impl Into<Vec<u8>>, detail: impl Into<String>) -> Self {
        Self { state, kind, subject: subject.into(), detail: kept_to_one_line(detail.into()) }
    }

    /// The line of the protocol, newline included.
    pub fn line(&self) -> Vec<u8> {
        let mut line = Vec::with_capacity(64 + self.detail.len());
        head(self.state, self.kind, &self.subject, &mut line);
        escape(self.detail.as_bytes(), &mut line);
        line.push(b'\n');
        line
    }

    /// The same four fields as a JSON object on one line; bytes that are no UTF-8 become U+FFFD.
    pub fn json(&self) -> Vec<u8> {
        // Text by text: a `serde_json::Value` would link the printing of floats, 14 kB, into every tool.
        let subject = String::from_utf8_lossy(&self.subject);
        let fields = [
            ("{\"state\":", self.state.word()),
            (",\"kind\":", self.kind.word()),
            (",\"subject\":", &subject),
            (",\"detail\":", &self.detail),
        ];
        let mut line = Vec::with_capacity(64 + self.detail.len());
        for (name, value) in fields {
            line.extend_from_slice(name.as_bytes());
            line.extend_from_slice(serde_json::to_string(value).unwrap_or_default().as_bytes());
        }
        line.extend_from_slice(b"}\n");
        line
    }

    /// Reads a line of the protocol (without its newline); `None` when it is not one.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.splitn(4, |b| *b == b'\t');
        let state = State::from_word(fields.next()?)?;
        let kind = Kind::from_word(fields.next()?)?;
        let subject = fields.next().filter(|s| !s.is_empty())?;
        let detail = fields.next()?;
        let detail = String::from_utf8_lossy(&unescape(detail)).into_owned();
        Some(Self { state, kind, subject: unescape(subject), detail })
    }
}

/// The line up to the detail.
fn head(state: State, kind: Kind, subject: &[u8], line: &mut Vec<u8>) {
    line.extend_from_slice(state.word().as_bytes());
    line.push(b'\t');
    line.extend_from_slice(kind.word().as_bytes());
    line.push(b'\t');
    escape(subject, line);
    line.push(b'\t');
}

/// Appends `field` with `\t`, `\n` and `\\` escaped; an empty field is written `-`.
fn escape(field: &[u8], out: &mut Vec<u8>) {
    if field.is_empty() {
        out.push(b'-');
    }
    // Most fields are written as they are.
    if !field.iter().any(|b| matches!(b, b'\t' | b'\n' | b'\\')) {
        return out.extend_from_slice(field);
    }
    for b in field {
        match b {
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b => out.push(*b),
        }
    }
}

/// Undoes [`escape`]; an escape it does not know is kept as it stands.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut bytes = field.iter().copied();
    while let Some(b) = bytes.next() {
        if b != b'\\' {
            out.push(b);
            continue;
        }
        match bytes.next() {
            Some(b't') => out.push(b'\t'),
            Some(b'n') => out.push(b'\n'),
            Some(b'\\') | None => out.push(b'\\'),
            Some(other) => out.extend_from_slice(&[b'\\', other]),
        }
    }
    out
}

/// Prints verdicts as they come and remembers the worst number of a family.
pub struct Report<F: Family> {
    json: bool,
    worst: Code,
    family: PhantomData<F>,
}

impl<F: Family> Report<F> {
    /// A report that prints lines, or JSON objects with `json`.
    pub fn new(json: bool) -> Self {
        Self { json, worst: exit::OK, family: PhantomData }
    }

    /// Prints one verdict and folds it in.
    pub fn say(&mut self, verdict: &Verdict) -> Result<(), Error> {
        self.worst = F::worse(self.worst, F::code(verdict.state, verdict.kind));
        print(&if self.json { verdict.json() } else { verdict.line() })
    }

    /// Prints what was said into a part, in one write, and folds it in.
    pub fn say_part(&mut self, part: &Part<F>) -> Result<(), Error> {
        self.worst = F::worse(self.worst, part.worst);
        print(&part.text)
    }

    /// Folds in a number that no state stands for, such as a repair that did not repair.
    pub fn fold(&mut self, code: Code) {
        self.worst = F::worse(self.worst, code);
    }

    /// The worst number so far.
    pub fn code(&self) -> Code {
        self.worst
    }
}

/// Verdicts kept as text: many are printed in one write, and several threads make their own.
pub struct Part<F: Family> {
    json: bool,
    worst: Code,
    text: Vec<u8>,
    family: PhantomData<F>,
}

impl<F: Family> Part<F> {
    /// A part of a report that prints lines, or JSON objects with `json`; for so many verdicts, give or take.
    pub fn new(json: bool, likely: usize) -> Self {
        Self { json, worst: exit::OK, text: Vec::with_capacity(likely * 64), family: PhantomData }
    }

    /// Adds a verdict.
    pub fn say(&mut self, state: State, kind: Kind, subject: &str, detail: impl fmt::Display) {
        self.worst = F::worse(self.worst, F::code(state, kind));
        if self.json {
            self.text.extend_from_slice(&Verdict::new(state, kind, subject, detail.to_string()).json());
            return;
        }
        let begin = self.text.len();
        head(state, kind, subject.as_bytes(), &mut self.text);
        let at = self.text.len();
        // Memory takes everything.
        let _ = write!(self.text, "{detail}");
        let plain = |b: &u8| (b' '..0x7f).contains(b) && *b != b'\\';
        if self.text.len() > at && self.text[at..].iter().all(plain) {
            self.text.push(b'\n');
        } else {
            self.text.truncate(begin);
            self.text.extend_from_slice(&Verdict::new(state, kind, subject, detail.to_string()).line());
        }
    }
}

/// Writes bytes to standard output at once. A closed pipe ends the tool quietly, another cause with 74.
pub fn print(bytes: &[u8]) -> Result<(), Error> {
    if crate::origin::was_closed(1) {
        return Err(Error::new(exit::IO, "cannot write to standard output: it is closed"));
    }
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|cause| match cause.kind() {
        io::ErrorKind::BrokenPipe => Error::quiet(exit::IO),
        _ => Error::new(exit::IO, format!("cannot write to standard output: {}", cause_of(&cause))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_with_tab_newline_and_backslash_round_trips() {
        let verdict = Verdict::new(State::Short, Kind::Model, b"a\tb\nc\\d\xff".to_vec(), "1 byte \\ short");
        let line = verdict.line();
        assert_eq!(line.split(|b| *b == b'\n').count(), 2);
        assert_eq!(line.split(|b| *b == b'\t').count(), 4);
        assert_eq!(Verdict::parse(line.trim_ascii_end()), Some(verdict));
    }

    #[test]
    fn no_field_is_ever_empty() {
        let line = Verdict::new(State::Ok, Kind::Host, "", "").line();
        assert_eq!(line, b"ok\thost\t-\t-\n");
    }

    #[test]
    fn what_is_not_a_verdict_is_not_read_as_one() {
        for line in
            ["", "ok", "ok\tmodel", "ok\tmodel\tx", "OK\tmodel\tx\ty", "ok\tnothing\tx\ty", "ok\tmodel\t\ty"]
        {
            assert_eq!(Verdict::parse(line.as_bytes()), None, "{line:?}");
        }
    }

    #[test]
    fn json_of_hostile_bytes_is_one_object_on_one_line() {
        let verdict = Verdict::new(State::Short, Kind::Model, b"a\"\nb\xff".to_vec(), "1 byte \\ short");
        let line = verdict.json();
        assert_eq!(line.split(|b| *b == b'\n').count(), 2);
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(value["state"], "short");
        assert_eq!(value["kind"], "model");
        assert_eq!(value["subject"], "a\"\nb\u{fffd}");
        assert_eq!(value["detail"], "1 byte \\ short");
        assert_eq!(value.as_object().unwrap().len(), 4);
    }

    #[test]
    fn words_are_distinct() {
        for (i, a) in State::ALL.iter().enumerate() {
            assert!(State::ALL[i + 1..].iter().all(|b| a.word() != b.word()));
            assert_eq!(State::from_word(a.word().as_bytes()), Some(*a));
        }
    }
}
