//! What a healthy workspace is: the signed manifest, its entries, and how they are told from damage.

pub mod accepted;
pub mod cache;
pub mod capture;
pub mod content;
pub mod entry;
pub mod escrow;
mod fields;
pub mod history;
pub mod json;
pub mod manifest;
pub mod merkle;
mod modes;
pub mod name;
pub mod order;
pub mod place;
pub mod read;
pub mod reading;
mod repository;
pub mod tree;
pub mod verdicts;
pub mod verify;
pub mod walk;
pub mod wipe;
pub mod work;

/// Every tool that knows workspaces allocates with it.
#[global_allocator]
static MEMORY: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

#[cfg(test)]
#[path = "../../tests/private_home.rs"]
mod private_home;

pub use entry::{Entry, Member, Shape};
pub use manifest::{Header, Line, Manifest, Signature, Signed};
