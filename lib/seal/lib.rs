//! The only crate with cryptography beyond SHA-256: keys and signature lines of the workspace manifest.

pub mod signing;
pub mod standing;

pub use signing::{Access, Refusal, SigningKey};
pub use standing::Standing;
