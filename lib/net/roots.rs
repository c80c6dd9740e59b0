//! Whom TLS trusts: what the caller names, else the system's store, else the roots built in.

use std::fs;
use std::path::{Path, PathBuf};

use contract::message::{cause_of, quoted};
use ureq::tls::{Certificate, PemItem, RootCerts, parse_pem};

use crate::failure::{Cause, Failure};

/// Where systems keep their bundle: Debian and Alpine, Fedora, RHEL, openSUSE, the BSDs.
const SYSTEM: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// A larger file is not a bundle of certificates.
const LIMIT: u64 = 16 << 20;

/// The roots of this process.
pub(crate) fn roots() -> Result<RootCerts, Failure> {
    choose(&contract::home::ca_places(), &SYSTEM.map(Path::new))
}

/// Everything in `named` (each must be readable and hold a certificate), else the first of `system` that holds
/// one, else the roots built in.
fn choose(named: &[(&str, PathBuf)], system: &[&Path]) -> Result<RootCerts, Failure> {
    let mut certificates = Vec::new();
    for (name, place) in named {
        let found = read(place)
            .map_err(|cause| format!("cannot read {}: {}", quoted(place.as_os_str()), cause_of(&cause)))
            .and_then(|found| {
                let none = || format!("no certificate in {}", quoted(place.as_os_str()));
                if found.is_empty() { Err(none()) } else { Ok(found) }
            });
        certificates.extend(found.map_err(|why| Failure::new(Cause::Tls, format!("{name}: {why}")))?);
    }
    if named.is_empty() {
        let stores = system.iter().filter_map(|place| read(place).ok());
        certificates.extend(stores.into_iter().find(|found| !found.is_empty()).unwrap_or_default());
    }
    Ok(if certificates.is_empty() { RootCerts::WebPki } else { RootCerts::new_with_certs(&certificates) })
}

/// The certificates of a PEM file, or of every file in a directory.
fn read(place: &Path) -> std::io::Result<Vec<Certificate<'static>>> {
    use std::io::Read as _;
    if !place.metadata()?.is_dir() {
        let mut text = Vec::new();
        fs::File::open(place)?.take(LIMIT).read_to_end(&mut text)?;
        return Ok(parse_pem(&text)
            .filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(certificate),
                _ => None,
            })
            .collect());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        // A dangling link or a private key in such a directory is no reason to trust nothing.
        if path.is_file() {
            found.extend(read(&path).unwrap_or_default());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_home::Home;

    #[test]
    fn without_any_store_the_built_in_roots_serve() {
        assert!(matches!(choose(&[], &[Path::new("/nonexistent")]), Ok(RootCerts::WebPki)));
    }

    #[test]
    fn what_is_named_is_trusted_in_place_of_the_system_store() {
        let fix = contract::mode::by_name();
        let home = Home::new();
        let write = |name: &str, count: usize| {
            let text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".repeat(count);
            files::atomic::write(&fix, &home.path(name), text.as_bytes(), 0o600).unwrap();
            home.path(name)
        };
        let (one, two) = (write("one", 1), write("two", 2));
        let count = |named: &[PathBuf], system: &[&Path]| {
            let named: Vec<_> = named.iter().map(|p| ("SSL_CERT_FILE", p.clone())).collect();
            match choose(&named, system).unwrap() {
                RootCerts::Specific(found) => found.len(),
                _ => 0,
            }
        };
        assert_eq!(count(&[], &[Path::new("/nonexistent"), &two, &one]), 2);
        assert_eq!(count(std::slice::from_ref(&one), &[&two]), 1);
        assert_eq!(count(&[one, two], &[]), 3);
        assert_eq!(count(std::slice::from_ref(&home.dir), &[]), 3);
    }

    #[test]
    fn a_named_place_that_gives_nothing_is_an_error_and_never_the_system_store() {
        for place in ["/nonexistent", "/dev/null", "/proc/self/status", "/proc/self/fdinfo"] {
            let failure = choose(&[("SSL_CERT_FILE", place.into())], &SYSTEM.map(Path::new)).unwrap_err();
            assert_eq!(failure.cause, Cause::Tls, "{place}");
            assert!(failure.detail.contains("SSL_CERT_FILE"), "{failure}");
        }
    }
}
