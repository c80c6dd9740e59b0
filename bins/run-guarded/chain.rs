//! The steps of one call: retries of a model, then the scout, all under one deadline.

use std::time::Duration;

use contract::clock::Deadline;
use contract::exit::guard;
use contract::message::note;
use contract::{Code, Error};
use models::{Model, budget, routing, tps};

use crate::answer::NoAnswer;
use crate::attempt::{self, Question, Text};
use crate::command::{self, Step, Style};
use crate::failure::{Failure, seconds};
use crate::model::{self, Ready};
use crate::{programs, template};

/// What is left of a deadline must be worth a run.
const WORTH: Duration = Duration::from_secs(1);

/// An answer and who gave it.
pub(crate) struct Answer<'m> {
    pub(crate) text: Text,
    pub(crate) by: Ready<'m>,
}

/// Everything that is known before the first run.
pub(crate) struct Chain<'a> {
    tool: &'a str,
    question: Question<'a>,
    candidates: Vec<&'a Model>,
    cpu: String,
    deadline: Deadline,
    runs: u32,
    /// Why the last run gave no answer, as a word; `model` while there was none.
    pub(crate) last: &'static str,
}

/// What a run's failure leads to.
enum After {
    /// One more run of the same model.
    Step(Step),
    /// The model is given up.
    GiveUp,
}

/// Which remedies a model has had; each is tried once.
#[derive(Default)]
struct Had {
    lost: bool,
    template: bool,
    count: bool,
}

impl<'a> Chain<'a> {
    /// A chain over candidates, best first. The runs of the first one get twice its budget together, and those of the
    /// scout after it the scout's own.
    pub(crate) fn new(tool: &'a str, question: Question<'a>, candidates: Vec<&'a Model>) -> Self {
        let mut chain = Self {
            tool,
            question,
            candidates,
            cpu: engine::cpu().id,
            deadline: Deadline::after(WORTH),
            runs: 0,
            last: "model",
        };
        let first = chain.candidates.first().map_or(Duration::ZERO, |m| chain.budget(m) * 2);
        chain.deadline = Deadline::after(first);
        chain
    }

