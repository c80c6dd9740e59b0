//! `swr-stats` as a process.
