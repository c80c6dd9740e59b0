//! Reading a stream that may never end: bounded in bytes and in time.
#![allow(unsafe_code, reason = "poll has no form in std")]

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use contract::clock::Deadline;

/// Reads to the end, at most `limit` bytes; [`io::ErrorKind::TimedOut`] when the end has not come within `bound`.
pub fn read(from: &mut File, limit: usize, bound: Duration) -> io::Result<Vec<u8>> {
    let deadline = Deadline::after(bound);
    let mut bytes = Vec::new();
    let mut piece = [0; 8 << 10];
    while bytes.len() < limit {
        wait(from.as_raw_fd(), deadline)?;
        let most = piece.len().min(limit - bytes.len());
        match from.read(&mut piece[..most]) {
            Ok(0) => break,
            Ok(n) => bytes.extend_from_slice(&piece[..n]),
            // Another reader of the same pipe was faster, or a signal came.
            Err(cause) if matches!(cause.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(bytes)
}

/// Waits until a read would not block.
fn wait(fd: i32, deadline: Deadline) -> io::Result<()> {
    loop {
        let left = deadline.left();
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let left = i32::try_from(left.as_millis()).unwrap_or(i32::MAX).max(1);
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd that lives on this stack, and the count says one.
        match unsafe { libc::poll(&raw mut poll, 1, left) } {
            -1 => match io::Error::last_os_error() {
                cause if cause.kind() == io::ErrorKind::Interrupted => {}
                cause => return Err(cause),
            },
            0 => {}
            _ => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::fd::OwnedFd;

    #[test]
    fn it_ends_at_the_end_at_the_limit_or_at_the_bound() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut reader = File::from(OwnedFd::from(reader));
        writer.write_all(b"one two").unwrap();
        let long = Duration::from_secs(60);
        assert_eq!(read(&mut reader, 4, long).unwrap(), b"one ");
        let cause = read(&mut reader, 99, Duration::from_millis(30)).unwrap_err();
        assert_eq!(cause.kind(), io::ErrorKind::TimedOut);
        writer.write_all(b"three").unwrap();
        drop(writer);
        assert_eq!(read(&mut reader, 99, long).unwrap(), b"three");
        assert_eq!(read(&mut reader, 99, long).unwrap(), b"");
    }
}
