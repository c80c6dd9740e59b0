//! `run-guarded` as a process.
