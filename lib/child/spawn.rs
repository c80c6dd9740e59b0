//! Where the streams of a command go, and its start.
#![allow(unsafe_code, reason = "setpgid has no form in std")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;

use contract::origin;

use crate::exec::{End, Image};
use crate::pump::{Pump, To};
use crate::run::{Run, Told};
use crate::signals::Held;
use crate::{NotStarted, Sink, Stdin, Terminal};

/// A command that runs.
pub(crate) struct Started {
    pub(crate) pid: i32,
    pub(crate) pumps: Vec<Pump>,
    /// Whether it is in our process group, where the terminal's signals reach it without us.
    pub(crate) shares_group: bool,
    pub(crate) told: Option<Told>,
}

/// Starts it.
pub(crate) fn start(mut run: Run, held: &Held) -> Result<Started, NotStarted> {
    if let Some(dir) = &run.dir {
        // Else a missing directory would be reported as a missing program.
        let meta = dir.metadata().map_err(NotStarted::NotRunnable)?;
        if !meta.is_dir() {
            return Err(NotStarted::NotRunnable(io::Error::from_raw_os_error(libc::ENOTDIR)));
        }
    }
    if run.terminal == Terminal::Group {
        // SAFETY: two numbers; a session leader is refused, and has a group of its own already.
        unsafe { libc::setpgid(0, 0) };
    }
    let (ends, pumps) = streams(&mut run).map_err(NotStarted::NotRunnable)?;
    let started = Image::new(&run, ends, held.inherited()).and_then(Image::start);
    match started {
        Ok(pid) => {
            Ok(Started { pid, pumps, shares_group: run.terminal != Terminal::Detached, told: run.told })
        }
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Err(NotStarted::NotFound),
        Err(cause) => Err(NotStarted::NotRunnable(cause)),
    }
}

/// The command's three streams, and a pump for each that goes through us.
fn streams(run: &mut Run) -> io::Result<([End; 3], Vec<Pump>)> {
    let stdin = match std::mem::take(&mut run.stdin) {
        Stdin::Null => null()?,
        Stdin::Inherit => ours(0),
        Stdin::File(file) => End::Fd(file.into()),
    };
    let counted = run.bounds.max_output.is_some() || run.bounds.idle.is_some();
    let mut pumps = Vec::new();
    let sinks = [std::mem::take(&mut run.stdout), std::mem::take(&mut run.stderr)];
    if counted && matches!(sinks, [Sink::Inherit, Sink::Inherit]) && same_stream() {
        // One pipe for both keeps the order in which they were written.
        let (pump, end) = piped(1, To::stream(1)?)?;
        let twin = end.try_clone()?;
        return Ok(([stdin, End::Fd(end), End::Fd(twin)], vec![pump]));
    }
    let [out, err] = sinks;
    let out = end(1, out, counted, &mut pumps)?;
    let err = end(2, err, counted, &mut pumps)?;
    Ok(([stdin, out, err], pumps))
}

/// The command's end of stream `fd`, with a pump when what it writes goes through us.
fn end(fd: u8, sink: Sink, counted: bool, pumps: &mut Vec<Pump>) -> io::Result<End> {
    let to = match sink {
        Sink::Inherit if counted && !origin::was_closed(fd) => To::stream(fd)?,
        Sink::Inherit => return Ok(ours(fd)),
        Sink::Null if counted => To::Nowhere,
        Sink::Null => return null(),
        Sink::File(file) if counted => To::file(file)?,
        Sink::File(file) => return Ok(End::Fd(file.into())),
        Sink::Head(most) => To::Head(most, Vec::new()),
        Sink::Tail(most) => To::Tail(most, Vec::new()),
        Sink::Each(each) => To::Each(each),
    };
    let (pump, end) = piped(fd, to)?;
    pumps.push(pump);
    Ok(End::Fd(end))
}

fn ours(fd: u8) -> End {
    if origin::was_closed(fd) { End::Closed } else { End::Ours }
}

fn null() -> io::Result<End> {
    Ok(End::Fd(File::options().read(true).write(true).open("/dev/null")?.into()))
}

fn piped(fd: u8, to: To) -> io::Result<(Pump, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((Pump::new(fd, reader.into(), to)?, writer.into()))
}

/// Whether our own standard output and error are one file, as after `2>&1`.
fn same_stream() -> bool {
    let identity = |fd: BorrowedFd<'_>| -> Option<(u64, u64, u64)> {
        let meta = File::from(fd.try_clone_to_owned().ok()?).metadata().ok()?;
        Some((meta.dev(), meta.ino(), meta.rdev()))
    };
    let open = !origin::was_closed(1) && !origin::was_closed(2);
    open && identity(io::stdout().as_fd()).is_some_and(|out| identity(io::stderr().as_fd()) == Some(out))
}
