//! `sh-timeout` as a process.
