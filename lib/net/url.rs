//! Addresses: the strict part of RFC 3986 that a download needs. What is doubtful is refused, not repaired.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::failure::{Cause, Failure};

/// Longer addresses are refused; presigned ones take about 2,000 bytes.
const LONGEST: usize = 8192;

/// Scheme, host and port: what a token or a permission belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// https, else http.
    pub https: bool,
    /// Lower case; an IPv6 address without its brackets.
    pub host: String,
    /// Always explicit.
    pub port: u16,
}

/// An absolute http or https address without user information and fragment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Url {
    /// Where it points to.
    pub origin: Origin,
    /// Begins with `/`.
    path: String,
    /// Begins with `?`, or is empty.
    query: String,
}

impl Origin {
    /// The address when the host is a literal one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Whether it is the machine itself: `localhost` or a loopback address.
    pub fn loopback(&self) -> bool {
        self.host == "localhost" || self.ip().is_some_and(|ip| ip.is_loopback())
    }

    /// Whether the port is the scheme's own.
    pub fn usual_port(&self) -> bool {
        self.port == if self.https { 443 } else { 80 }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.https { "https://" } else { "http://" })?;
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?;
        } else {
            f.write_str(&self.host)?;
        }
        if self.usual_port() { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

/// Without the query: a presigned address carries its signature there.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

impl Url {
    /// Reads an absolute address.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = |what: &str| Failure::new(Cause::Refused, format!("an address {what}"));
        if text.len() > LONGEST {
            return Err(wrong("of more than 8192 bytes"));
        }
        if !text.bytes().all(|b| b.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&b)) {
            return Err(wrong("with a character that must be escaped"));
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("without http:// or https://"))?;
        let https = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(wrong("that is neither http nor https")),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        if authority.contains('@') {
            return Err(wrong("with user information"));
        }
        let origin = authority_of(https, authority).ok_or_else(|| wrong("without a valid host and port"))?;
        let mut url = Self { origin, path: "/".into(), query: String::new() };
        url.set_tail(tail);
        Ok(url)
    }

    /// What a `Location` header of this address means (RFC 3986, section 5.2).
    pub fn join(&self, reference: &str) -> Result<Self, Failure> {
        let reference = reference.trim_matches([' ', '\t']);
        if reference.starts_with("//") {
            return Self::parse(&format!("{}:{reference}", if self.origin.https { "https" } else { "http" }));
        }
        let scheme = reference.split(['/', '?', '#']).next().unwrap_or_default();
        if scheme.contains(':') {
            return Self::parse(reference);
        }
        let dir = &self.path[..=self.path.rfind('/').unwrap_or(0)];
        let text = match reference.as_bytes().first() {
            Some(b'/') => format!("{}{reference}", self.origin),
            Some(b'?') => format!("{}{}{reference}", self.origin, self.path),
            Some(b'#') | None => self.text(),
            Some(_) => format!("{}{dir}{reference}", self.origin),
        };
        Self::parse(&text)
    }

    /// Path and query as a request line carries them; dot segments are resolved.
    fn set_tail(&mut self, tail: &str) {
        let tail = tail.split('#').next().unwrap_or_default();
        let (path, query) = tail.split_at(tail.find('?').unwrap_or(tail.len()));
        self.query = if query == "?" { String::new() } else { query.to_owned() };
        let mut kept: Vec<&str> = Vec::new();
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        for (i, part) in parts.iter().enumerate() {
            let last = i + 1 == parts.len();
            match *part {
                "." if last => kept.push(""),
                "." => {}
                ".." => {
                    kept.pop();
                    if last {
                        kept.push("");
                    }
                }
                part => kept.push(part),
            }
        }
        self.path = format!("/{}", kept.join("/"));
    }

    /// The whole address, query included: for the request, never for a message.
    pub(crate) fn text(&self) -> String {
        format!("{self}{}", self.query)
    }

    /// Appends escaped path segments, `/` between them.
    #[must_use]
    pub fn below(&self, segments: &[&str]) -> Self {
        let mut url = self.clone();
        url.query.clear();
        for part in segments {
            if !url.path.ends_with('/') {
                url.path.push('/');
            }
            url.path.push_str(&segment(part));
        }
        url
    }
}

/// One path segment with everything but the unreserved characters escaped.
pub fn segment(text: &str) -> String {
    use fmt::Write as _;
    text.bytes().fold(String::with_capacity(text.len()), |mut out, b| {
        if b.is_ascii_alphanumeric() || b"-._~".contains(&b) {
            out.push(char::from(b));
        } else {
            let _ = write!(out, "%{b:02X}");
        }
        out
    })
}

