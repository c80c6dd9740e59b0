//! `show`: the speed that each role's budget is made of, and where it comes from.

use std::fmt::Write as _;

use contract::{Code, Error, exit, message, verdict};
use models::{Model, tps};
use serde_json::json;

use crate::Here;

/// What a role's speed is when nothing was measured with this CPU and engine.
const DEFAULT: &str = "default (unmeasured)";

/// One row a role: `ROLE<TAB>TOKENS PER SECOND<TAB>SOURCE<TAB>DATE<TAB>ENGINE`, or one JSON object.
pub(crate) fn all<'m>(
    here: &Here,
    models: impl Iterator<Item = &'m Model>,
    json: bool,
) -> Result<Code, Error> {
    let roles = tps::roles(&tps::path()?).unwrap_or_default();
    let mut text = String::new();
    for model in models {
        let record = tps::record(&roles, &model.role)
            .filter(|record| record.cpu == here.cpu && Some(&record.engine) == here.engine.as_ref());
        let speed = record.as_ref().map_or(model.default_tps, |record| record.tps);
        let source = if record.is_some() { "measured" } else { DEFAULT };
        let (date, engine) = record.map(|record| (record.date, record.engine)).unzip();
        if json {
            let row =
                json!({"role": model.role, "tps": speed, "source": source, "date": date, "engine": engine});
            text.push_str(&row.to_string());
        } else {
            let field = |text: Option<String>| {
                let text = message::one_line(&text.unwrap_or_default());
                if text.is_empty() { "-".to_owned() } else { text }
            };
            let (role, date, engine) = (&model.role, field(date), field(engine));
            let _ = write!(text, "{role}\t{speed}\t{source}\t{date}\t{engine}");
        }
        text.push('\n');
    }
    verdict::print(text.as_bytes())?;
    Ok(exit::OK)
}
