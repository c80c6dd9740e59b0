//! `swr-restore` as a process.
