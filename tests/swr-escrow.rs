//! `swr-escrow` as a process.
