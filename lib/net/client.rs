//! One request at a time: bounds, redirects followed here, a token that leaves for its own origin alone.

use std::io;
use std::time::Duration;

use contract::clock::Deadline;
use contract::message::cause_of;
use ureq::tls::TlsConfig;
use ureq::{Agent, Error, Timeout};

use crate::allow::Allow;
use crate::answer::Answer;
use crate::failure::{Cause, Failure};
use crate::proxy::Proxies;
use crate::roots;
use crate::url::{Origin, Url};

/// Redirects followed for one request.
const REDIRECTS: usize = 5;
/// Bytes of status line and headers that are read.
const HEADERS: usize = 64 << 10;
/// One read of a body at most: fewer and larger ones cost least, measured against 64 KiB to 2 MiB.
const READ: usize = 1 << 20;

/// How long things may take, all on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Name, connection and handshake.
    pub connect: Duration,
    /// Without an answer, or with nearly no bytes.
    pub stall: Duration,
    /// Everything.
    pub total: Deadline,
}

/// A bearer token and the only origin that gets it.
pub struct Token {
    value: String,
    origin: Origin,
}

impl Token {
    /// A token for one https origin. A token that no header can carry is refused, without repeating it.
    pub fn new(value: &std::ffi::OsStr, origin: &Origin) -> Result<Self, Failure> {
        let value = value.to_str().filter(|v| v.bytes().all(|b| b.is_ascii_graphic()));
        let value = value.ok_or_else(|| Failure::new(Cause::Refused, "HF_TOKEN is not plain ASCII"))?;
        Ok(Self { value: value.to_owned(), origin: origin.clone() })
    }
}

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Headers alone.
    Head,
    /// Headers and body.
    Get,
}

/// One request.
pub struct Request<'a> {
    /// What is asked.
    pub method: Method,
    /// Of whom.
    pub url: &'a Url,
    /// From which byte to which; both inclusive, an open end is the last.
    pub range: Option<(u64, Option<u64>)>,
    /// A strong entity tag: the range is wanted only of that entity.
    pub if_range: Option<&'a str>,
    /// Whether a redirect already says enough, so that it is not followed.
    pub enough: fn(&Answer) -> bool,
}

impl<'a> Request<'a> {
    /// A request for the whole, redirects followed.
    pub fn new(method: Method, url: &'a Url) -> Self {
        Self { method, url, range: None, if_range: None, enough: |_| false }
    }
}

/// A client with its settings; connections are kept and used again.
pub struct Client {
    agent: Agent,
    allow: Allow,
    proxies: Proxies,
    token: Option<Token>,
    bounds: Bounds,
}

