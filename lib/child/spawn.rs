//! Starting the command: its streams, its session, and the signals and descriptors this process was given.
#![allow(unsafe_code, reason = "what happens between fork and exec has no safe form")]
#![expect(clippy::disallowed_methods, reason = "this is the one home of process creation")]

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use contract::{home, origin};

use crate::pump::{Pump, To};
use crate::run::{Run, Told};
use crate::signals::{Held, Inherited};
use crate::{NotStarted, Sink, Stdin, Terminal};

/// A command that runs.
pub(crate) struct Started {
    pub(crate) pid: i32,
    pub(crate) pumps: Vec<Pump>,
    /// Whether it is in our process group, where the terminal's signals reach it without us.
    pub(crate) shares_group: bool,
    pub(crate) told: Option<Told>,
}

/// One of the three standard streams of the command.
enum End {
    /// Ours, as it is.
    Ours,
    /// Closed, as ours was.
    Closed,
    Null,
    Fd(OwnedFd),
}

impl End {
    fn ours(fd: u8) -> Self {
        if origin::was_closed(fd) { Self::Closed } else { Self::Ours }
    }

    fn stdio(&self) -> io::Result<Stdio> {
        Ok(match self {
            Self::Ours | Self::Closed => Stdio::inherit(),
            Self::Null => Stdio::null(),
            Self::Fd(fd) => Stdio::from(fd.try_clone()?),
        })
    }
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
    let spawned = spawn(&run, &ends, held.inherited(), None).or_else(|cause| {
        // A script without `#!` is run by the shell, as POSIX has it for execvp.
        match (cause.raw_os_error(), found(&run.program)) {
            (Some(libc::ENOEXEC), Some(script)) => spawn(&run, &ends, held.inherited(), Some(script)),
            _ => Err(cause),
        }
    });
    match spawned {
        Ok(pid) => {
            Ok(Started { pid, pumps, shares_group: run.terminal != Terminal::Session, told: run.told })
        }
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Err(NotStarted::NotFound),
        Err(cause) => Err(NotStarted::NotRunnable(cause)),
    }
}

/// Where execvp would have found it.
fn found(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') { Some(program.into()) } else { home::find_on_path(program) }
}

/// The command's three streams, and a pump for each that goes through us.
fn streams(run: &mut Run) -> io::Result<([End; 3], Vec<Pump>)> {
    let stdin = match std::mem::take(&mut run.stdin) {
        Stdin::Null => End::Null,
        Stdin::Inherit => End::ours(0),
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
        Sink::Inherit => return Ok(End::ours(fd)),
        Sink::Null if counted => To::Nowhere,
        Sink::Null => return Ok(End::Null),
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

fn piped(fd: u8, to: To) -> io::Result<(Pump, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((Pump::new(fd, reader.into(), to)?, writer.into()))
}

/// Whether our own standard output and error are one file, as after `2>&1`.
fn same_stream() -> bool {
    let identity = |fd: std::os::fd::BorrowedFd<'_>| -> Option<(u64, u64, u64)> {
        let meta = File::from(fd.try_clone_to_owned().ok()?).metadata().ok()?;
        Some((meta.dev(), meta.ino(), meta.rdev()))
    };
    let open = !origin::was_closed(1) && !origin::was_closed(2);
    open && identity(io::stdout().as_fd()).is_some_and(|out| identity(io::stderr().as_fd()) == Some(out))
}

/// Forks and executes; with `script`, the shell on it.
fn spawn(run: &Run, ends: &[End; 3], inherited: &Inherited, script: Option<PathBuf>) -> io::Result<i32> {
    let mut command = match script {
        None => Command::new(&run.program),
        Some(script) => {
            let mut shell = Command::new("/bin/sh");
            shell.arg(script);
            shell
        }
    };
    command.args(&run.args);
    for (name, value) in &run.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if let Some(dir) = &run.dir {
        command.current_dir(dir);
    }
    command.stdin(ends[0].stdio()?).stdout(ends[1].stdio()?).stderr(ends[2].stdio()?);
    let closed = [0, 1, 2].map(|i: usize| matches!(ends[i], End::Closed));
    let keep: Vec<RawFd> = run.keep.clone();
    let own_session = run.terminal == Terminal::Session;
    let parent = std::process::id().cast_signed();
    let inherited = *inherited;
    let before_exec = move || {
        for (fd, closed) in (0..).zip(closed) {
            if closed {
                // SAFETY: a descriptor of the new process alone.
                unsafe { libc::close(fd) };
            }
        }
        for fd in &keep {
            // SAFETY: clears a flag of a descriptor number.
            unsafe { libc::fcntl(*fd, libc::F_SETFD, 0) };
        }
        // SAFETY: calls on numbers, allowed between fork and exec. The command does not outlive a killed
        // parent; one that was killed before the first call is noticed by the second.
        unsafe {
            if own_session {
                libc::setsid();
            }
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
            if libc::getppid() != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
        }
        inherited.restore_in_child();
        Ok(())
    };
    // SAFETY: the closure allocates nothing and calls only async-signal-safe functions.
    unsafe { command.pre_exec(before_exec) };
    Ok(command.spawn()?.id().cast_signed())
}
