//! A kernel lock on a directory: a holder killed with -9 frees it, whatever its content says.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use contract::clock::Deadline;
use contract::{Error, exit, message};

/// Held until dropped. The directory itself is locked: it is never renamed, so no two holders see two files.
#[derive(Debug)]
pub struct Lock {
    _dir: File,
}

/// Takes the exclusive lock of `dir`, polling until `bound` is over; then 75, busy.
pub fn exclusive(dir: &Path, bound: Duration) -> Result<Lock, Error> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .open(dir)
        .map_err(|cause| Error::io("lock", dir.as_os_str(), &cause))?;
    let deadline = Deadline::after(bound);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Lock { _dir: file }),
            Err(TryLockError::WouldBlock) if deadline.over() => {
                let name = message::quoted(dir.as_os_str());
                return Err(Error::new(exit::BUSY, format!("{name} is locked by another process"))
                    .hint("wait for it to end, then run this again"));
            }
            Err(TryLockError::WouldBlock) => deadline.pause(Duration::from_millis(50)),
            Err(TryLockError::Error(cause)) => return Err(Error::io("lock", dir.as_os_str(), &cause)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_home::Home;

    #[test]
    fn a_second_taker_is_told_busy() {
        let home = Home::new();
        let dir = &home.dir;
        let first = exclusive(dir, Duration::from_secs(5)).unwrap();
        assert_eq!(exclusive(dir, Duration::from_millis(60)).unwrap_err().code, exit::BUSY);
        drop(first);
        assert!(exclusive(dir, Duration::from_secs(5)).is_ok());
    }
}
