//! `llama-rebuild` as a process.
