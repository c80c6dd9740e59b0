//! The GGUF file format: header walk, exact expected size, why a file is not a model.
//!
//! Source of the format: `docs/gguf.md` of github.com/ggml-org/ggml (versions 2 and 3, little-endian) and what
//! llama.cpp's reader accepts. A header is walked with checked arithmetic in bounded memory, and the size it
//! describes is exact, so a file cut or extended by one byte is found without any pin. Only a hash proves the
//! content of the tensors: the word "verified" is kept for it.

mod flaw;
mod hash;
mod header;
mod holes;
mod impostor;
mod keys;
mod size;
mod source;
mod split;
mod tensors;
pub mod types;
mod values;
mod verify;

pub use flaw::Flaw;
pub use header::{Structure, examine};
pub use source::Source;
pub use split::Split;
pub use values::{Values, values};
pub use verify::{Finding, Pin, verify};
