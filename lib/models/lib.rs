//! What the toolkit knows of models and of the engine: `manifest.json`, routing, budgets.

pub mod manifest;

pub use manifest::{Archive, Engine, Manifest, Model, Package};
