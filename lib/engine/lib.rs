//! The inference engine as it lies on the disk: where it is, for which CPU it was built, whether it is healthy.
//!
//! A kept engine is a directory `$SELFHEAL_HOME/engine/<cpu>/` with the programs of [`PROGRAMS`] and a
//! [`stamp`]; it is written as a whole by `llama-rebuild` and only read by everyone else.

pub mod cpu;
pub mod health;
mod identity;
pub mod place;
pub mod stamp;
pub mod threads;

#[cfg(test)]
#[path = "../../tests/private_home.rs"]
mod private_home;

pub use cpu::{Cpu, cpu};
pub use health::{Health, health, unswayed};
pub use place::{Engine, PROGRAMS, Place, find, kept_dir};
pub use stamp::Stamp;
