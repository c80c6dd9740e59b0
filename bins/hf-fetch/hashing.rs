//! SHA-256 on a second thread: the one that reads and writes hands over full buffers and gets empty ones back, so
//! that a download takes as long as the slower of both and no byte is copied for it.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use files::digest::{Hasher, Sha};

/// One buffer, and how many of them go round.
const BUFFER: usize = 1 << 20;
const BUFFERS: usize = 4;

/// A digest that grows.
pub(crate) struct Hashing {
    /// The digest while no thread has it.
    hasher: Option<Hasher>,
    worker: Option<Worker>,
    /// The buffer that is being filled, and how far it is.
    buffer: Vec<u8>,
    filled: usize,
}

struct Worker {
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    thread: JoinHandle<Hasher>,
}

impl Hashing {
    /// Goes on from a digest.
    pub(crate) fn from(hasher: Hasher) -> Self {
        Self { hasher: Some(hasher), worker: None, buffer: vec![0; BUFFER], filled: 0 }
    }

    /// Room for the next bytes, at most `most` of them; never empty when `most` is not.
    pub(crate) fn room(&mut self, most: u64) -> &mut [u8] {
        let most = usize::try_from(most).unwrap_or(BUFFER).min(BUFFER - self.filled);
        &mut self.buffer[self.filled..self.filled + most]
    }

    /// The next `n` bytes of the room, once they are there.
    pub(crate) fn taken(&self, n: usize) -> &[u8] {
        &self.buffer[self.filled..self.filled + n]
    }

    /// Takes `n` bytes of the room into the digest.
    pub(crate) fn take(&mut self, n: usize) {
        self.filled += n;
        if self.filled < BUFFER {
            return;
        }
        self.filled = 0;
        let Self { hasher, worker, buffer, .. } = self;
        let worker = worker.get_or_insert_with(|| Worker::start(hasher.take().unwrap_or_default()));
        // Neither channel closes before the thread ends, and that ends with the sender alone.
        if worker.full.send(std::mem::take(buffer)).is_ok() {
            *buffer = worker.empty.recv().unwrap_or_default();
        }
        buffer.resize(BUFFER, 0);
    }

    /// The digest of all bytes taken.
    pub(crate) fn sha(&mut self) -> Sha {
        let mut hasher = match self.worker.take() {
            Some(worker) => worker.end(),
            None => self.hasher.take().unwrap_or_default(),
        };
        hasher.update(&self.buffer[..self.filled]);
        self.filled = 0;
        self.hasher.insert(hasher).clone().finish()
    }
}

impl Worker {
    fn start(mut hasher: Hasher) -> Self {
        let (full, incoming) = sync_channel::<Vec<u8>>(BUFFERS);
        let (outgoing, empty) = sync_channel(BUFFERS);
        for _ in 2..BUFFERS {
            // There is room for all of them.
            let _ = outgoing.send(vec![0; BUFFER]);
        }
        let thread = std::thread::spawn(move || {
            for buffer in incoming {
                hasher.update(&buffer);
                let _ = outgoing.send(buffer);
            }
            hasher
        });
        Self { full, empty, thread }
    }

    /// Lets it finish what it has.
    fn end(self) -> Hasher {
        drop(self.full);
        // A panic there has already ended the process.
        self.thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use files::digest::of_reader;

    #[test]
    fn the_digest_is_the_same_however_the_bytes_come() {
        let bytes: Vec<u8> = (0..5_000_003_u32).map(|n| (n ^ (n >> 8)).to_le_bytes()[0]).collect();
        let expected = of_reader(&mut &bytes[..]).unwrap().0;
        for step in [1_000_000, 77_777, BUFFER, 5_000_003] {
            let mut hashing = Hashing::from(Hasher::default());
            let mut at = 0;
            while at < bytes.len() {
                let left = (bytes.len() - at).min(step) as u64;
                let room = hashing.room(left);
                let n = room.len();
                room.copy_from_slice(&bytes[at..at + n]);
                hashing.take(n);
                at += n;
                if at > 2_000_000 && at - n <= 2_000_000 {
                    assert_eq!(hashing.sha(), of_reader(&mut &bytes[..at]).unwrap().0);
                }
            }
            assert_eq!(hashing.sha(), expected, "{step}");
            assert_eq!(hashing.sha(), expected, "{step}, asked twice");
        }
    }
}
