//! The one loop: signals, output, bounds, until the command and its tree are gone.
#![allow(unsafe_code, reason = "ppoll and wait4 have no form in std")]

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use contract::clock::Deadline;

use crate::pump::{Flow, Pump};
use crate::run::{Bounds, Told};
use crate::signals::{Held, Received, suspend};
use crate::spawn::Started;
use crate::tree::{Tree, pidfd};
use crate::{Cause, NotStarted, Outcome};

/// What a command left running has so long after TERM, at most.
const LEFT_OVER: Duration = Duration::from_secs(1);
/// So long KILL is repeated before we give up on a process the kernel does not let go.
const KILLING: Duration = Duration::from_secs(5);
/// Between two looks at who is left; SIGCHLD is faster, but another thread of a caller may swallow it.
const WAVE: Duration = Duration::from_millis(20);
/// The longest single wait: `poll` has no use for a century.
const LONG: Duration = Duration::from_secs(86_400);

/// How far the end has come.
enum Phase {
    Running,
    /// The signal was sent; KILL follows at the deadline.
    Grace(Deadline),
    /// KILL is sent again and again until the deadline.
    Killing(Deadline),
}

/// A run from start to end.
pub(crate) struct Watch<'a> {
    began: Instant,
    bounds: Bounds,
    deadline: Option<Deadline>,
    held: &'a Held,
    tree: Tree,
    leader: i32,
    /// Readable when the command ends; `None` before Linux 5.3.
    pidfd: Option<OwnedFd>,
    shares_group: bool,
    told: Option<Told>,
    pumps: Vec<Pump>,
    flow: Flow,
    phase: Phase,
    cause: Option<Cause>,
    /// The wait status of the command once it is reaped.
    ended: Option<i32>,
    /// The last signal that was passed on while the command ran.
    passed_on: Option<i32>,
    killed: bool,
    user: Duration,
    sys: Duration,
    peak_rss: u64,
}

/// The outcome of nothing.
pub(crate) fn not_started(began: Instant, why: NotStarted) -> Outcome {
    Outcome {
        cause: Cause::NotStarted(why),
        status: None,
        died_of: None,
        wall: began.elapsed(),
        user: Duration::ZERO,
        sys: Duration::ZERO,
        peak_rss: 0,
        bytes: 0,
        stdout: Vec::new(),
        stderr: Vec::new(),
        write_error: None,
        killed: false,
    }
}

/// A wait status as a shell has it.
fn shell_status(status: i32) -> u8 {
    let number =
        if libc::WIFSIGNALED(status) { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) };
    u8::try_from(number).unwrap_or(u8::MAX)
}

impl<'a> Watch<'a> {
    pub(crate) fn new(began: Instant, bounds: Bounds, held: &'a Held, tree: Tree, started: Started) -> Self {
        Self {
            began,
            bounds,
            deadline: (!bounds.limit.is_zero()).then(|| Deadline::after(bounds.limit)),
            held,
            tree,
            leader: started.pid,
            pidfd: pidfd(started.pid),
            shares_group: started.shares_group,
            told: started.told,
            pumps: started.pumps,
            flow: Flow::new(bounds.max_output, began),
            phase: Phase::Running,
            cause: None,
            ended: None,
            passed_on: None,
            killed: false,
            user: Duration::ZERO,
            sys: Duration::ZERO,
            peak_rss: 0,
        }
    }

    /// Watches until nothing of it is left.
    pub(crate) fn finish(mut self) -> Outcome {
        while !self.is_over() {
            let wait = self.next_wait();
            self.wait(wait);
        }
        self.drain();
        let cause = self.cause.unwrap_or(Cause::Expired);
        let mut outcome = Outcome {
            cause,
            status: self.ended.map(shell_status),
            died_of: self.ended.filter(|s| libc::WIFSIGNALED(*s)).map(|s| libc::WTERMSIG(s)),
            user: self.user,
            sys: self.sys,
            peak_rss: self.peak_rss,
            bytes: self.flow.bytes,
            write_error: self.flow.error,
            killed: self.killed,
            ..not_started(self.began, NotStarted::NotFound)
        };
        for pump in self.pumps {
            if pump.fd == 1 {
                outcome.stdout = pump.kept();
            } else {
                outcome.stderr = pump.kept();
            }
        }
        outcome
    }

    /// Takes the next step towards the end.
    fn is_over(&mut self) -> bool {
        self.reap();
        if let Some(status) = self.ended {
            if self.bounds.only_leader {
                self.cause.get_or_insert(by_itself(status, self.passed_on));
                return true;
            }
            if matches!(self.phase, Phase::Running) {
                self.cause = Some(by_itself(status, self.passed_on));
                if self.bounds.leave || self.tree.is_empty() {
                    return true;
                }
                self.tree.signal(libc::SIGTERM);
                self.phase = Phase::Grace(Deadline::after(LEFT_OVER.min(self.bounds.grace)));
            }
            if self.tree.is_empty() {
                return true;
            }
        }
        if matches!(self.phase, Phase::Running) {
            if self.flow.over {
                self.pumps.iter_mut().for_each(Pump::close);
                self.stop(Cause::OutputCap);
            } else if self.deadline.is_some_and(Deadline::over) {
                self.stop(Cause::Expired);
            } else if self.bounds.idle.is_some_and(|idle| self.flow.last.elapsed() >= idle) {
                self.stop(Cause::Idle);
            }
        }
        match self.phase {
            Phase::Running => false,
            Phase::Grace(until) => {
                if until.over() {
                    self.phase = Phase::Killing(Deadline::after(KILLING));
                    self.kill();
                }
                false
            }
            Phase::Killing(until) => {
                self.kill();
                until.over()
            }
        }
    }

