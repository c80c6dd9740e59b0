//! Asking before gigabytes: what does the server have under this address, and is it what is pinned?

use files::digest::Sha;
use net::{Answer, Cause, Client, Failure, Method, Request, Url};

use crate::wanted::Wanted;

/// What a server says it has.
#[derive(Default, Debug)]
pub(crate) struct Offer {
    /// Size of the file.
    pub bytes: Option<u64>,
    /// SHA-256 of the file, as the hub gives it for large files.
    pub sha: Option<Sha>,
    /// The commit behind the revision that was asked for.
    pub commit: Option<String>,
    /// Whether ranges are served.
    pub ranges: bool,
}

/// Asks with HEAD, and where that is not served with a range of one byte. No body of a changed file is read.
pub(crate) fn ask(client: &Client, url: &Url, wanted: &Wanted) -> Result<Offer, Failure> {
    let mut request = Request::new(Method::Head, url);
    request.enough = is_linked;
    let mut answer = client.send(&request)?;
    // Servers that only know GET, and addresses presigned for GET alone.
    if matches!(answer.status, 400 | 403 | 405 | 501) {
        request.method = Method::Get;
        request.range = Some((0, Some(0)));
        answer = client.send(&request)?;
    }
    if let Some(failure) = answer.failure() {
        return Err(failure);
    }
    let offer = offer(&answer);
    judge(&answer, &offer, wanted)?;
    Ok(offer)
}

/// Whether a redirect carries the size and digest of the file that it leads to.
fn is_linked(answer: &Answer) -> bool {
    answer.header("x-linked-size").is_some() && linked_sha(answer).is_some()
}

/// `x-linked-etag` where it is a SHA-256; a plain `etag` may be any other hash and is not used.
fn linked_sha(answer: &Answer) -> Option<Sha> {
    let tag = answer.header("x-linked-etag")?;
    Sha::from_hex(tag.trim().trim_start_matches("W/").trim_matches('"'))
}

fn offer(answer: &Answer) -> Offer {
    let linked = answer.header("x-linked-size").and_then(|v| v.trim().parse().ok());
    let own = match answer.status {
        200 => answer.length(),
        206 => answer.part().and_then(|p| p.total),
        _ => None,
    };
    let commit =
        answer.header("x-repo-commit").filter(|c| c.len() == 40 && c.bytes().all(|b| b.is_ascii_hexdigit()));
    Offer {
        bytes: linked.or(own),
        sha: linked_sha(answer),
        commit: commit.map(str::to_owned),
        ranges: answer.status == 206 || answer.header("accept-ranges").is_some_and(|v| v.trim() == "bytes"),
    }
}

fn judge(answer: &Answer, offer: &Offer, wanted: &Wanted) -> Result<(), Failure> {
    let same = offer.bytes == wanted.bytes || offer.bytes.is_none() || wanted.bytes.is_none();
    if answer.is_page() && !same {
        return Err(page(&answer.url));
    }
    if let (false, Some(has), Some(pinned)) = (same, offer.bytes, wanted.bytes) {
        let detail = format!("{} has {has} bytes, pinned are {pinned}", answer.url.origin);
        return Err(Failure::new(Cause::Changed, detail));
    }
    if let (Some(has), Some(pinned)) = (offer.sha, wanted.sha)
        && has != pinned
    {
        let detail =
            format!("{} has sha256 {}..., pinned is {}...", answer.url.origin, short(&has), short(&pinned));
        return Err(Failure::new(Cause::Changed, detail));
    }
    Ok(())
}

/// The failure of a login page, a captive portal or a proxy's complaint in place of the file.
pub(crate) fn page(url: &Url) -> Failure {
    Failure::new(Cause::Page, format!("{} sends html in place of the file", url.origin))
}

/// The first 12 digits, enough for a person.
pub(crate) fn short(sha: &Sha) -> String {
    sha.hex()[..12].to_owned()
}