fn authority_of(https: bool, authority: &str) -> Option<Origin> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (inner, port) = rest.split_once(']')?;
        (inner.parse::<Ipv6Addr>().ok()?.to_string(), port)
    } else {
        let (host, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
        (name(host)?, port)
    };
    let usual = if https { 443 } else { 80 };
    let port = match port {
        "" | ":" => usual,
        port => {
            let digits = port.strip_prefix(':').filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
            digits.parse().ok().filter(|p| *p > 0)?
        }
    };
    Some(Origin { https, host, port })
}

/// A host name in lower case. A last label of digits must be a dotted IPv4 address: `127.1`, `0x7f000001` and
/// their like mean different hosts to different programs.
fn name(host: &str) -> Option<String> {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let label = |l: &str| {
        !l.is_empty() && l.len() < 64 && l.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    if host.len() > 253 || !host.split('.').all(label) {
        return None;
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    if last.as_bytes()[0].is_ascii_digit() && host.parse::<Ipv4Addr>().is_err() {
        return None;
    }
    Some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(url: &str) -> Option<String> {
        Url::parse(url).ok().map(|u| u.text())
    }

    #[test]
    fn addresses_are_read_or_refused() {
        let table = [
            ("https://huggingface.co/a/b?c=d#e", Some("https://huggingface.co/a/b?c=d")),
            ("HTTPS://HuggingFace.CO", Some("https://huggingface.co/")),
            ("https://a.b:443/x", Some("https://a.b/x")),
            ("http://127.0.0.1:8080?x=1", Some("http://127.0.0.1:8080/?x=1")),
            ("http://[::1]:80/y", Some("http://[::1]/y")),
            ("http://[0:0:0:0:0:0:0:1]:8080/y", Some("http://[::1]:8080/y")),
            ("https://a.b/x/../y/./z/..", Some("https://a.b/y/")),
            ("https://a.b/../../etc", Some("https://a.b/etc")),
            ("https://a.b./x", Some("https://a.b/x")),
            ("https://a.b:/x", Some("https://a.b/x")),
            ("https://user:pass@a.b/", None),
            ("https://a.b@evil/", None),
            ("ftp://a.b/", None),
            ("//a.b/", None),
            ("https:///x", None),
            ("https://a..b/", None),
            ("https://127.1/", None),
            ("https://2130706433/", None),
            ("https://0x7f000001/", None),
            ("https://a.b:0/", None),
            ("https://a.b:99999/", None),
            ("https://a.b:+1/", None),
            ("https://[::1/", None),
            ("https://[::1]x/", None),
            ("https://a b/", None),
            ("https://a.b/x y", None),
            ("https://a.b/x\r\nHost: y", None),
            ("https://a.b\\@evil.example/", None),
            ("https://b\u{fc}cher.example/", None),
            ("", None),
        ];
        for (from, to) in table {
            assert_eq!(text(from).as_deref(), to, "{from:?}");
        }
        assert!(Url::parse(&format!("https://a.b/{}", "x".repeat(9000))).is_err());
    }

    #[test]
    fn relative_targets_are_resolved_against_the_address_not_glued_to_it() {
        let base = Url::parse("https://h.example:8443/a/b/c?q").unwrap();
        let table = [
            ("/x", "https://h.example:8443/x"),
            ("x", "https://h.example:8443/a/b/x"),
            ("../x?y", "https://h.example:8443/a/x?y"),
            ("?y", "https://h.example:8443/a/b/c?y"),
            ("", "https://h.example:8443/a/b/c?q"),
            ("#f", "https://h.example:8443/a/b/c?q"),
            ("//other.example/x", "https://other.example/x"),
            ("http://other.example/x", "http://other.example/x"),
            ("x/y:z", "https://h.example:8443/a/b/x/y:z"),
        ];
        for (reference, to) in table {
            assert_eq!(base.join(reference).unwrap().text(), to, "{reference:?}");
        }
        for wrong in ["javascript:alert(1)", "file:///etc/passwd", "x:y", "https:/h"] {
            assert!(base.join(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_message_never_shows_the_query() {
        let url = Url::parse("https://cdn.example/f?X-Amz-Signature=secret").unwrap();
        assert_eq!(url.to_string(), "https://cdn.example/f");
    }

    #[test]
    fn a_file_name_with_odd_characters_stays_one_segment() {
        let base = Url::parse("https://h.example/base/").unwrap();
        assert_eq!(
            base.below(&["a b/../c", "x%y?z"]).text(),
            "https://h.example/base/a%20b%2F..%2Fc/x%25y%3Fz"
        );
    }

    #[test]
    fn loopback_is_known_in_all_its_spellings() {
        for (host, is) in [("127.0.0.1", true), ("127.9.9.9", true), ("[::1]", true), ("localhost", true)]
            .into_iter()
            .chain([("localhost.example", false), ("10.0.0.1", false), ("[::2]", false)])
        {
            assert_eq!(Url::parse(&format!("http://{host}/")).unwrap().origin.loopback(), is, "{host}");
        }
    }
}
