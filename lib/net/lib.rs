//! The only crate with sockets: what may be asked, over which proxy, trusting whom, and for how long.
//!
//! One [`Client`] asks for one thing at a time. Redirects are followed here, each hop checked against the
//! [`Allow`] list; a token leaves only for the origin it belongs to; every wait ends on the monotonic clock.

mod allow;
mod answer;
mod client;
mod failure;
mod proxy;
mod retry;
mod roots;
mod url;

#[cfg(test)]
#[path = "../../tests/private_home.rs"]
mod private_home;

pub use allow::Allow;
pub use answer::{Answer, Body, Part};
pub use client::{Bounds, Client, Method, Request, Token};
pub use failure::{Cause, Failure};
pub use retry::Retry;
pub use url::{Origin, Url, segment};
