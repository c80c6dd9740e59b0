//! What the toolkit knows of models and of the engine: `manifest.json`, routing, budgets.

pub mod budget;
pub mod manifest;
pub mod routing;
pub mod tps;

pub use manifest::{Archive, Engine, Manifest, Model, Package};
