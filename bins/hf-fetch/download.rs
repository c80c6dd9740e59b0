//! One answer with the file, or with the rest of it, taken byte by byte as far as it can be believed.

use net::{Answer, Body, Cause, Client, Failure, Method, Request, Url};

use crate::ask::page;
use crate::held::Held;
use crate::progress::Progress;

/// What the attempts at one source have learned of it.
#[derive(Default)]
pub(crate) struct Source {
    /// It gave ranges that do not fit: it is asked for the whole from now on.
    pub whole: bool,
}

/// Takes one answer. `bytes` is the exact size of the file; without it the server's own length is believed.
/// Returns that size when all of it is held.
pub(crate) fn stream(
    (client, url): (&Client, &Url),
    source: &mut Source,
    held: &mut Held,
    bytes: Option<u64>,
    subject: &str,
) -> Result<u64, Failure> {
    if source.whole && held.length() > 0 {
        held.restart()?;
    }
    let offset = held.length();
    let tag = held.tag(&url.origin).map(str::to_owned);
    let mut request = Request::new(Method::Get, url);
    if offset > 0 {
        request.range = Some((offset, None));
        request.if_range = tag.as_deref();
    }
    let answer = client.send(&request)?;
    let bytes = match answer.status {
        206 if offset > 0 => {
            let continued = fits(&answer, offset, bytes, tag.as_deref());
            continued.inspect_err(|_| source.whole = true)?
        }
        // The server ignores ranges, or has another entity than the one these bytes are of.
        200 => {
            if offset > 0 {
                held.restart()?;
            }
            whole(&answer, bytes)?
        }
        // Nothing lies behind what is held: the entity there is another one.
        416 if offset > 0 => {
            source.whole = true;
            return Err(Failure::new(Cause::Lost, format!("{} has nothing at byte {offset}", url.origin)));
        }
        status => {
            return Err(answer.failure().unwrap_or_else(|| {
                let detail = format!("{} answers {status} to a request for a file", answer.url);
                Failure::new(Cause::Protocol, detail)
            }));
        }
    };
    held.set_tag(&url.origin, answer.header("etag"))?;
    held.mixed |= held.length() > 0;
    let mut progress = Progress::new(subject, bytes, held.length());
    let html = page(&answer.url);
    take(answer.into_body(), held, bytes, &html, &mut progress)?;
    Ok(bytes)
}

/// Whether a 206 continues at `offset`, and the size of the whole.
fn fits(answer: &Answer, offset: u64, bytes: Option<u64>, tag: Option<&str>) -> Result<u64, Failure> {
    let refused = |what: String| Err(Failure::new(Cause::Lost, format!("{} {what}", answer.url.origin)));
    let Some(part) = answer.part() else { return refused("sends a part without saying which".into()) };
    if part.first != offset {
        return refused(format!("sends a part from byte {} in place of {offset}", part.first));
    }
    if let (Some(then), Some(now)) = (tag, answer.header("etag"))
        && then != now
    {
        return refused("has another entity now".into());
    }
    match (part.total, bytes) {
        (Some(total), Some(bytes)) if total != bytes => Err(other_size(answer, total, bytes)),
        (Some(total), _) => Ok(total),
        (None, Some(bytes)) => Ok(bytes),
        (None, None) => refused("sends a part without the size of the whole".into()),
    }
}

/// The size of a whole answer, refused before a byte of it is read when it is not the pinned one.
fn whole(answer: &Answer, bytes: Option<u64>) -> Result<u64, Failure> {
    match (answer.length(), bytes) {
        (Some(length), Some(bytes)) if length != bytes => {
            Err(if answer.is_page() { page(&answer.url) } else { other_size(answer, length, bytes) })
        }
        (_, Some(bytes)) | (Some(bytes), None) => Ok(bytes),
        (None, None) => {
            let detail = format!("{} tells no length, and none is pinned", answer.url.origin);
            Err(Failure::new(Cause::Protocol, detail))
        }
    }
}

fn other_size(answer: &Answer, has: u64, pinned: u64) -> Failure {
    Failure::new(Cause::Changed, format!("{} has {has} bytes, pinned are {pinned}", answer.url.origin))
}

/// Reads until `bytes` are held. Less is a lost connection, whatever the framing said; what comes behind them is
/// not read, because the digest decides what they are.
fn take(
    mut body: Body,
    held: &mut Held,
    bytes: u64,
    html: &Failure,
    progress: &mut Progress,
) -> Result<(), Failure> {
    while held.length() < bytes {
        let n = body.read(held.room_for(bytes - held.length()))?;
        if n == 0 {
            let detail = format!("the answer ended at byte {} of {bytes}", held.length());
            return Err(Failure::new(Cause::Lost, detail));
        }
        if held.length() == 0 && is_html(held.read(n)) {
            return Err(html.clone());
        }
        held.append(n, bytes)?;
        progress.at(held.length());
    }
    Ok(())
}

/// Whether a body begins as a web page does.
fn is_html(start: &[u8]) -> bool {
    let start = start.trim_ascii_start();
    ["<!doctype html", "<html"]
        .iter()
        .any(|mark| start.get(..mark.len()).is_some_and(|s| s.eq_ignore_ascii_case(mark.as_bytes())))
}
