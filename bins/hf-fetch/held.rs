//! The partial file of one download while it is held: its bytes, their digest so far, and whose bytes they are.

use std::io;

use contract::message::{cause_of, quoted};
use files::digest::{Hasher, Sha};
use files::partial::Partial;
use net::{Cause, Failure, Origin};
use serde_json::{Value, json};

use crate::hashing::Hashing;

/// A partial file with the digest of what it holds.
pub(crate) struct Held {
    partial: Partial,
    hashing: Hashing,
    /// Whether its bytes came in more than one answer.
    pub mixed: bool,
    /// Bytes that this process received.
    pub received: u64,
    /// The server asked first, and the entity tag it gave: of these the bytes are.
    tag: Option<(String, String)>,
}

impl Held {
    /// Hashes what an earlier run left.
    pub(crate) fn resume(mut partial: Partial, bytes: Option<u64>) -> Result<Self, Failure> {
        if bytes.is_some_and(|b| partial.length() > b) {
            partial.restart().map_err(|cause| disk(&partial, &cause))?;
        }
        let hashing = Hashing::from(partial.hash().map_err(|cause| disk(&partial, &cause))?);
        let mixed = partial.length() > 0;
        let tag = partial.note().and_then(|note| read_note(&note));
        Ok(Self { partial, hashing, mixed, received: 0, tag })
    }

    pub(crate) fn length(&self) -> u64 {
        self.partial.length()
    }

    /// Digest of what is held.
    pub(crate) fn sha(&mut self) -> Sha {
        self.hashing.sha()
    }

    /// The tag that a continued answer of this server must have.
    pub(crate) fn tag(&self, server: &Origin) -> Option<&str> {
        self.tag.as_ref().filter(|(from, _)| *from == server.to_string()).map(|(_, tag)| tag.as_str())
    }

    /// Remembers whose bytes follow. Only a strong tag can say that bytes fit together.
    pub(crate) fn set_tag(&mut self, server: &Origin, tag: Option<&str>) -> Result<(), Failure> {
        let Some(tag) = tag.filter(|t| t.starts_with('"') && t.len() < 1000) else { return Ok(()) };
        let new = (server.to_string(), tag.to_owned());
        if self.tag.as_ref() != Some(&new) {
            let note = json!({"server": new.0, "etag": new.1}).to_string();
            self.partial.set_note(note.as_bytes()).map_err(|cause| disk(&self.partial, &cause))?;
            self.tag = Some(new);
        }
        Ok(())
    }

    /// Room to read the next bytes into, at most `most` of them.
    pub(crate) fn room_for(&mut self, most: u64) -> &mut [u8] {
        self.hashing.room(most)
    }

    /// The first `n` bytes of that room, once they are read.
    pub(crate) fn read(&self, n: usize) -> &[u8] {
        self.hashing.taken(n)
    }

    /// Appends the first `n` bytes of that room, before which `bytes` is the size that the file will have.
    pub(crate) fn append(&mut self, n: usize, bytes: u64) -> Result<(), Failure> {
        self.partial.append(self.hashing.taken(n), bytes).map_err(|cause| disk(&self.partial, &cause))?;
        self.hashing.take(n);
        self.received += n as u64;
        Ok(())
    }

    /// Forgets everything held.
    pub(crate) fn restart(&mut self) -> Result<(), Failure> {
        self.partial.restart().map_err(|cause| disk(&self.partial, &cause))?;
        (self.hashing, self.mixed, self.tag) = (Hashing::from(Hasher::default()), false, None);
        Ok(())
    }

    /// Refuses when the rest does not fit on the disk or under the size limit. What the partial file takes already
    /// counts as room.
    pub(crate) fn room(&self, bytes: u64) -> Result<(), Failure> {
        if let Some(limit) = files::space::size_limit().filter(|limit| *limit < bytes) {
            let detail = format!("size limit of {limit} bytes (ulimit -f), the file has {bytes}");
            return Err(Failure::new(Cause::Disk, detail));
        }
        let unknown = |cause| disk(&self.partial, &cause);
        let need = bytes.saturating_sub(self.partial.taken().map_err(unknown)?);
        let dir = self.partial.path().parent().unwrap_or(self.partial.path());
        let has = files::space::available(dir).map_err(unknown)?;
        if need > has {
            let detail = format!("{need} bytes needed and {has} free in {}", quoted(dir.as_os_str()));
            return Err(Failure::new(Cause::Disk, detail));
        }
        Ok(())
    }

    /// Gives the file its name. What other pins left beside it goes.
    pub(crate) fn promote(self) -> Result<(), Failure> {
        let path = self.partial.path().to_owned();
        let failed = |cause: io::Error| {
            let detail = format!("cannot put {} in place: {}", quoted(path.as_os_str()), cause_of(&cause));
            Failure::new(Cause::Disk, detail)
        };
        // Space that is not given back is no reason to withhold the model.
        let _ = self.partial.remove_others();
        self.partial.commit(0o644).map_err(failed)
    }

    /// Leaves nothing behind when nothing was fetched; returns the bytes kept for the next run.
    pub(crate) fn keep(self) -> u64 {
        let kept = self.length();
        let _ = if kept == 0 { self.partial.discard() } else { self.partial.trim() };
        kept
    }
}

fn disk(partial: &Partial, cause: &io::Error) -> Failure {
    let detail = format!("cannot write {}: {}", quoted(partial.path().as_os_str()), cause_of(cause));
    Failure::new(Cause::Disk, detail)
}

fn read_note(note: &[u8]) -> Option<(String, String)> {
    let value: Value = serde_json::from_slice(note).ok()?;
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let tag = text("etag").filter(|t| t.starts_with('"') && t.bytes().all(|b| (b' '..=b'~').contains(&b)))?;
    Some((text("server")?, tag))
}
