//! Parallel ranges: pieces come over several connections and are taken in the order of the file, so that what is
//! held is always a whole beginning and a run that is killed continues as any other.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use net::{Cause, Client, Failure, Method, Request, Url};

use crate::download::Source;
use crate::held::Held;
use crate::progress::Progress;

/// Bytes of one piece. Each connection keeps one in memory.
const PIECE: u64 = 8 << 20;
/// One read.
const BUFFER: usize = 128 << 10;

/// A finished piece: its bytes and the entity tag they came with.
type Piece = Result<(Vec<u8>, Option<String>), Failure>;

/// What the workers and the taker share.
#[derive(Default)]
struct Board {
    /// The next piece that nobody has begun, and the first that is not taken.
    next: u64,
    taken: u64,
    done: BTreeMap<u64, Piece>,
    stop: bool,
}

/// The pieces of one file behind what is held.
struct Pieces<'a> {
    client: &'a Client,
    url: &'a Url,
    tag: Option<String>,
    start: u64,
    bytes: u64,
    window: u64,
    board: Mutex<Board>,
    changed: Condvar,
}

/// Fills `held` up to `bytes` over `count` connections. Where the server does not give exact parts of one entity,
/// `source.whole` says so and the next attempt is one stream.
pub(crate) fn stream(
    (client, url): (&Client, &Url),
    source: &mut Source,
    held: &mut Held,
    bytes: u64,
    count: usize,
    subject: &str,
) -> Result<u64, Failure> {
    let mut progress = Progress::new(subject, bytes, held.length());
    held.mixed = true;
    let pieces = Pieces {
        client,
        url,
        tag: held.tag(&url.origin).map(str::to_owned),
        start: held.length(),
        bytes,
        window: count as u64,
        board: Mutex::default(),
        changed: Condvar::new(),
    };
    let result = std::thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| pieces.work());
        }
        let result = pieces.take(held, source, &mut progress);
        pieces.board().stop = true;
        pieces.changed.notify_all();
        result
    });
    result.map(|()| bytes)
}

impl Pieces<'_> {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while `wait` says so. Each wait ends: a worker's request is bounded, and then it reports.
    fn when(&self, wait: impl Fn(&Board) -> bool) -> MutexGuard<'_, Board> {
        self.changed.wait_while(self.board(), |b| wait(b)).unwrap_or_else(PoisonError::into_inner)
    }

    /// The first byte of a piece, when there is such a piece.
    fn first(&self, index: u64) -> Option<u64> {
        Some(self.start + index * PIECE).filter(|first| *first < self.bytes)
    }

    /// A worker: brings pieces, at most `window` ahead of what is taken.
    fn work(&self) {
        loop {
            let mut board = self.when(|b| !b.stop && b.next >= b.taken + self.window);
            let index = board.next;
            let Some(first) = self.first(index).filter(|_| !board.stop) else { return };
            board.next += 1;
            drop(board);
            let piece = self.bring(first);
            let failed = piece.is_err();
            self.board().done.insert(index, piece);
            self.changed.notify_all();
            if failed {
                return;
            }
        }
    }

    /// Takes the pieces in the order of the file.
    fn take(&self, held: &mut Held, source: &mut Source, progress: &mut Progress) -> Result<(), Failure> {
        let mut tag = self.tag.clone();
        for index in 0.. {
            if self.first(index).is_none() {
                break;
            }
            let mut board = self.when(|b| !b.done.contains_key(&index));
            let Some(piece) = board.done.remove(&index) else { continue };
            board.taken = index + 1;
            drop(board);
            self.changed.notify_all();
            let (bytes, theirs) = piece.map_err(|mut failure| {
                // One stream may still succeed.
                if failure.cause == Cause::Protocol {
                    (source.whole, failure.cause) = (true, Cause::Lost);
                }
                failure
            })?;
            if let (Some(then), Some(now)) = (&tag, &theirs)
                && then != now
            {
                source.whole = true;
                return Err(Failure::new(Cause::Lost, format!("{} has another entity now", self.url.origin)));
            }
            held.set_tag(&self.url.origin, theirs.as_deref())?;
            tag = tag.or(theirs);
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let room = held.room_for(rest.len() as u64);
                let n = room.len();
                room.copy_from_slice(&rest[..n]);
                held.append(n, self.bytes)?;
                rest = &rest[n..];
            }
            progress.at(held.length());
        }
        Ok(())
    }

    /// One piece; [`Cause::Protocol`] when the server gives something else.
    fn bring(&self, first: u64) -> Piece {
        let last = (first + PIECE).min(self.bytes) - 1;
        let mut request = Request::new(Method::Get, self.url);
        request.range = Some((first, Some(last)));
        request.if_range = self.tag.as_deref();
        let answer = self.client.send(&request)?;
        let exact = answer.status == 206
            && answer.part().is_some_and(|p| {
                (p.first, p.last) == (first, last) && p.total.is_none_or(|t| t == self.bytes)
            });
        if !exact {
            let detail = format!("{} does not give exact parts", self.url.origin);
            return Err(answer.failure().unwrap_or_else(|| Failure::new(Cause::Protocol, detail)));
        }
        let tag = answer.header("etag").map(str::to_owned);
        let mut body = answer.into_body();
        let size = usize::try_from(last - first + 1).unwrap_or(0);
        let mut bytes = vec![0; size];
        let mut filled = 0;
        while filled < size {
            if self.board().stop {
                return Err(Failure::new(Cause::Lost, "no longer wanted"));
            }
            let end = size.min(filled + BUFFER);
            match body.read(&mut bytes[filled..end])? {
                0 => {
                    let detail = format!("{} ended inside a part", self.url.origin);
                    return Err(Failure::new(Cause::Lost, detail));
                }
                n => filled += n,
            }
        }
        Ok((bytes, tag))
    }
}
