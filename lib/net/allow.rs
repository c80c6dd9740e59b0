//! Where this toolkit goes: https to the hub, to its file servers and to what the caller or the manifest names.

use contract::home;

use crate::failure::{Cause, Failure};
use crate::url::{Origin, Url};

/// The hub's own domains: `huggingface.co` and `hf.co`, under which its file servers live (`cdn-lfs...`,
/// `cas-bridge.xethub.hf.co`).
const HUB: [&str; 2] = ["huggingface.co", "hf.co"];

/// The origins that may be asked, first hop and redirects alike.
#[derive(Clone, Debug)]
pub struct Allow {
    named: Vec<Origin>,
    test: bool,
}

impl Allow {
    /// The hub and the origins of `named` (endpoint, mirrors). `SELFHEAL_TEST_HTTP=1` adds the loopback interface.
    pub fn hub_and<'a>(named: impl IntoIterator<Item = &'a Url>) -> Self {
        Self { named: named.into_iter().map(|u| u.origin.clone()).collect(), test: home::test_http() }
    }

    /// Whether an origin belongs to the hub.
    pub fn is_hub(origin: &Origin) -> bool {
        let below = |domain: &str| {
            origin.host.strip_suffix(domain).is_some_and(|head| head.is_empty() || head.ends_with('.'))
        };
        origin.https && origin.usual_port() && HUB.iter().any(|d| below(d))
    }

    /// Refuses what is not on the list.
    pub fn check(&self, url: &Url) -> Result<(), Failure> {
        let origin = &url.origin;
        if self.test && origin.loopback() {
            return Ok(());
        }
        if !origin.https {
            return Err(Failure::new(Cause::Refused, format!("{origin} is plain http")));
        }
        if Self::is_hub(origin) || self.named.contains(origin) {
            return Ok(());
        }
        Err(Failure::new(Cause::Refused, format!("{origin} is not on the allow list")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_to_the_hub_and_to_what_was_named() {
        let mirror = Url::parse("https://mirror.example:8443/hf").unwrap();
        let plain = Url::parse("http://10.0.0.5:8080").unwrap();
        let allow = Allow { named: vec![mirror.origin, plain.origin], test: false };
        let table = [
            ("https://huggingface.co/x", true),
            ("https://cdn-lfs-us-1.huggingface.co/x", true),
            ("https://cas-bridge.xethub.hf.co/x", true),
            ("https://mirror.example:8443/other", true),
            ("https://mirror.example/x", false),
            ("https://sub.mirror.example:8443/x", false),
            ("https://huggingface.co:8443/x", false),
            ("https://evilhuggingface.co/x", false),
            ("https://huggingface.co.evil.example/x", false),
            ("https://xhf.co/x", false),
            ("http://huggingface.co/x", false),
            ("http://10.0.0.5:8080/x", false),
            ("http://127.0.0.1/x", false),
            ("https://127.0.0.1/x", false),
            ("https://169.254.169.254/x", false),
        ];
        for (url, good) in table {
            assert_eq!(allow.check(&Url::parse(url).unwrap()).is_ok(), good, "{url}");
        }
    }

    #[test]
    fn the_test_variable_opens_the_loopback_interface_and_nothing_else() {
        let allow = Allow { named: Vec::new(), test: true };
        for (url, good) in [
            ("http://127.0.0.1:8080/x", true),
            ("http://localhost:1/x", true),
            ("https://[::1]:9/x", true),
            ("http://10.0.0.1/x", false),
            ("http://huggingface.co/x", false),
            ("https://example.com/x", false),
        ] {
            assert_eq!(allow.check(&Url::parse(url).unwrap()).is_ok(), good, "{url}");
        }
    }
}
