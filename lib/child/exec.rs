//! The new process: descriptors, terminal, signals, exec. It shares our memory until then, as vfork has it, so
//! that a start costs no copy of us and an error comes back in a plain field.
#![allow(unsafe_code, reason = "what happens between clone and exec has no safe form")]

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use contract::home;

use crate::Terminal;
use crate::run::{Change, Run};
use crate::signals::Inherited;

unsafe extern "C" {
    /// environ(7): handed on as it is when nothing in it is changed.
    static environ: *const *const libc::c_char;
}

/// Bytes, enough for the few frames between clone and exec, also without optimisation. From the heap: as a local
/// each of its pages would be probed.
const STACK: usize = 32 << 10;

/// Where execvp looks when `PATH` is not set: musl's choice.
const DEFAULT_PATH: &str = "/usr/local/bin:/bin:/usr/bin";

/// One of the three standard streams of the command.
pub(crate) enum End {
    /// Ours, as it is.
    Ours,
    /// Closed, as ours was.
    Closed,
    /// An open file.
    Fd(OwnedFd),
}

/// Everything a new process needs, made before it exists.
pub(crate) struct Image {
    /// The paths to try, in the order of `PATH`, each with its NUL.
    candidates: Vec<u8>,
    /// `sh`, the program, its arguments: from the second on what the program gets; from the first on, with the
    /// path in place of the program, what the shell gets for a script without `#!`.
    args: Strings,
    /// `None`: ours, as it is.
    env: Option<Strings>,
    dir: Option<CString>,
    ends: [End; 3],
    keep: Vec<RawFd>,
    detached: bool,
    inherited: Inherited,
    parent: libc::pid_t,
    /// Why there is no command, set by the new process; 0 when there is one.
    error: i32,
}

/// Strings and the null-terminated array of pointers to them that exec takes.
struct Strings {
    pointers: Vec<*const libc::c_char>,
    _owned: Vec<CString>,
}

impl From<Vec<CString>> for Strings {
    fn from(owned: Vec<CString>) -> Self {
        let pointers = owned.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect();
        Self { pointers, _owned: owned }
    }
}

fn c_string(text: impl Into<OsString>) -> io::Result<CString> {
    Ok(CString::new(text.into().into_vec())?)
}

impl Image {
    /// Makes it all; an argument or variable with a NUL byte is an error.
    pub(crate) fn new(run: &Run, ends: [End; 3], inherited: &Inherited) -> io::Result<Self> {
        let words =
            [OsStr::new("sh"), &run.program].into_iter().chain(run.args.iter().map(OsString::as_os_str));
        Ok(Self {
            candidates: candidates(&run.program, &run.env)?,
            args: words.map(c_string).collect::<io::Result<Vec<_>>>()?.into(),
            env: environment(&run.env)?,
            dir: run.dir.clone().map(c_string).transpose()?,
            ends,
            keep: run.keep.clone(),
            detached: run.terminal == Terminal::Detached,
            inherited: *inherited,
            parent: std::process::id().cast_signed(),
            error: 0,
        })
    }

    /// Starts the process and returns its id, or why it did not become the command.
    pub(crate) fn start(mut self) -> io::Result<i32> {
        let mut stack = vec![0_u128; STACK / size_of::<u128>()];
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let image = (&raw mut self).cast();
        // SAFETY: the stack grows down from its aligned end and, like `self`, lives until the call returns,
        // which with CLONE_VFORK is when the new process has executed or ended.
        let (pid, error) = unsafe {
            let pid = libc::clone(enter, stack.as_mut_ptr_range().end.cast(), flags, image);
            (pid, (&raw const self.error).read_volatile())
        };
        if pid == -1 {
            return Err(io::Error::last_os_error());
        }
        if error == 0 {
            return Ok(pid);
        }
        // SAFETY: our own child, which has ended; no status is asked for.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        Err(io::Error::from_raw_os_error(error))
    }

