//! `swr-why` as a process.
