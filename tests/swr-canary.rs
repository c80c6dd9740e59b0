//! `swr-canary` as a process.