    /// Sends the signal of the bound and starts the grace.
    fn stop(&mut self, cause: Cause) {
        self.cause = Some(cause);
        self.send(self.bounds.signal);
        self.phase = Phase::Grace(Deadline::after(self.bounds.grace));
    }

    fn kill(&mut self) {
        if self.ended.is_none() && !self.killed {
            self.killed = true;
            self.tell(libc::SIGKILL);
        }
        if self.bounds.only_leader {
            self.tree.signal_leader(libc::SIGKILL);
        } else {
            self.tree.signal(libc::SIGKILL);
        }
    }

    fn send(&mut self, signal: i32) {
        self.tell(signal);
        if self.bounds.only_leader {
            self.tree.signal_leader(signal);
        } else {
            self.tree.signal(signal);
        }
    }

    fn tell(&mut self, signal: i32) {
        if let Some(told) = &mut self.told {
            told(signal);
        }
    }

    fn received(&mut self, received: Received) {
        match received {
            Received::Child => {}
            Received::Message(signal) => {
                if self.ended.is_none() {
                    self.passed_on = Some(signal);
                    self.tree.signal_leader(signal);
                }
            }
            Received::Suspend => {
                self.tree.signal(libc::SIGSTOP);
                suspend();
                self.tree.signal(libc::SIGCONT);
            }
            Received::Stop { signal: libc::SIGALRM, .. } if matches!(self.phase, Phase::Running) => {
                self.stop(Cause::Expired);
            }
            Received::Stop { signal, terminal } => {
                self.passed_on = Some(signal);
                // What the terminal sends to our group, the command in it has got already.
                if !(terminal && self.shares_group) {
                    self.send(signal);
                }
                if matches!(self.phase, Phase::Running) && !self.bounds.patient {
                    self.cause = Some(Cause::Interrupted(signal));
                    self.phase = Phase::Grace(Deadline::after(self.bounds.grace));
                }
            }
        }
    }

    /// Takes the status of every child that ended.
    fn reap(&mut self) {
        loop {
            let mut status = 0;
            // SAFETY: rusage is plain data; both are filled by the kernel and live on this stack.
            let (pid, usage) = unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                (libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage), usage)
            };
            if pid <= 0 {
                return;
            }
            self.user += duration(usage.ru_utime);
            self.sys += duration(usage.ru_stime);
            // Linux counts it in KiB.
            self.peak_rss = self.peak_rss.max(u64::try_from(usage.ru_maxrss).unwrap_or(0) << 10);
            if pid == self.leader {
                self.ended = Some(status);
            }
        }
    }

    fn next_wait(&self) -> Duration {
        let phase = match self.phase {
            Phase::Running => {
                let idle = self.bounds.idle.map(|idle| idle.saturating_sub(self.flow.last.elapsed()));
                let bound = self.deadline.map(Deadline::left);
                bound.unwrap_or(LONG).min(idle.unwrap_or(LONG))
            }
            Phase::Grace(until) | Phase::Killing(until) => until.left().min(WAVE),
        };
        phase.min(LONG)
    }

    /// Waits for signals and output, and deals with both.
    fn wait(&mut self, most: Duration) {
        let mut fds = Vec::with_capacity(4);
        fds.push(libc::pollfd { fd: self.held.fd(), events: libc::POLLIN, revents: 0 });
        if let (Some(pidfd), None) = (&self.pidfd, self.ended) {
            fds.push(libc::pollfd { fd: pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
        }
        let streams = fds.len();
        let mut moving = Vec::with_capacity(2);
        for (i, pump) in self.pumps.iter().enumerate() {
            if let Some((fd, events)) = pump.waits_for() {
                fds.push(libc::pollfd { fd, events, revents: 0 });
                moving.push(i);
            }
        }
        let time = libc::timespec {
            tv_sec: most.as_secs().try_into().unwrap_or(1),
            tv_nsec: libc::c_long::from(most.subsec_nanos().cast_signed()),
        };
        // SAFETY: the array lives past the call and its length is given; a null mask changes none.
        unsafe {
            libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, &raw const time, std::ptr::null());
        }
        for (i, polled) in moving.into_iter().zip(&fds[streams..]) {
            if polled.revents != 0 {
                self.pumps[i].step(&mut self.flow);
            }
        }
        if fds[0].revents != 0 {
            while let Some(signal) = self.held.next() {
                self.received(signal);
            }
        }
    }

    /// Passes on what the command wrote before it ended, however slow the reader: at most until the bound the
    /// command itself would have had, plus the grace.
    fn drain(&mut self) {
        self.pumps.iter_mut().for_each(Pump::last_call);
        let grace = Deadline::after(self.bounds.grace.max(LEFT_OVER));
        let until = match self.deadline {
            Some(bound) if matches!(self.cause, Some(Cause::Exited(_))) && bound.left() > grace.left() => {
                bound
            }
            _ => grace,
        };
        self.passed_on = None;
        while self.pumps.iter().any(|p| p.waits_for().is_some()) && !until.over() && self.passed_on.is_none()
        {
            self.wait(until.left().min(LONG));
            if self.flow.over {
                self.pumps.iter_mut().for_each(Pump::close);
            }
        }
        if self.flow.over && matches!(self.cause, Some(Cause::Exited(_))) {
            self.cause = Some(Cause::OutputCap);
        }
    }
}

fn by_itself(status: i32, passed_on: Option<i32>) -> Cause {
    if !libc::WIFSIGNALED(status) {
        return Cause::Exited(shell_status(status));
    }
    let signal = libc::WTERMSIG(status);
    if passed_on == Some(signal) { Cause::Interrupted(signal) } else { Cause::Signalled(signal) }
}

fn duration(time: libc::timeval) -> Duration {
    let secs = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(secs, u32::try_from(time.tv_usec).unwrap_or(0) * 1000)
}