    /// Asks the first candidate that is proven; after a failed run only the scout is left.
    pub(crate) fn answer(&mut self) -> Result<Answer<'a>, Error> {
        for model in self.candidates.clone() {
            if self.runs > 0 && model.role != routing::SCOUT {
                continue;
            }
            let ready = match model::prove(model)? {
                Ok(ready) => ready,
                Err(finding) => {
                    let (role, state) = (&model.role, finding.state.word());
                    note(self.tool, &format!("model not usable: {role}: {state} - {}", finding.detail));
                    continue;
                }
            };
            if self.runs > 0 {
                // However late the one before it was stopped, the scout has its own budget.
                self.deadline = Deadline::after(self.budget(model));
            }
            if let Some(text) = self.ask(&ready)? {
                return Ok(Answer { text, by: ready });
            }
        }
        if self.runs > 0 {
            let runs = if self.runs == 1 { "one run" } else { &format!("{} runs", self.runs) };
            return Err(Error::new(guard::INFERENCE, format!("no answer: {runs} failed"))
                .hint("the causes stand above; gguf-verify --deep proves the model, llama-rebuild --status the engine"));
        }
        let roles: Vec<_> = self.candidates.iter().map(|m| m.role.as_str()).collect();
        if roles.is_empty() {
            return Err(Error::new(guard::MODEL, "no usable model: the manifest has no light role"));
        }
        let error = Error::new(guard::MODEL, format!("no usable model: {}", roles.join(", ")));
        Err(error.hint(format!("gguf-verify {}", roles.join(" "))))
    }

    /// Runs one model until it answers or is given up.
    fn ask(&mut self, ready: &Ready<'_>) -> Result<Option<Text>, Error> {
        let full = self.question.programs.full.as_ref();
        let mut step = full
            .map_or(Step { style: Style::Raw, counted: None, minimal: true }, |f| command::first(f, ready));
        let mut had = Had::default();
        loop {
            let limit = self.budget(ready.model).min(self.deadline.left());
            if limit < WORTH && self.runs > 0 {
                note(self.tool, &format!("no time left for another run of {}", ready.model.role));
                return Ok(None);
            }
            self.announce(ready, &step, limit);
            self.runs += 1;
            let failure = match attempt::run(&self.question, ready, &step, limit)? {
                Ok(text) => return Ok(Some(text)),
                Err(failure) => failure,
            };
            self.last = failure.word();
            match &failure {
                Failure::Engine { health, program } => return Err(programs::damaged(health, program)),
                Failure::Interrupted(signal) => {
                    let number = 128 + u8::try_from(*signal).unwrap_or(0);
                    return Err(Error::new(Code::transparent(number), failure.words()));
                }
                _ => note(self.tool, &format!("{}: {}", failure.words(), ready.model.role)),
            }
            match self.after(&failure, &step, &mut had, ready) {
                After::Step(next) => step = next,
                After::GiveUp => return Ok(None),
            }
        }
    }

    /// What to do about a failure.
    fn after(&self, failure: &Failure, step: &Step, had: &mut Had, ready: &Ready<'_>) -> After {
        let again = |style| After::Step(Step { style, ..step.clone() });
        let renders = self.question.programs.full.as_ref().is_some_and(command::renders);
        let minimal = || {
            if step.minimal {
                After::GiveUp
            } else {
                After::Step(Step { style: Style::Raw, minimal: true, ..step.clone() })
            }
        };
        match failure {
            Failure::Lost if !std::mem::replace(&mut had.lost, true) => again(step.style),
            Failure::UnknownTemplate if renders && step.style == Style::Known => again(Style::Own),
            Failure::NoAnswer(NoAnswer::ThinkOnly)
                if renders && matches!(step.style, Style::Own | Style::Known) && thinks(ready) =>
            {
                again(Style::Unthinking)
            }
            // A template that does not render still is one that the engine may know.
            Failure::Status(..) | Failure::Crashed(_)
                if matches!(step.style, Style::Own | Style::Unthinking)
                    && !std::mem::replace(&mut had.template, true) =>
            {
                again(Style::Known)
            }
            Failure::TooLong { tokens, .. }
                if self.fits(*tokens, ready) && !std::mem::replace(&mut had.count, true) =>
            {
                After::Step(Step { counted: Some(*tokens), ..step.clone() })
            }
            // The same model will be no faster, smaller or larger with fewer options.
            Failure::Expired { begun: true, .. } | Failure::OutOfMemory(_) | Failure::TooLong { .. } => {
                After::GiveUp
            }
            _ => minimal(),
        }
    }

    /// Whether a model was made for a prompt of so many tokens and a word of answer.
    fn fits(&self, tokens: u32, ready: &Ready<'_>) -> bool {
        let needed = u64::from(tokens) + u64::from(self.question.tokens.min(16)) + 4;
        ready.context_length.is_none_or(|most| needed <= most)
    }

    fn budget(&self, model: &Model) -> Duration {
        let engine = &self.question.programs.label;
        let measured = tps::path().ok().and_then(|path| tps::measured(&path, &model.role, &self.cpu, engine));
        budget::of(model, self.question.tokens, self.question.prompt.text.len(), measured)
    }

    fn announce(&self, ready: &Ready<'_>, step: &Step, limit: Duration) {
        let how = match (step.minimal, self.runs) {
            (true, _) => ", fewest options",
            (false, 0) => "",
            (false, _) => ", again",
        };
        let (role, tokens) = (&ready.model.role, self.question.tokens);
        note(self.tool, &format!("{role}, {tokens} tokens, at most {} s{how}", seconds(limit)));
    }
}

fn thinks(ready: &Ready<'_>) -> bool {
    ready.chat_template.as_deref().is_some_and(template::thinks)
}
