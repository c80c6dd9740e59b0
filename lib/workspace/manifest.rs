//! The workspace manifest: a header line, one entry a line, then signature lines, as exact bytes.
//!
//! A signature covers the exact bytes above the first signature line; nothing is canonicalised, so nothing can be
//! canonicalised in two ways. Lines that are not changed keep their bytes.

use std::ops::Range;

use contract::{Error, exit};
use files::digest::Sha;

use crate::entry::Entry;
use crate::fields::{Object, Path, Short, Text, fields};
use crate::json;
use crate::reading::Reading;

/// What is said of a manifest of another version.
const VERSION: &str = "and this swr reads version 1";
/// A larger manifest is refused before it is parsed.
pub const LIMIT: usize = 4 << 20;

/// A parsed manifest.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The first line.
    pub header: Header,
    /// The entries in file order, each with its bytes.
    pub lines: Vec<Line<'static>>,
    /// The exact bytes that signatures cover: everything above the first signature line.
    pub body: Vec<u8>,
    /// The signature lines, unchecked.
    pub signatures: Vec<Signature>,
}

/// The header line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// Grows with every signing; an older one than was accepted before is refused.
    pub seq: u64,
    /// When it was signed, `YYYY-MM-DDTHH:MM:SSZ`; empty before the first signing.
    pub created: String,
    /// Who signed it, for a person; the keys decide.
    pub signer: String,
    /// The workspace root: an absolute path, `~`, or a path below it that begins with `~/`. Any bytes.
    pub root: Vec<u8>,
}

/// An entry and the bytes it was read from or will be written as, without newline.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// What the bytes say.
    pub entry: Entry<'a>,
    pub(crate) raw: Raw,
}

/// Where a line's bytes are.
#[derive(Clone, Debug)]
pub(crate) enum Raw {
    /// In the manifest's body.
    Body(Range<usize>),
    /// Not there yet.
    New(Vec<u8>),
}

/// One signature line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// The algorithm's name.
    pub algorithm: String,
    /// Which key made it.
    pub key: String,
    /// The signature in the algorithm's own text form.
    pub value: String,
}

fields! {
    /// The header line.
    Head<'a> { swr: u64, seq: u64, created: Text<Short<'a>>, signer: Text<Short<'a>>, root: Text<Path> }
}

/// What a signature is about: exact bytes, and the lines below them.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    /// Of the header in these bytes.
    pub seq: u64,
    /// Everything above the first signature line.
    pub body: &'a [u8],
    /// Unchecked.
    pub signatures: &'a [Signature],
}

impl Signed<'_> {
    /// SHA-256 of the body: what a digest approval names.
    pub fn digest(&self) -> Sha {
        let mut hasher = files::digest::Hasher::default();
        hasher.update(self.body);
        hasher.finish()
    }
}

impl Header {
    /// The header of a manifest that was never signed.
    pub fn new(root: &[u8]) -> Self {
        Self { seq: 0, created: String::new(), signer: String::new(), root: root.to_vec() }
    }

    /// The header line, without newline.
    pub fn to_json(&self) -> String {
        let mut o = Object::new();
        o.raw("swr", "1");
        o.raw("seq", &self.seq.to_string());
        o.text("created", &self.created);
        o.text("signer", &self.signer);
        o.text("root", &crate::name::encode(&self.root));
        o.end()
    }

    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        // Before anything else: another version may have other keys, and is not broken for that.
        let version = line.strip_prefix("{\"swr\":").and_then(|rest| rest.split([',', '}']).next());
        if let Some(version) = version.and_then(|v| v.parse::<u64>().ok()).filter(|v| *v != 1) {
            return Err(format!("version {version}, {VERSION}"));
        }
        let mut head: Head<'_> = json::read(line)?;
        match head.swr.take() {
            Some(1) => {}
            Some(version) => return Err(format!("version {version}, {VERSION}")),
            None => return Err("the first line is no swr header".into()),
        }
        let header = Self {
            seq: head.seq.take().ok_or("no 'seq'")?,
            created: head.created.take().ok_or("no 'created'")?.0.0.into_owned(),
            signer: head.signer.take().ok_or("no 'signer'")?.0.0.into_owned(),
            root: head.root.take().ok_or("no 'root'")?.0.0,
        };
        head.done()?;
        let below = header.root.strip_prefix(b"~/").or(header.root.strip_prefix(b"/"));
        if header.root != b"~" && header.root != b"/" && !below.is_some_and(crate::name::is_contained) {
            return Err("'root' is neither absolute nor below '~'".into());
        }
        Ok(header)
    }
}

impl Signature {
    /// The signature line, without newline.
    pub fn to_json(&self) -> String {
        let mut o = Object::new();
        o.text("sig", &self.algorithm);
        o.text("key", &self.key);
        o.text("value", &self.value);
        o.end()
    }
}

impl<'a> Line<'a> {
    /// A line for a new or changed entry.
    pub fn new(entry: Entry<'a>) -> Self {
        let raw = Raw::New(entry.to_json().into_bytes());
        Self { entry, raw }
    }
}