impl Client {
    /// Reads proxies and trusted certificates from the environment.
    pub fn new(allow: Allow, token: Option<Token>, bounds: Bounds) -> Result<Self, Failure> {
        let tls = TlsConfig::builder().root_certs(roots::roots()?).build();
        let agent = Agent::config_builder()
            .tls_config(tls)
            // Everything that ureq would take from the environment or decide itself is decided here.
            .proxy(None)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_response_header_size(HEADERS)
            .input_buffer_size(READ)
            .user_agent(concat!("selfheal/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .timeout_resolve(Some(bounds.connect))
            .timeout_connect(Some(bounds.connect))
            .timeout_send_request(Some(bounds.stall))
            .timeout_recv_response(Some(bounds.stall))
            .timeout_per_read(Some(bounds.stall))
            .build()
            .new_agent();
        Ok(Self { agent, allow, proxies: Proxies::from_environment()?, token, bounds })
    }

    /// Whether an address may be asked under these settings: the allow list and the proxy for it. Asks nobody.
    pub fn may_ask(&self, url: &Url) -> Result<(), Failure> {
        self.allow.check(url)?;
        self.proxies.of(url).map(drop)
    }

    /// Sends a request and follows its redirects. The answer may have any status; see [`Answer::failure`].
    pub fn send(&self, request: &Request<'_>) -> Result<Answer, Failure> {
        let mut url = request.url.clone();
        let mut token = self.token.as_ref();
        for _ in 0..=REDIRECTS {
            self.allow.check(&url)?;
            // Once the origin changed the token stays away, also when a later hop leads back.
            token = token.filter(|t| t.origin.https && t.origin == url.origin);
            let answer = self.once(request, &url, token)?;
            if !matches!(answer.status, 301 | 302 | 303 | 307 | 308) || (request.enough)(&answer) {
                return Ok(answer);
            }
            let next = answer.header("location").ok_or_else(|| {
                Failure::new(Cause::Protocol, format!("{url} answers {} without a place", answer.status))
            })?;
            let next = url
                .join(next)
                .map_err(|f| Failure::new(Cause::Refused, format!("{url} redirects to {}", f.detail)))?;
            if url.origin.https && !next.origin.https {
                let detail = format!("{url} redirects from https to plain http");
                return Err(Failure::new(Cause::Refused, detail));
            }
            self.allow.check(&next).map_err(|f| {
                Failure::new(
                    Cause::Refused,
                    format!("{} redirects to a place where {}", url.origin, f.detail),
                )
            })?;
            url = next;
        }
        Err(Failure::new(Cause::Refused, format!("{} redirects more than {REDIRECTS} times", request.url)))
    }

    fn once(&self, request: &Request<'_>, url: &Url, token: Option<&Token>) -> Result<Answer, Failure> {
        let left = self.bounds.total.left();
        if left.is_zero() {
            return Err(expired());
        }
        let text = url.text();
        let mut builder = match request.method {
            Method::Head => self.agent.head(&text),
            Method::Get => self.agent.get(&text),
        };
        if let Some((first, last)) = request.range {
            let last = last.map_or(String::new(), |l| l.to_string());
            builder = builder.header("range", format!("bytes={first}-{last}"));
        }
        if let Some(tag) = request.if_range {
            builder = builder.header("if-range", tag);
        }
        if let Some(token) = token {
            builder = builder.header("authorization", format!("Bearer {}", token.value));
        }
        let proxy = self.proxies.of(url)?;
        let place = proxy.as_ref().map(|p| format!("{}:{}", p.host(), p.port()));
        let sent = builder.config().timeout_global(Some(left)).proxy(proxy).build().call();
        let (parts, body) =
            sent.map_err(|error| failure_of(error, &url.origin.to_string(), place.as_deref()))?.into_parts();
        let (status, headers) = (parts.status.as_u16(), parts.headers);
        Ok(Answer { status, url: url.clone(), headers, body, stall: self.bounds.stall })
    }
}

fn expired() -> Failure {
    Failure::new(Cause::Expired, "the total bound is over")
}

/// The failure behind an error while a body is read.
pub(crate) fn read_failure(cause: io::Error, source: &str) -> Failure {
    match cause.downcast::<Error>() {
        Ok(error) => failure_of(error, source, None),
        Err(cause) => failure_of(Error::Io(cause), source, None),
    }
}

/// Our word for an error of the HTTP library. Behind a proxy, whatever keeps the connection from being made is
/// the proxy's, and the detail names it.
fn failure_of(error: Error, source: &str, proxy: Option<&str>) -> Failure {
    use io::ErrorKind as K;
    let away = if proxy.is_some() { Cause::Proxy } else { Cause::Unreachable };
    let (cause, detail) = match error {
        Error::Timeout(Timeout::Global) => return expired(),
        Error::Timeout(Timeout::Resolve | Timeout::Connect) => (away, "no connection in time".into()),
        Error::Timeout(_) => (Cause::Stalled, "no bytes in time".into()),
        Error::HostNotFound => (away, "no such host".into()),
        Error::ConnectProxyFailed(why) => (Cause::Proxy, why),
        Error::InvalidProxyUrl => (Cause::Proxy, "no valid address".into()),
        Error::Rustls(why) => (Cause::Tls, why.to_string()),
        Error::Tls(why) => (Cause::Tls, why.into()),
        Error::LargeResponseHeader(..) => (Cause::Protocol, format!("headers of more than {HEADERS} bytes")),
        Error::Io(cause) => {
            let sort = match cause.kind() {
                K::UnexpectedEof | K::ConnectionReset | K::ConnectionAborted | K::BrokenPipe => Cause::Lost,
                K::TimedOut | K::WouldBlock => Cause::Stalled,
                // rustls wraps its own errors so; the body is not decoded, so nothing else does.
                K::InvalidData => Cause::Tls,
                _ => away,
            };
            (sort, cause_of(&cause))
        }
        other => (Cause::Protocol, other.to_string()),
    };
    match proxy.filter(|_| cause == Cause::Proxy) {
        Some(proxy) => Failure::new(cause, format!("{proxy}: {detail}, on the way to {source}")),
        None => Failure::new(cause, format!("{source}: {detail}")),
    }
}
