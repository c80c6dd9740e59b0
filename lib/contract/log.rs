//! `$SELFHEAL_HOME/selfheal.log`: one line `time tool event subject` per repair, 1 MiB, one rotation.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

use crate::message::{cause_of, note, one_line};
use crate::mode::Fix;
use crate::{clock, home};

const LIMIT: u64 = 1 << 20;

/// Appends one event. A log that cannot be written is said once on stderr and never stops a repair.
pub fn event(_fix: &Fix, tool: &str, event: &str, subject: &str) {
    if let Err(cause) = append(tool, event, subject) {
        note(tool, &format!("cannot write selfheal.log: {}", cause_of(&cause)));
    }
}

#[expect(clippy::disallowed_methods, reason = "lib/files builds on this crate; the rotation is one rename")]
fn append(tool: &str, event: &str, subject: &str) -> io::Result<()> {
    let dir = home::selfheal_home().map_err(|e| io::Error::other(e.message))?;
    DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    let path = dir.join("selfheal.log");
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(&path)?;
    if file.metadata()?.len() >= LIMIT {
        std::fs::rename(&path, dir.join("selfheal.log.1"))?;
        file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)?;
    }
    let line = format!("{} {tool} {event} {}\n", clock::utc(clock::now().wall), one_line(subject));
    file.write_all(line.as_bytes())
}
