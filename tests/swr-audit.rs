//! `swr-audit` as a process.
