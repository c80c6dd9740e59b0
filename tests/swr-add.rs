//! `swr-add` as a process.
