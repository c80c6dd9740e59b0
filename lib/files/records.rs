//! Line records that survive a torn write: one `write` a record, a broken last line is skipped.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use contract::Fix;

/// Appends one record (without newline inside). If an earlier write was torn, a newline first ends its rest.
pub fn append(_fix: &Fix, path: &Path, record: &[u8]) -> io::Result<()> {
    let mut file = crate::open::own().read(true).append(true).create(true).open(path)?;
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

/// As [`append`], and a file that has `limit` bytes becomes `PATH.1` first, in place of an earlier one. The lock of
/// its directory keeps two processes from doing that twice; when it cannot be had, the file grows a little more.
pub fn append_rotating(fix: &Fix, path: &Path, record: &[u8], limit: u64) -> io::Result<()> {
    let full = || path.symlink_metadata().is_ok_and(|m| m.len() >= limit);
    if full() {
        let dir = path.parent().unwrap_or(path);
        if let Ok(_lock) = crate::lock::exclusive(dir, std::time::Duration::from_secs(1))
            && full()
        {
            let mut older = path.as_os_str().to_owned();
            older.push(".1");
            rename(path, Path::new(&older))?;
        }
    }
    append(fix, path, record)
}

#[expect(clippy::disallowed_methods, reason = "lib/files renames; the rotation replaces what is oldest")]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

/// The whole lines of a file that does not exceed `limit` bytes, oldest first; a missing file has none.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<Vec<u8>>> {
    let bytes = text(path, limit)?;
    Ok(bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()).map(<[u8]>::to_vec).collect())
}

/// The same as one text, without what stands behind the last newline.
pub fn text(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = match OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(cause),
    };
    let likely = file.metadata()?.len().min(limit);
    let mut bytes = Vec::with_capacity(usize::try_from(likely).unwrap_or(0) + 1);
    file.take(limit).read_to_end(&mut bytes)?;
    bytes.truncate(bytes.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1));
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_home::Home;

    #[test]
    fn a_torn_last_line_is_skipped_and_does_not_eat_the_next() {
        let fix = contract::mode::by_name();
        let home = Home::new();
        let path = home.path("records");
        append(&fix, &path, b"one").unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"to").unwrap();
        assert_eq!(read(&path, 1 << 20).unwrap(), [b"one".to_vec()]);
        append(&fix, &path, b"three").unwrap();
        assert_eq!(read(&path, 1 << 20).unwrap(), [b"one".to_vec(), b"to".to_vec(), b"three".to_vec()]);
    }

    #[test]
    fn a_full_file_is_rotated_once_and_the_oldest_is_gone() {
        let fix = contract::mode::by_name();
        let home = Home::new();
        let path = home.path("h.jsonl");
        for n in 0..10 {
            append_rotating(&fix, &path, format!("record {n}").as_bytes(), 36).unwrap();
        }
        let lines = |path: &Path| read(path, 1 << 20).unwrap().concat();
        assert_eq!(lines(&path), b"record 8record 9");
        assert_eq!(lines(&home.path("h.jsonl.1")), b"record 4record 5record 6record 7");
        assert_eq!(std::fs::read_dir(&home.dir).unwrap().count(), 2);
    }
}
