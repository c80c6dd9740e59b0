//! The only crate with cryptography beyond SHA-256: keys and signature lines of the workspace manifest.

pub mod signing;

pub use signing::{Refusal, SigningKey};
