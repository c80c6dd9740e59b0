//! What the toolkit knows of models and of the engine: `manifest.json`, learned pins, routing, budgets.

pub mod budget;
pub mod manifest;
pub mod pins;
pub mod routing;
pub mod tps;

#[cfg(test)]
#[path = "../../tests/private_home.rs"]
mod private_home;

pub use manifest::{Archive, Engine, Manifest, Model, Package};
pub use pins::Pin;
