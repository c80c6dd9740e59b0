//! Which proxy a request takes: the environment read as curl reads it. An unusable proxy is an error, never a
//! direct connection.

use std::net::IpAddr;

use contract::home;
use ureq::{Proxy, ProxyProtocol};

use crate::failure::{Cause, Failure};
use crate::url::{Origin, Url};

/// The settings of this process, read once.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    https: Option<String>,
    all: Option<String>,
    direct: Vec<Direct>,
}

/// One member of `NO_PROXY`.
#[derive(PartialEq, Debug)]
enum Direct {
    Everything,
    /// A domain with all below it, at one port or at any.
    Domain(String, Option<u16>),
    /// The addresses that share this many leading bits.
    Net(IpAddr, u32),
}

impl Proxies {
    /// Reads `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` in both cases.
    pub(crate) fn from_environment() -> Result<Self, Failure> {
        let text = |name: &str, value: Option<std::ffi::OsString>| match value
            .map(std::ffi::OsString::into_string)
        {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text)),
            Some(Err(_)) => Err(Failure::new(Cause::Proxy, format!("{name} is not UTF-8"))),
        };
        let direct = text("NO_PROXY", home::no_proxy())?.unwrap_or_default();
        Ok(Self {
            https: text("HTTPS_PROXY", home::https_proxy())?,
            all: text("ALL_PROXY", home::all_proxy())?,
            direct: direct.split(|c: char| c == ',' || c.is_whitespace()).filter_map(Direct::parse).collect(),
        })
    }

    /// The proxy for an address; `None` is a direct connection that the caller's settings ask for.
    pub(crate) fn of(&self, url: &Url) -> Result<Option<Proxy>, Failure> {
        let (name, value) = match (&self.https, &self.all) {
            (Some(value), _) if url.origin.https => ("HTTPS_PROXY", value),
            (_, Some(value)) => ("ALL_PROXY", value),
            _ => return Ok(None),
        };
        if self.direct.iter().any(|d| d.holds(&url.origin)) {
            return Ok(None);
        }
        // The value itself may hold a password: it is not repeated.
        let unusable = |why| Failure::new(Cause::Proxy, format!("{name} is not usable: {why}"));
        proxy(value).map(Some).map_err(unusable)
    }
}

/// `[http://][USER[:PASSWORD]@]HOST[:PORT][/]`, user and password percent-encoded.
fn proxy(value: &str) -> Result<Proxy, &'static str> {
    let (scheme, rest) = value.split_once("://").unwrap_or(("http", value));
    if !scheme.eq_ignore_ascii_case("http") {
        return Err("only proxies that speak plain http are understood");
    }
    let (login, place) = rest.rsplit_once('@').map_or((None, rest), |(login, place)| (Some(login), place));
    let url = Url::parse(&format!("http://{place}")).map_err(|_| "no valid host and port")?;
    if url.text() != format!("{}/", url.origin) {
        return Err("there is a path after the port");
    }
    let host = url.origin.host;
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let mut builder = Proxy::builder(ProxyProtocol::Http).host(&host).port(url.origin.port);
    if let Some(login) = login {
        let (user, password) = login.split_once(':').map_or((login, None), |(u, p)| (u, Some(p)));
        builder = builder.username(&decoded(user)?);
        if let Some(password) = password {
            builder = builder.password(&decoded(password)?);
        }
    }
    builder.build().map_err(|_| "no valid host and port")
}

/// Percent escapes undone.
fn decoded(text: &str) -> Result<String, &'static str> {
    const WRONG: &str = "user or password is not percent-encoded UTF-8";
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        if b != b'%' {
            out.push(b);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16).and_then(|d| u8::try_from(d).ok());
        out.push(digit().ok_or(WRONG)? << 4 | digit().ok_or(WRONG)?);
    }
    String::from_utf8(out).map_err(|_| WRONG)
}

impl Direct {
    fn parse(entry: &str) -> Option<Self> {
        let entry = entry.to_ascii_lowercase();
        if entry == "*" {
            return Some(Self::Everything);
        }
        let bare = entry.trim_start_matches('[').trim_end_matches(']');
        if let Ok(ip) = bare.parse::<IpAddr>() {
            return Some(Self::Net(ip, bits(ip)));
        }
        if let Some((ip, length)) = entry.split_once('/') {
            let ip: IpAddr = ip.parse().ok()?;
            return Some(Self::Net(ip, length.parse().ok().filter(|l| *l <= bits(ip))?));
        }
        let (domain, port) = match entry.rsplit_once(':') {
            Some((domain, port)) => (domain, Some(port.parse().ok()?)),
            None => (entry.as_str(), None),
        };
        let domain = domain.trim_start_matches('*').trim_matches('.');
        (!domain.is_empty()).then(|| Self::Domain(domain.to_owned(), port))
    }