    /// Runs in the new process: system calls alone, no allocation, no panic. Returns only an error number.
    fn execute(&mut self) -> i32 {
        for (fd, end) in (0..).zip(&self.ends) {
            // SAFETY: calls on descriptors of the new process alone.
            let done = unsafe {
                match end {
                    End::Ours => 0,
                    End::Closed => libc::close(fd),
                    End::Fd(from) if from.as_raw_fd() == fd => libc::fcntl(fd, libc::F_SETFD, 0),
                    End::Fd(from) => libc::dup2(from.as_raw_fd(), fd),
                }
            };
            if done == -1 {
                return errno();
            }
        }
        for fd in &self.keep {
            // SAFETY: clears a flag of a descriptor number.
            unsafe { libc::fcntl(*fd, libc::F_SETFD, 0) };
        }
        if let Some(dir) = &self.dir {
            // SAFETY: a NUL-terminated string that outlives the call.
            if unsafe { libc::chdir(dir.as_ptr()) } == -1 {
                return errno();
            }
        }
        // SAFETY: calls on numbers and one NUL-terminated string. The command does not outlive a killed parent;
        // a parent that was killed before the request is noticed by the last call.
        unsafe {
            if self.detached {
                libc::setpgid(0, 0);
                let terminal =
                    libc::open(c"/dev/tty".as_ptr(), libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
                if terminal != -1 {
                    libc::ioctl(terminal, libc::TIOCNOTTY);
                }
            }
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
            if libc::getppid() != self.parent {
                return libc::ESRCH;
            }
        }
        self.inherited.restore_in_child();
        let mut error = libc::ENOENT;
        for path in self.candidates.split_inclusive(|b| *b == 0) {
            // SAFETY: NUL-terminated strings and null-terminated arrays of them, all alive; `environ` is the
            // C library's own array and nobody changes it while this process's parent is suspended.
            let failed = unsafe {
                let path: *const libc::c_char = path.as_ptr().cast();
                let args = &mut self.args.pointers;
                let env = self.env.as_ref().map_or(environ, |env| env.pointers.as_ptr());
                libc::execve(path, args.as_ptr().add(1), env);
                match errno() {
                    libc::ENOEXEC => {
                        // A script without `#!` is run by the shell, as POSIX has it for execvp.
                        *args.as_mut_ptr().add(1) = path;
                        libc::execve(c"/bin/sh".as_ptr(), args.as_ptr(), env);
                        libc::ENOEXEC
                    }
                    other => other,
                }
            };
            match failed {
                libc::ENOENT | libc::ENOTDIR => {}
                libc::EACCES => error = failed,
                _ => return failed,
            }
        }
        error
    }
}

extern "C" fn enter(image: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `start` passes its own image and is suspended, so nobody else uses it; _exit ends the new process
    // without running anything of the parent's.
    unsafe {
        let image = &mut *image.cast::<Image>();
        image.error = image.execute();
        libc::_exit(libc::EXIT_FAILURE)
    }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Where a program may be: itself when it has a slash, else in each directory of the command's `PATH`; an empty
/// member is the current directory, as execvp has it. Each path with its NUL.
fn candidates(program: &OsStr, changes: &[Change]) -> io::Result<Vec<u8>> {
    let program = program.as_bytes();
    let mut paths = Vec::with_capacity(1024);
    if program.contains(&b'/') {
        paths.extend_from_slice(program);
        paths.push(0);
    } else if !program.is_empty() {
        let set = changes.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        let path = set.unwrap_or_else(home::path).unwrap_or_else(|| DEFAULT_PATH.into());
        if path.as_bytes().contains(&0) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for dir in path.as_bytes().split(|b| *b == b':') {
            paths.extend_from_slice(dir);
            if !dir.is_empty() {
                paths.push(b'/');
            }
            paths.extend_from_slice(program);
            paths.push(0);
        }
    }
    Ok(paths)
}

/// Our environment with changes, or `None` when there are none.
fn environment(changes: &[Change]) -> io::Result<Option<Strings>> {
    if changes.is_empty() {
        return Ok(None);
    }
    let mut all = home::environment();
    for (name, value) in changes {
        all.retain(|(n, _)| n != name);
        if let Some(value) = value {
            all.push((name.clone(), value.clone()));
        }
    }
    let lines = all.into_iter().map(|(mut line, value)| {
        line.push("=");
        line.push(value);
        c_string(line)
    });
    Ok(Some(lines.collect::<io::Result<Vec<_>>>()?.into()))
}
