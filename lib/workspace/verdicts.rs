//! Verdict lines on standard input, for the last program of a pipeline: its status is the answer, so what is no verdict,
//! and no verdict at all, is something that could not be checked.

use std::io::{BufRead as _, Read as _, StdinLock};

use contract::exit::Family as _;
use contract::message::{hint, note};
use contract::{Code, Error, Kind, State, Swr, Verdict, exit};

use crate::json::{self, Json};
use crate::read;

/// A longer line is given in pieces and is no verdict.
const LINE: u64 = 64 << 10;

/// The lines, and what they come to.
pub struct Verdicts {
    input: StdinLock<'static>,
    /// The last piece that was read, with its newline.
    piece: Vec<u8>,
    begins: bool,
    code: Code,
    good: u64,
    noise: u64,
}

/// A line, or a piece of a long one.
pub struct Piece<'a> {
    /// As it came, with its newline.
    pub bytes: &'a [u8],
    /// What it says.
    pub verdict: Option<Verdict>,
}

impl Verdicts {
    /// Standard input, which must be open and no terminal.
    pub fn open(example: &str) -> Result<Self, Error> {
        let input = read::no_terminal("verdict lines", example)?;
        Ok(Self { input, piece: Vec::new(), begins: true, code: exit::OK, good: 0, noise: 0 })
    }

    /// The next line; `None` at the end.
    pub fn read(&mut self) -> Result<Option<Piece<'_>>, Error> {
        self.piece.clear();
        let count = self.input.by_ref().take(LINE).read_until(b'\n', &mut self.piece);
        let count = count.map_err(|cause| Error::io("read", "standard input".as_ref(), &cause))?;
        if count == 0 {
            return Ok(None);
        }
        let line = self.piece.strip_suffix(b"\n");
        let is_whole = self.begins && (line.is_some() || (count as u64) < LINE);
        self.begins = line.is_some();
        let line = line.unwrap_or(&self.piece);
        let verdict = if is_whole { verdict(line) } else { None };
        if let Some(verdict) = &verdict {
            self.good += 1;
            self.code = Swr::worse(self.code, Swr::code(verdict.state, verdict.kind));
        } else {
            self.noise += u64::from(!line.trim_ascii().is_empty());
        }
        Ok(Some(Piece { bytes: &self.piece, verdict }))
    }

    /// The worst of what was read. What was no verdict is said and counts as `unknown`, and so does, unless `may_be_none`,
    /// that nothing came.
    pub fn end(self, tool: &str, may_be_none: bool) -> Code {
        let what = match (self.noise, self.good) {
            (0, 0) if !may_be_none => "no verdict line came: what was to be looked at is unknown".to_owned(),
            (0, _) => return self.code,
            (n, _) => format!("{n} of the lines read are no verdicts: what they stand for is unknown"),
        };
        note(tool, &what);
        hint("run what is in front of the pipe alone, and see how it ends");
        Swr::worse(self.code, Swr::code(State::Unknown, Kind::Manifest))
    }
}

/// A verdict in either form, as a line or as a JSON object.
fn verdict(line: &[u8]) -> Option<Verdict> {
    if !line.starts_with(b"{") {
        return Verdict::parse(line);
    }
    let Json::Object(pairs) = json::parse(line).ok()? else { return None };
    let get = |key: &str| match pairs.iter().find(|(k, _)| k == key) {
        Some((_, Json::Text(text))) => Some(&**text),
        _ => None,
    };
    let (state, kind) = (get("state")?.as_bytes(), get("kind")?.as_bytes());
    let (state, kind) = (State::from_word(state)?, Kind::from_word(kind)?);
    Some(Verdict::new(state, kind, get("subject")?, get("detail").unwrap_or("-")))
}
