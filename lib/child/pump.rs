//! One output stream of the command on its way through us: counted, passed on or kept, never waited for.
#![allow(unsafe_code, reason = "non-blocking descriptors have no form in std")]

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::time::Instant;

use crate::Each;

/// Bytes read at once: what a pipe holds unless somebody asked for more.
const PIECE: usize = 64 << 10;

/// POSIX: a pipe that polls writable takes so many without blocking.
const SAFE: usize = 4096;

/// Where the bytes go.
pub(crate) enum To {
    Out(Out),
    Nowhere,
    Head(usize, Vec<u8>),
    Tail(usize, Vec<u8>),
    Each(Each),
}

/// A descriptor written to without ever waiting for its reader.
pub(crate) struct Out {
    file: File,
    way: Way,
}

/// How not to wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A regular file never makes wait; a pipe or terminal opened anew is non-blocking for us alone.
    Whole,
    /// A socket cannot be opened anew, but each call can say so.
    Socket,
    /// What could not be opened anew takes small pieces when it polls writable.
    Pieces,
}

/// All pumps together: the count, the limit, the last sign of life.
pub(crate) struct Flow {
    limit: Option<u64>,
    buffer: Vec<u8>,
    pub(crate) bytes: u64,
    /// There was a byte more than allowed.
    pub(crate) over: bool,
    pub(crate) last: Instant,
    pub(crate) error: Option<io::Error>,
}

/// One stream.
pub(crate) struct Pump {
    pub(crate) fd: u8,
    from: Option<File>,
    to: To,
    pending: Vec<u8>,
    /// How much may still be read once the command has ended.
    budget: Option<usize>,
}

impl To {
    /// Our own stream 1 or 2.
    pub(crate) fn stream(fd: u8) -> io::Result<Self> {
        let ours = match fd {
            1 => io::stdout().as_fd().try_clone_to_owned(),
            _ => io::stderr().as_fd().try_clone_to_owned(),
        };
        Self::file(ours?.into())
    }

    /// An open file.
    pub(crate) fn file(file: File) -> io::Result<Self> {
        let kind = file.metadata()?.file_type();
        if kind.is_file() {
            return Ok(Self::Out(Out { file, way: Way::Whole }));
        }
        if kind.is_socket() {
            return Ok(Self::Out(Out { file, way: Way::Socket }));
        }
        let anew = File::options()
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(format!("/proc/self/fd/{}", file.as_raw_fd()));
        Ok(Self::Out(match anew {
            Ok(file) => Out { file, way: Way::Whole },
            Err(_) => Out { file, way: Way::Pieces },
        }))
    }
}

impl Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.way {
            Way::Whole => self.file.write(bytes),
            Way::Pieces => self.file.write(&bytes[..bytes.len().min(SAFE)]),
            Way::Socket => {
                let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
                // SAFETY: the slice is readable for its length for the time of the call.
                let n =
                    unsafe { libc::send(self.file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
                usize::try_from(n).map_err(|_| io::Error::last_os_error())
            }
        }
    }
}

impl Flow {
    pub(crate) fn new(limit: Option<u64>, began: Instant) -> Self {
        Self { limit, buffer: Vec::new(), bytes: 0, over: false, last: began, error: None }
    }

    fn room(&self) -> usize {
        let room = self.limit.map_or(u64::MAX, |limit| limit - self.bytes);
        usize::try_from(room).unwrap_or(usize::MAX)
    }
}

impl Pump {
    /// A pump for stream `fd` that reads from `from`.
    pub(crate) fn new(fd: u8, from: OwnedFd, to: To) -> io::Result<Self> {
        // SAFETY: sets a flag of our own end of the pipe; the command's end has flags of its own.
        if unsafe { libc::fcntl(from.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { fd, from: Some(from.into()), to, pending: Vec::new(), budget: None })
    }

    /// What it waits for: a descriptor and poll events.
    pub(crate) fn waits_for(&self) -> Option<(RawFd, i16)> {
        match &self.to {
            To::Out(out) if !self.pending.is_empty() => Some((out.file.as_raw_fd(), libc::POLLOUT)),
            _ => self.from.as_ref().map(|from| (from.as_raw_fd(), libc::POLLIN)),
        }
    }

    /// Reads no more: a command that goes on writing gets SIGPIPE.
    pub(crate) fn close(&mut self) {
        self.from = None;
    }

    /// The command has ended: reads what is in the pipe now, not what another holder may add.
    pub(crate) fn last_call(&mut self) {
        let Some(from) = &self.from else { return };
        let mut left: libc::c_int = 0;
        // SAFETY: FIONREAD writes one int that outlives the call.
        unsafe { libc::ioctl(from.as_raw_fd(), libc::FIONREAD, &raw mut left) };
        self.budget = usize::try_from(left).ok();
        if left <= 0 {
            self.close();
        }
    }

    /// Moves what can be moved without waiting.
    pub(crate) fn step(&mut self, flow: &mut Flow) {
        if self.pending.is_empty() {
            self.read(flow);
        }
        if !self.pending.is_empty() {
            self.write(flow);
        }
    }

    fn read(&mut self, flow: &mut Flow) {
        let Some(from) = &mut self.from else { return };
        flow.buffer.resize(PIECE, 0);
        let room = flow.room();
        // With no room left one byte more is read to tell an end from too much.
        let most = room.clamp(1, PIECE).min(self.budget.unwrap_or(PIECE));
        match from.read(&mut flow.buffer[..most]) {
            Ok(0) => self.from = None,
            Ok(_) if room == 0 => flow.over = true,
            Ok(n) => {
                flow.bytes += n as u64;
                flow.last = Instant::now();
                if let Some(budget) = &mut self.budget {
                    *budget -= n;
                    if *budget == 0 {
                        self.from = None;
                    }
                }
                self.deliver(n, &flow.buffer);
            }
            Err(cause) if matches!(cause.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.from = None,
        }
    }

    fn deliver(&mut self, n: usize, buffer: &[u8]) {
        let piece = &buffer[..n];
        match &mut self.to {
            To::Out(_) => self.pending.extend_from_slice(piece),
            To::Nowhere => {}
            To::Head(most, kept) => kept.extend_from_slice(&piece[..n.min(*most - kept.len())]),
            To::Tail(most, kept) => {
                kept.extend_from_slice(piece);
                // Cut when twice as long, so that each byte is moved at most once.
                if kept.len() > most.saturating_mul(2) {
                    kept.drain(..kept.len() - *most);
                }
            }
            To::Each(each) => each(piece),
        }
    }

    fn write(&mut self, flow: &mut Flow) {
        let To::Out(out) = &mut self.to else { return };
        match out.write(&self.pending) {
            Ok(n) => {
                self.pending.drain(..n);
            }
            Err(cause) if matches!(cause.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(cause) => {
                // The reader is gone: the command is to see that as it would without us.
                self.pending.clear();
                self.from = None;
                if cause.kind() != io::ErrorKind::BrokenPipe {
                    flow.error.get_or_insert(cause);
                }
            }
        }
    }

    /// What was kept.
    pub(crate) fn kept(self) -> Vec<u8> {
        match self.to {
            To::Head(_, kept) => kept,
            To::Tail(most, mut kept) => {
                kept.drain(..kept.len().saturating_sub(most));
                kept
            }
            _ => Vec::new(),
        }
    }
}
