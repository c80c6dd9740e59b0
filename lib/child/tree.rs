//! The process tree below us: who is in it, a signal to all of it, and KILL until nobody is left.
#![allow(unsafe_code, reason = "kill, pidfd, waitid and prctl have no form in std")]

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use crate::Terminal;

/// One process as `/proc/PID/stat` has it (proc(5)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    /// Start time in clock ticks since boot: with the pid it names one process for ever.
    start: u64,
    zombie: bool,
}

/// Everything this process started and must end.
pub(crate) struct Tree {
    me: i32,
    terminal: Terminal,
    /// Our own process group.
    group: i32,
    /// Whether there were children before.
    spares: bool,
    /// What was below us before: not ours, with all that is below it.
    spared: Vec<Process>,
    leader: i32,
}

impl Tree {
    /// Looks at what is there already.
    pub(crate) fn before(terminal: Terminal) -> Self {
        let me = std::process::id().cast_signed();
        // SAFETY: getpgrp returns a number.
        let group = unsafe { libc::getpgrp() };
        let mut tree = Self { me, terminal, group, spares: false, spared: Vec::new(), leader: 0 };
        if has_children() {
            tree.spared = tree.members().unwrap_or_default();
            tree.spares = true;
        }
        tree
    }

    /// The command was started.
    pub(crate) fn set_leader(&mut self, pid: i32) {
        self.leader = pid;
    }

    /// Whether nothing of ours is left. Cheap unless somebody is spared.
    pub(crate) fn is_empty(&self) -> bool {
        if !self.spares {
            return !has_children();
        }
        match self.members() {
            Some(members) => members.iter().all(|p| p.zombie),
            // SAFETY: two numbers; signal 0 only asks whether the group has a member.
            None if self.terminal == Terminal::Detached => unsafe { libc::kill(-self.leader, 0) == -1 },
            // Nobody can tell ours from those before, and nothing is killed on suspicion.
            None => true,
        }
    }

    /// Sends a signal to everybody, parents first: a shell must not go on to its next command because the
    /// one before was signalled earlier. Then CONT, so that a stopped process can act on it.
    pub(crate) fn signal(&self, signal: i32) {
        let Some(members) = self.members() else { return self.signal_group(signal) };
        for process in &members {
            self.send(process, signal);
        }
        if signal != libc::SIGKILL && signal != libc::SIGCONT && signal != libc::SIGSTOP {
            for process in &members {
                self.send(process, libc::SIGCONT);
            }
        }
    }

    /// Sends a signal to the command alone, and CONT as above. Only while it is not reaped.
    pub(crate) fn signal_leader(&self, signal: i32) {
        kill(self.leader, signal);
        if signal != libc::SIGKILL && signal != libc::SIGCONT {
            kill(self.leader, libc::SIGCONT);
        }
    }

    /// Without `/proc` the command's group is all that can be found. When that is ours too, KILL goes to the
    /// command alone.
    fn signal_group(&self, signal: i32) {
        let target = match self.terminal {
            Terminal::Detached => -self.leader,
            Terminal::Group if signal != libc::SIGKILL && signal != libc::SIGSTOP => -self.me,
            Terminal::Group | Terminal::Foreground => self.leader,
        };
        kill(target, signal);
        if signal != libc::SIGKILL && signal != libc::SIGCONT && signal != libc::SIGSTOP {
            kill(target, libc::SIGCONT);
        }
    }

