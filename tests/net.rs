//! `lib/net` against real sockets.
