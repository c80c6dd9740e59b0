//! `swr-sign` as a process.