impl Manifest {
    /// A manifest without entries.
    pub fn empty(root: &[u8]) -> Self {
        let mut new =
            Self { header: Header::new(root), lines: Vec::new(), body: Vec::new(), signatures: Vec::new() };
        new.rebuild();
        new
    }

    /// Parses exact bytes. Every deviation is an error in words that names the line.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let (header, lines) = Reading::whole(bytes)?;
        let body = bytes[..lines.end.unwrap_or(bytes.len())].to_vec();
        let owned = |line: Line| Line { entry: line.entry.into_owned(), raw: line.raw };
        let entries = lines.entries.into_iter().map(owned).collect();
        Ok(Self { header, lines: entries, body, signatures: lines.signatures })
    }

    /// Parses, or ends with the contract's `bad`, 4.
    pub fn parse_or_bad(bytes: &[u8]) -> Result<Self, Error> {
        Self::parse(bytes).map_err(|what| unusable(&what))
    }

    /// The entry with this id.
    pub fn entry(&self, id: &str) -> Option<&Entry<'static>> {
        self.lines.iter().map(|l| &l.entry).find(|e| e.id == id)
    }

    /// Puts an entry in: in the place of the one with its id, else at the end. Signatures no longer fit and go.
    pub fn put(&mut self, entry: Entry<'static>) {
        let line = Line::new(entry);
        match self.lines.iter_mut().find(|l| l.entry.id == line.entry.id) {
            Some(old) => *old = line,
            None => self.lines.push(line),
        }
        self.rebuild();
    }

    /// Makes the body from header and lines, and drops the signatures.
    pub fn rebuild(&mut self) {
        let old = std::mem::replace(&mut self.body, self.header.to_json().into_bytes());
        self.body.push(b'\n');
        for line in &mut self.lines {
            let at = self.body.len();
            match &line.raw {
                Raw::Body(range) => self.body.extend_from_slice(&old[range.clone()]),
                Raw::New(bytes) => self.body.extend_from_slice(bytes),
            }
            line.raw = Raw::Body(at..self.body.len());
            self.body.push(b'\n');
        }
        self.signatures.clear();
    }

    /// The bytes of one of its lines, without newline.
    pub fn raw<'a>(&'a self, line: &'a Line) -> &'a [u8] {
        match &line.raw {
            Raw::Body(range) => &self.body[range.clone()],
            Raw::New(bytes) => bytes,
        }
    }

    /// The whole manifest as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.body.clone();
        for signature in &self.signatures {
            bytes.extend_from_slice(signature.to_json().as_bytes());
            bytes.push(b'\n');
        }
        bytes
    }

    /// What its signatures are about.
    pub fn signed(&self) -> Signed<'_> {
        Signed { seq: self.header.seq, body: &self.body, signatures: &self.signatures }
    }

    /// SHA-256 of the body: what a digest approval names.
    pub fn digest(&self) -> Sha {
        self.signed().digest()
    }
}

