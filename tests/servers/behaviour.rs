//! Answers a server may give: the right ones, and each way of being wrong that a download has to survive.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Asked, Server, Wire};

/// The entity tag of the files here.
pub const TAG: &str = "\"one\"";

/// Bytes that look random and are the same in every run; they begin as a model does.
pub fn content(seed: u64, size: usize) -> Arc<Vec<u8>> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = b"GGUF".to_vec();
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(size);
    Arc::new(bytes)
}

/// A server as it should be: HEAD, ranges, If-Range, 416.
pub fn good(file: &[u8], tag: &str, asked: &Asked, wire: &mut Wire) {
    let length = file.len().to_string();
    let fresh = asked.header("if-range").is_none_or(|t| t == tag);
    let headers = |wire: &mut Wire, status, length: &str, range: &str| {
        let mut headers = vec![("content-length", length), ("etag", tag), ("accept-ranges", "bytes")];
        if !range.is_empty() {
            headers.push(("content-range", range));
        }
        wire.head(status, &headers);
    };
    match asked.range().filter(|_| fresh) {
        _ if asked.method == "HEAD" => headers(wire, 200, &length, ""),
        None => {
            headers(wire, 200, &length, "");
            wire.body(file);
        }
        Some((first, _)) if first >= file.len() => {
            headers(wire, 416, "0", &format!("bytes */{length}"));
        }
        Some((first, last)) => {
            let last = last.unwrap_or(file.len() - 1).min(file.len() - 1);
            let part = &file[first..=last];
            headers(wire, 206, &part.len().to_string(), &format!("bytes {first}-{last}/{length}"));
            wire.body(part);
        }
    }
}

/// A server of one file, as it should be.
pub fn serving(file: &Arc<Vec<u8>>) -> Server {
    let file = file.clone();
    Server::start(move |asked, wire| good(&file, TAG, asked, wire))
}

/// HEAD as it should be, GET by `then`.
pub fn after_head(
    file: Arc<Vec<u8>>,
    then: impl Fn(usize, &[u8], &Asked, &mut Wire) + Send + Sync + 'static,
) -> impl Fn(&Asked, &mut Wire) + Send + Sync + 'static {
    let count = AtomicUsize::new(0);
    move |asked, wire| {
        if asked.method == "HEAD" {
            good(&file, TAG, asked, wire);
        } else {
            then(count.fetch_add(1, Ordering::SeqCst), &file, asked, wire);
        }
    }
}

/// The first `cut` bytes of an answer that promises all from `first` on.
pub fn cut(file: &[u8], first: usize, cut: usize, wire: &mut Wire) {
    let length = (file.len() - first).to_string();
    let range = format!("bytes {first}-{}/{}", file.len() - 1, file.len());
    let mut headers = vec![("content-length", length.as_str()), ("etag", TAG)];
    if first > 0 {
        headers.push(("content-range", &range));
    }
    wire.head(if first > 0 { 206 } else { 200 }, &headers);
    wire.body(&file[first..(first + cut).min(file.len())]);
}

/// The error page of a CDN.
pub const PAGE: &str = "<!DOCTYPE html><html><body>Requested Range Not Satisfiable</body></html>";
