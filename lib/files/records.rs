//! Line records that survive a torn write: one `write` a record, a broken last line is skipped.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use contract::Fix;

/// Appends one record (without newline inside). If an earlier write was torn, a newline first ends its rest.
pub fn append(_fix: &Fix, path: &Path, record: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let mut last = [b'\n'];
    if file.seek(io::SeekFrom::End(0))? > 0 {
        file.seek(io::SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let mut line = Vec::with_capacity(record.len() + 2);
    if last != [b'\n'] {
        line.push(b'\n');
    }
    line.extend_from_slice(record);
    line.push(b'\n');
    file.write_all(&line)
}

/// The whole lines of a file that does not exceed `limit` bytes, oldest first; a missing file has none.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<Vec<u8>>> {
    let file = match OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(cause),
    };
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    let Some(end) = bytes.iter().rposition(|b| *b == b'\n') else { return Ok(Vec::new()) };
    Ok(bytes[..end].split(|b| *b == b'\n').filter(|l| !l.is_empty()).map(<[u8]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_last_line_is_skipped_and_does_not_eat_the_next() {
        let fix = contract::mode::by_name();
        let path = std::env::temp_dir().join(format!("selfheal-records-{}", std::process::id()));
        append(&fix, &path, b"one").unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"to").unwrap();
        assert_eq!(read(&path, 1 << 20).unwrap(), [b"one".to_vec()]);
        append(&fix, &path, b"three").unwrap();
        assert_eq!(read(&path, 1 << 20).unwrap(), [b"one".to_vec(), b"to".to_vec(), b"three".to_vec()]);
        crate::atomic::move_aside(&fix, &path).unwrap();
    }
}
