//! `$SELFHEAL_HOME/state/history.jsonl`: one line a call, in fix mode; neither what was asked nor what was answered.

use std::time::Instant;

use contract::message::{cause_of, note};
use contract::{Code, Error, Fix, clock, home};
use files::{atomic, records};

use crate::speed::Speed;

/// A file of this size becomes `history.jsonl.1`, in place of the one before.
const LIMIT: u64 = 1 << 20;

/// One call from its beginning.
pub(crate) struct Call {
    began: Instant,
    /// The role that was asked for.
    pub(crate) asked: String,
    /// The role that answered.
    pub(crate) answered: Option<String>,
    /// Tokens that the answer may have.
    pub(crate) tokens: u32,
    /// How fast the answer came.
    pub(crate) speed: Option<Speed>,
    /// `ok`, `degraded`, or why there is no answer.
    pub(crate) verdict: &'static str,
}

impl Call {
    /// A call that begins now. Until an engine is found, it is the engine that is missing.
    pub(crate) fn begin(asked: &str, tokens: u32) -> Self {
        let asked = asked.to_owned();
        Self { began: Instant::now(), asked, answered: None, tokens, speed: None, verdict: "engine" }
    }

    /// Records how it ended. A history that cannot be written is said once and never changes the status.
    pub(crate) fn record(&self, fix: &Fix, tool: &str, code: Code) {
        let written = append(fix, &self.line(code));
        if let Err(cause) = written {
            note(tool, &format!("cannot write history.jsonl: {cause}"));
        }
    }

    /// The line. Roles are words of letters, digits and `-`, so that nothing has to be escaped.
    fn line(&self, code: Code) -> String {
        let text = |role: &str| format!("\"{role}\"");
        let or_null = |value: Option<String>| value.unwrap_or_else(|| "null".to_owned());
        let wall = self.began.elapsed();
        let tps = self.speed.map(Speed::milli_tps).map(|m| format!("{}.{:03}", m / 1000, m % 1000));
        format!(
            "{{\"time\":\"{}\",\"asked\":\"{}\",\"answered\":{},\"n\":{},\"seconds\":{}.{:03},\"tokens\":{},\"tps\":{},\
             \"verdict\":\"{}\",\"code\":{}}}",
            clock::utc(clock::wall()),
            self.asked,
            or_null(self.answered.as_deref().map(text)),
            self.tokens,
            wall.as_secs(),
            wall.subsec_millis(),
            or_null(self.speed.map(|s| s.tokens.to_string())),
            or_null(tps),
            self.verdict,
            code.number(),
        )
    }
}

fn append(fix: &Fix, line: &str) -> Result<(), String> {
    let dir = home::selfheal_home().map_err(|e: Error| e.message)?.join("state");
    // A limit on the size of files must not end the call.
    files::space::survive_size_limit();
    atomic::make_dir(fix, &dir)
        .and_then(|()| records::append_rotating(fix, &dir.join("history.jsonl"), line.as_bytes(), LIMIT))
        .map_err(|cause| cause_of(&cause))
}
