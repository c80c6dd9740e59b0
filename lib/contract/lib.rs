//! The contract every tool keeps: exit codes, verdict lines, consent, environment, log, clock.
//!
//! A whole tool's frame is
//! `fn main() -> ExitCode { contract::run::<Guard>(include_str!("help.txt"), go) }`;
//! the type names its exit family. The same contract in words is the page `selfheal.7`.

pub mod cli;
pub mod clock;
pub mod exit;
pub mod home;
pub mod log;
pub mod message;
pub mod mode;
pub mod names;
pub mod origin;
pub mod run;
#[cfg(all(panic = "abort", target_env = "musl"))]
mod unwind;
pub mod verdict;

pub use cli::Args;
pub use exit::{Code, Guard, Swr};
pub use message::Error;
pub use mode::Fix;
pub use run::run;
pub use verdict::{Kind, Part, Report, State, Verdict};
