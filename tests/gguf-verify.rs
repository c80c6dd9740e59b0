//! `gguf-verify` as a process.
