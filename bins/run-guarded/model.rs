//! A model proven before anything executes it.

use std::path::PathBuf;

use contract::{Error, State};
use gguf::Pin;
use models::Model;

/// A model that may be run.
pub(crate) struct Ready<'m> {
    /// Its entry in the manifest.
    pub(crate) model: &'m Model,
    /// The file.
    pub(crate) path: PathBuf,
    /// Whether something about it is less than `ok`.
    pub(crate) degraded: Option<String>,
    /// Tokens it was made for.
    pub(crate) context_length: Option<u64>,
    /// Its chat template.
    pub(crate) chat_template: Option<String>,
}

/// Proves a model by size and structure, and by its hash where that is asked for or where the structure leaves a
/// doubt and a pin can end it. The inner error is the verdict on a model that must not be run.
pub(crate) fn prove(model: &Model) -> Result<Result<Ready<'_>, gguf::Finding>, Error> {
    let path = model.path()?;
    let pin = Pin { bytes: Some(model.bytes), sha256: model.sha256 };
    let deep = contract::home::deep_verify();
    let mut finding = gguf::verify(&path, &pin, deep);
    if finding.state == State::Degraded && pin.sha256.is_some() && !deep {
        finding = gguf::verify(&path, &pin, true);
    }
    let degraded = match finding.state {
        State::Ok => None,
        State::Degraded => Some(finding.detail),
        _ => return Ok(Err(finding)),
    };
    let values = gguf::values(&path);
    Ok(Ok(Ready {
        model,
        path,
        degraded,
        context_length: values.context_length,
        chat_template: values.chat_template,
    }))
}