/// The contract's `bad`, 4, of a manifest that cannot be parsed.
pub fn unusable(what: &str) -> Error {
    let hint = if what.ends_with(VERSION) {
        "run the toolkit that wrote it; nothing here says that anything is damaged"
    } else {
        "bring back a copy of it, or the newer toolkit that wrote it; or move it aside and swr autopilot makes a new one"
    };
    Error::new(exit::swr::MANIFEST, format!("the manifest is unusable: {what}")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = concat!(
        r#"{"swr":1,"seq":3,"created":"2026-11-30T00:00:00Z","signer":"box","root":"~"}"#,
        "\n",
        r#"{"id":"shim","path":".shim/npx","kind":"file","tier":0,"size":3,"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","mode":"0755","restore":"true","timeout_s":5}"#,
        "\n",
        r#"{"id":"src","path":"llama.cpp","kind":"tree","tier":2,"sentinels":["ggml/src/ggml.c"],"files":10,"bytes":99,"count":{"SKILL.md":2},"members":[{"path":"run.sh","mode":"0755"},{"path":"e","dir":true,"mode":"0755"},{"path":"l","target":"../x"}],"needs":["shim"]}"#,
        "\n",
    );

    #[test]
    fn an_entry_written_again_has_the_same_bytes() {
        let manifest = Manifest::parse(BODY.as_bytes()).unwrap();
        assert_eq!(manifest.to_bytes(), BODY.as_bytes());
        for line in &manifest.lines {
            assert_eq!(line.entry.to_json().as_bytes(), manifest.raw(line));
        }
        assert_eq!(manifest.header.to_json(), BODY.lines().next().unwrap());
    }

    #[test]
    fn the_body_ends_where_the_first_signature_begins() {
        let signed = format!("{BODY}{}\n", r#"{"sig":"hmac-sha256","key":"k","value":"00"}"#);
        let manifest = Manifest::parse(signed.as_bytes()).unwrap();
        assert_eq!(manifest.body, BODY.as_bytes());
        assert_eq!(manifest.signatures.len(), 1);
        assert!(Manifest::parse(format!("{signed}{}\n", BODY.lines().nth(1).unwrap()).as_bytes()).is_err());
    }

    #[test]
    fn another_version_is_refused_as_that_whatever_its_keys_are() {
        for (header, version) in
            [(r#"{"swr":2,"seq":1,"new":[{}]}"#, "2"), (r#"{"swr":2}"#, "2"), (r#"{"seq":1,"swr":0}"#, "0")]
        {
            let what = Manifest::parse(format!("{header}\n{{\"of\":\"its own\"}}\n").as_bytes()).unwrap_err();
            assert_eq!(what, format!("line 1: version {version}, and this swr reads version 1"));
            let error = unusable(&what);
            assert_eq!(error.code, exit::swr::MANIFEST);
            assert!(error.hint.unwrap().starts_with("run the toolkit that wrote it"));
        }
        assert!(unusable("line 1: not an object").hint.unwrap().starts_with("bring back a copy"));
    }

    #[test]
    fn d26_text_that_could_be_read_in_two_ways_is_unusable() {
        for (from, to) in [
            (r#""restore":"true""#, r#""restore":"evil","restore":"true""#),
            (r#""restore":"true""#, r#""restore":"true","restore":"evil""#),
            (r#""restore":"true""#, r#""restore":"true","\u0072estore":"evil""#),
            (r#""timeout_s":5}"#, r#""timeout_s":5} {"swr":1}"#),
            (r#"{"swr":1"#, "\u{feff}{\"swr\":1"),
            (r#""timeout_s":5"#, r#""timeout_s":1e400"#),
            (r#""timeout_s":5"#, r#""timeout_s":0"#),
            (r#""timeout_s":5"#, r#""timeout_s":null"#),
            (r#""restore":"true""#, r#""restore":"true\u0000""#),
            (r#""restore":"true""#, "\n\"restore\":\"true\""),
            ("}\n{\"id\":\"src\"", "}{\"id\":\"src\""),
            ("}\n{\"id\":\"src\"", "}\n\n{\"id\":\"src\""),
            (r#""timeout_s":5"#, r#""timeout_s":5,"unknown":1"#),
            (r#""swr":1"#, r#""swr":2"#),
            (r#""root":"~""#, r#""root":"x""#),
            (r#""root":"~""#, r#""root":"/a/../b""#),
            (r#"".shim/npx""#, r#""../npx""#),
            (r#"".shim/npx""#, r#""/npx""#),
            (r#"".shim/npx""#, r#""~/a/../../npx""#),
            (r#""id":"src""#, r#""id":"shim""#),
            (r#""kind":"file""#, r#""kind":"blob","sentinels":[]"#),
            (r#""mode":"0755","restore""#, r#""mode":"755","restore""#),
            (r#""mode":"0755","restore""#, r#""mode":"9999","restore""#),
            ("ggml/src/ggml.c", "../../etc/passwd"),
        ] {
            assert!(BODY.contains(from), "{from}");
            assert!(Manifest::parse(BODY.replacen(from, to, 1).as_bytes()).is_err(), "{to}");
        }
        assert!(Manifest::parse(BODY.trim_end().as_bytes()).is_err());
        assert!(Manifest::parse(b"").is_err());
    }

    #[test]
    fn what_is_escaped_in_one_line_is_not_in_the_next() {
        let text = BODY.replace(r#""restore":"true""#, r#""restore":"a \"b\"\n$(c)""#);
        let text = text.replace(r#""needs":["shim"]"#, r#""restore":"\u0065 \\","needs":["sh\u0069m"] "#);
        let manifest = Manifest::parse(text.as_bytes()).unwrap();
        let (shim, src) = (&manifest.lines[0].entry, &manifest.lines[1].entry);
        assert_eq!(shim.restore.as_deref(), Some("a \"b\"\n$(c)"));
        assert_eq!((src.restore.as_deref(), src.needs.as_slice()), (Some("e \\"), &["shim".into()][..]));
        let one =
            |line: &str| Manifest::parse(format!("{}\n{line}\n", BODY.lines().next().unwrap()).as_bytes());
        let error = one(r#"{"id":"a","size":"1"}"#).unwrap_err();
        assert_eq!(error, r#"line 2: invalid type: string "1", expected u64 (column 20)"#);
    }

    #[test]
    fn changing_an_entry_drops_the_signatures_and_keeps_the_other_lines() {
        let signed = format!("{BODY}{}\n", r#"{"sig":"hmac-sha256","key":"k","value":"00"}"#);
        let mut manifest = Manifest::parse(signed.as_bytes()).unwrap();
        let mut entry = manifest.entry("shim").unwrap().clone();
        entry.tier = 1;
        manifest.put(entry);
        assert!(manifest.signatures.is_empty());
        assert_eq!(manifest.lines.len(), 2);
        assert_eq!(
            String::from_utf8(manifest.to_bytes()).unwrap(),
            BODY.replace(r#""tier":0"#, r#""tier":1"#)
        );
    }
}
