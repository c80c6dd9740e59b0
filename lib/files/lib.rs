//! Files that survive a crash: atomic writes, locks, digests, records. Whatever writes takes a `&Fix`.

pub mod atomic;
pub mod beneath;
pub mod bounded;
pub mod claim;
pub mod digest;
pub mod lock;
pub mod memory;
pub mod open;
pub mod partial;
pub mod process_lock;
pub mod records;
pub mod space;
pub mod tree;

#[cfg(test)]
#[path = "../../tests/private_home.rs"]
mod private_home;
