//! Why a request did not bring what was asked for, in the words a verdict begins with.

use std::fmt;
use std::time::Duration;

/// The sort of failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The server has no such file (404, 410).
    NotFound,
    /// The server will not give it (401, 403, 451).
    Forbidden,
    /// The server has something else than what is pinned.
    Changed,
    /// The server asks to wait (429, 503).
    Busy,
    /// The server failed (another 5xx, 408, 425).
    Server,
    /// The answer is no HTTP, or contradicts the request.
    Protocol,
    /// Too few bytes for too long.
    Stalled,
    /// The total bound is over.
    Expired,
    /// The connection ended before the answer did.
    Lost,
    /// No connection: name, route or port.
    Unreachable,
    /// The proxy: its settings, or what it answered.
    Proxy,
    /// No trust: certificate, trust store or handshake.
    Tls,
    /// This toolkit does not go there: allow list, downgrade, too many redirects.
    Refused,
    /// A web page in place of the file.
    Page,
    /// What came is not what the server promised.
    Corrupt,
    /// The file could not be written: space, size limit, permission.
    Disk,
}

impl Cause {
    /// In the words of a verdict.
    pub fn words(self) -> &'static str {
        match self {
            Self::NotFound => "not found",
            Self::Forbidden => "forbidden",
            Self::Changed => "changed",
            Self::Busy => "busy",
            Self::Server => "server",
            Self::Protocol => "protocol",
            Self::Stalled => "stalled",
            Self::Expired => "expired",
            Self::Lost => "connection lost",
            Self::Unreachable => "unreachable",
            Self::Proxy => "proxy",
            Self::Tls => "tls",
            Self::Refused => "refused",
            Self::Page => "web page",
            Self::Corrupt => "corrupt",
            Self::Disk => "disk",
        }
    }

    /// Whether asking again is pointless until a person changes something upstream or in the manifest.
    pub fn permanent(self) -> bool {
        matches!(self, Self::NotFound | Self::Forbidden | Self::Changed)
    }

    /// Whether the same request may succeed moments later.
    pub fn passing(self) -> bool {
        matches!(self, Self::Busy | Self::Server | Self::Stalled | Self::Lost | Self::Unreachable)
    }
}

/// A failed request.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The sort.
    pub cause: Cause,
    /// The rest of the sentence; never holds a query string, a credential or a control character.
    pub detail: String,
    /// How long the server asks to wait (Retry-After).
    pub wait: Option<Duration>,
}

impl Failure {
    /// A failure; the detail is kept to one line.
    pub fn new(cause: Cause, detail: impl AsRef<str>) -> Self {
        Self { cause, detail: contract::message::one_line(detail.as_ref()), wait: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.cause.words(), self.detail)
    }
}