    fn send(&self, process: &Process, signal: i32) {
        if process.parent == self.me {
            // Our own child: its number cannot pass to another process before we reap it.
            kill(process.pid, signal);
            return;
        }
        match pidfd(process.pid) {
            // The descriptor holds one process; it is the one we saw if it started when that did.
            Some(fd) if read(process.pid).is_some_and(|now| now.start == process.start) => {
                let none = std::ptr::null::<u8>();
                // SAFETY: numbers and a null pointer, which means no further information.
                unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd.as_raw_fd(), signal, none, 0) };
            }
            None if io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) => {
                kill(process.pid, signal);
            }
            _ => {}
        }
    }

    /// Everybody below us who is not spared, parents before children; `None` without a `/proc` of ours.
    fn members(&self) -> Option<Vec<Process>> {
        let mut all = snapshot(self.me)?;
        all.sort_unstable_by_key(|p| p.parent);
        let mut members = Vec::new();
        let mut queue = VecDeque::from([self.me]);
        while let Some(parent) = queue.pop_front() {
            let first = all.partition_point(|p| p.parent < parent);
            for process in all[first..].iter().take_while(|p| p.parent == parent) {
                if self.is_spared(process) {
                    continue;
                }
                queue.push_back(process.pid);
                members.push(*process);
            }
        }
        Some(members)
    }

    /// Whether it was there before. An orphan that those from before leave while the command runs comes to us
    /// too: it is known by our group, which a command with a group of its own has left.
    fn is_spared(&self, process: &Process) -> bool {
        let orphan = process.parent == self.me && process.pid != self.leader;
        let outside = self.terminal == Terminal::Detached && process.group == self.group;
        let same = |s: &Process| s.pid == process.pid && s.start == process.start;
        self.spares && (orphan && outside || self.spared.iter().any(same))
    }
}

/// A descriptor of a process; `None` when it is gone, or before Linux 5.3.
pub(crate) fn pidfd(pid: i32) -> Option<OwnedFd> {
    // SAFETY: two numbers; returns a new descriptor, closed on exec, or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: just made, owned by nobody else.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn kill(pid: i32, signal: i32) {
    if !(-1..=1).contains(&pid) {
        // SAFETY: two numbers; those that would mean everybody are not passed.
        unsafe { libc::kill(pid, signal) };
    }
}

/// Whether this process has any child, dead or alive.
fn has_children() -> bool {
    // SAFETY: siginfo is plain data that the kernel fills; WNOWAIT leaves the child as it is.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) == 0
    }
}

/// Makes orphans of the tree our children, or gives back the earlier state; returns the earlier state.
pub(crate) fn adopt_orphans(on: bool) -> bool {
    let mut before: libc::c_int = 0;
    // SAFETY: the first call writes one int that outlives it, the second takes a number.
    unsafe {
        libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut before);
        if (before != 0) != on {
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, libc::c_ulong::from(on));
        }
    }
    before != 0
}

/// All processes, or `None` when `/proc` is not there or shows another pid namespace.
fn snapshot(me: i32) -> Option<Vec<Process>> {
    if fs::read_link("/proc/self").ok()?.to_str()?.parse() != Ok(me) {
        return None;
    }
    let pids = fs::read_dir("/proc").ok()?.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    Some(pids.filter_map(read).collect())
}

fn read(pid: i32) -> Option<Process> {
    parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Fields 3 (state), 4 (parent), 5 (group) and 22 (start); the name in field 2 may hold anything, so
/// fields are counted from its last parenthesis.
fn parse(pid: i32, line: &[u8]) -> Option<Process> {
    let end = line.iter().rposition(|b| *b == b')')?;
    let mut fields = std::str::from_utf8(line.get(end + 2..)?).ok()?.split(' ');
    let zombie = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let start = fields.nth(16)?.parse().ok()?;
    Some(Process { pid, parent, group, start, zombie })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_named_like_a_stat_line_is_read_right() {
        let stat = b"7 (a) R 1 2) S 3 4 5 0 -1 6 7 8 9 10 11 12 13 14 20 0 1 0 4242 99 0\n";
        let read = parse(7, stat).unwrap();
        assert_eq!(read, Process { pid: 7, parent: 3, group: 4, start: 4242, zombie: false });
        assert_eq!(parse(7, b"7 (a"), None);
        assert_eq!(parse(7, b"7 (a)"), None);
    }

    #[test]
    fn this_very_process_is_seen() {
        let me = std::process::id().cast_signed();
        assert!(snapshot(me).unwrap().iter().any(|p| p.pid == me));
    }
}
