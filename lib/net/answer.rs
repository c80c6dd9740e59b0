//! An answer: status, headers, and a body that is counted and watched while it is read.

use std::io::Read as _;
use std::time::{Duration, Instant};

use ureq::http::HeaderMap;

use crate::client::read_failure;
use crate::failure::{Cause, Failure};
use crate::retry;
use crate::url::Url;

/// Fewer bytes than this within the stall bound are a stall: one byte a second is no download.
const TRICKLE: u64 = 16 << 10;

/// What a server answered.
pub struct Answer {
    /// The status, 100 to 999.
    pub status: u16,
    /// The address that gave this answer, after redirects.
    pub url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: ureq::Body,
    pub(crate) stall: Duration,
}

/// What a `Content-Range` header of a 206 says (RFC 9110, section 14.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Offset of the first byte.
    pub first: u64,
    /// Offset of the last byte.
    pub last: u64,
    /// Size of the whole, when told.
    pub total: Option<u64>,
}

impl Answer {
    /// A header's value when it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|v| v.to_str().ok())
    }

    /// `Content-Length`.
    pub fn length(&self) -> Option<u64> {
        self.header("content-length").and_then(|v| v.trim().parse().ok())
    }

    /// `Content-Range`.
    pub fn part(&self) -> Option<Part> {
        part(self.header("content-range")?)
    }

    /// Whether this is an answer with content, which claims to be a web page. (A redirect's body often is one.)
    pub fn is_page(&self) -> bool {
        if !matches!(self.status, 200 | 206) {
            return false;
        }
        let kind = self.header("content-type").unwrap_or_default().trim().to_ascii_lowercase();
        ["text/html", "application/xhtml+xml"].iter().any(|page| kind.starts_with(page))
    }

    /// The failure that the status stands for; `None` below 400.
    pub fn failure(&self) -> Option<Failure> {
        let cause = match self.status {
            ..=399 => return None,
            404 | 410 => Cause::NotFound,
            401 | 403 | 451 => Cause::Forbidden,
            407 => Cause::Proxy,
            429 | 503 => Cause::Busy,
            408 | 425 | 500.. => Cause::Server,
            _ => Cause::Protocol,
        };
        let mut failure = Failure::new(cause, format!("{} answers {}", self.url, self.status));
        failure.wait = self.header("retry-after").and_then(|v| retry::after(v, self.header("date")));
        Some(failure)
    }

    /// The body, to be read.
    pub fn into_body(self) -> Body {
        Body {
            source: self.url.origin.to_string(),
            reader: self.body.into_reader(),
            stall: self.stall,
            window: (Instant::now(), 0),
        }
    }
}

fn part(value: &str) -> Option<Part> {
    let (range, total) = value.trim().strip_prefix("bytes")?.trim_start().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let part = Part {
        first: first.parse().ok()?,
        last: last.parse().ok()?,
        total: if total == "*" { None } else { Some(total.parse().ok()?) },
    };
    (part.first <= part.last && part.total.is_none_or(|t| part.last < t)).then_some(part)
}

/// A body. Its end is reported as `Ok(0)` only when the server's own framing says that it is complete; a body
/// without framing ends where the connection does, so the caller counts.
pub struct Body {
    source: String,
    reader: ureq::BodyReader<'static>,
    stall: Duration,
    /// Start of the current stall window and the bytes since then.
    window: (Instant, u64),
}

impl Body {
    /// The next bytes, 0 at the end.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        let n = self.reader.read(buffer).map_err(|cause| read_failure(cause, &self.source))?;
        self.window.1 += n as u64;
        if self.window.0.elapsed() >= self.stall {
            if n > 0 && self.window.1 < TRICKLE {
                let detail = format!("{} bytes from {} in {:?}", self.window.1, self.source, self.stall);
                return Err(Failure::new(Cause::Stalled, detail));
            }
            self.window = (Instant::now(), 0);
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_range_is_read_or_refused() {
        let whole = |first, last, total| Some(Part { first, last, total });
        let table = [
            ("bytes 0-9/10", whole(0, 9, Some(10))),
            ("bytes 5-5/*", whole(5, 5, None)),
            ("bytes */10", None),
            ("bytes 9-0/10", None),
            ("bytes 0-10/10", None),
            ("bytes 0-9/x", None),
            ("items 0-9/10", None),
            ("bytes -9/10", None),
            ("", None),
        ];
        for (value, expected) in table {
            assert_eq!(part(value), expected, "{value:?}");
        }
    }
}
