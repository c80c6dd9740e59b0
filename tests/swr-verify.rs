//! `swr-verify` as a process.