    fn holds(&self, origin: &Origin) -> bool {
        match self {
            Self::Everything => true,
            Self::Domain(domain, port) => {
                let head = origin.host.strip_suffix(domain.as_str());
                head.is_some_and(|h| h.is_empty() || h.ends_with('.'))
                    && port.is_none_or(|p| p == origin.port)
            }
            Self::Net(net, length) => origin.ip().is_some_and(|ip| {
                let shift = 128 - length;
                bits(ip) == bits(*net) && (shift == 128 || left(ip) >> shift == left(*net) >> shift)
            }),
        }
    }
}

fn bits(ip: IpAddr) -> u32 {
    if ip.is_ipv4() { 32 } else { 128 }
}

/// The address with its first bit leftmost.
fn left(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(https: &str, all: &str, direct: &str) -> Proxies {
        let set = |s: &str| (!s.is_empty()).then(|| s.to_owned());
        Proxies {
            https: set(https),
            all: set(all),
            direct: direct.split([',', ' ']).filter_map(Direct::parse).collect(),
        }
    }

    fn of(proxies: &Proxies, url: &str) -> Option<String> {
        proxies.of(&Url::parse(url).unwrap()).unwrap().map(|p| format!("{}:{}", p.host(), p.port()))
    }

    #[test]
    fn https_has_its_own_proxy_and_all_is_for_the_rest() {
        let both = proxies("http://p:3128/", "q:1", "");
        assert_eq!(of(&both, "https://a.b/").as_deref(), Some("p:3128"));
        assert_eq!(of(&both, "http://a.b/").as_deref(), Some("q:1"));
        assert_eq!(of(&proxies("p:3128", "", ""), "http://a.b/"), None);
        assert_eq!(of(&proxies("", "http://[::1]:8", ""), "https://a.b/").as_deref(), Some("[::1]:8"));
    }

    #[test]
    fn credentials_are_decoded_and_kept_apart() {
        let proxy = proxy("http://us%40er:p%3Aw@h.example:3128").unwrap();
        assert_eq!((proxy.username(), proxy.password()), (Some("us@er"), Some("p:w")));
        assert_eq!((proxy.host(), proxy.port()), ("h.example", 3128));
    }

    #[test]
    fn an_unusable_proxy_is_an_error_that_does_not_repeat_its_password() {
        for value in [
            "socks5://p:1",
            "https://p:1",
            "http://",
            "http://p:x/",
            "http://p:3128/path",
            "ht tp://p",
            "http://u:secret@/",
            "http://u:secret%zz@p:1",
        ] {
            let failure = proxies(value, "", "").of(&Url::parse("https://a.b/").unwrap()).unwrap_err();
            assert_eq!(failure.cause, Cause::Proxy, "{value}");
            assert!(!failure.to_string().contains("secret"), "{failure}");
        }
    }

    #[test]
    fn no_proxy_knows_domains_addresses_nets_and_ports() {
        let table = [
            ("*", "https://a.b/", true),
            ("a.b", "https://a.b/", true),
            ("a.b", "https://x.a.b/", true),
            (".a.b", "https://x.a.b/", true),
            ("*.a.b", "https://x.a.b/", true),
            ("a.b", "https://xa.b/", false),
            ("x, A.B", "https://a.b/", true),
            ("a.b:8443", "https://a.b:8443/", true),
            ("a.b:8443", "https://a.b/", false),
            ("127.0.0.1", "https://127.0.0.1/", true),
            ("127.0.0.0/8", "https://127.9.0.1/", true),
            ("127.0.0.0/8", "https://128.0.0.1/", false),
            ("0.0.0.0/0", "https://9.9.9.9/", true),
            ("0.0.0.0/0", "https://[::1]/", false),
            ("::1", "https://[::1]/", true),
            ("[::1]", "https://[::1]/", true),
            ("fd00::/8", "https://[fd12::1]/", true),
            ("10.0.0.0/99", "https://10.0.0.1/", false),
            (",,", "https://a.b/", false),
        ];
        for (direct, url, is) in table {
            assert_eq!(of(&proxies("p:1", "", direct), url).is_none(), is, "{direct} {url}");
        }
    }
}
