//! When a breaker opens, lets one attempt through and closes: rules over stamps, without a file.

use contract::clock::Stamp;

/// Failures further apart than this many milliseconds are not a row.
const FORGET: u64 = 86_400_000;

/// What a caller asks of a breaker.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    /// So many failures in a row open it.
    pub(crate) failures: u32,
    /// For so many seconds.
    pub(crate) cooldown: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self { failures: 3, cooldown: 1800 }
    }
}

/// What is known of one subject.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) enum Breaker {
    /// Nothing failed since the last success.
    #[default]
    Closed,
    /// Fewer failures than open it, the last one then.
    Failing { failures: u32, last: Stamp },
    /// Open from `since` for `cooldown` seconds; after that half-open until an attempt decides.
    Tripped { failures: u32, since: Stamp, cooldown: u32 },
}

/// What a breaker lets through now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gate {
    /// Everything.
    Closed,
    /// Nothing, for so many seconds more.
    Open { left: u32 },
    /// One attempt.
    HalfOpen,
}

/// What an event did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    Nothing,
    Counted,
    Opened,
    Closed,
}

/// Milliseconds from `stamp` to `now`: monotonic within one boot, else by the wall; the future is no age.
fn age(stamp: &Stamp, now: &Stamp) -> u64 {
    if same_boot(stamp, now) {
        u64::try_from(now.mono.saturating_sub(stamp.mono)).unwrap_or(0)
    } else {
        now.wall.saturating_sub(stamp.wall).saturating_mul(1000)
    }
}

fn same_boot(a: &Stamp, b: &Stamp) -> bool {
    !a.boot.is_empty() && a.boot == b.boot
}

/// The moment that was `age` milliseconds ago, in today's clocks.
pub(crate) fn ago(now: &Stamp, age: u64) -> Stamp {
    let mono = if now.boot.is_empty() { 0 } else { now.mono.saturating_sub_unsigned(age) };
    Stamp { wall: now.wall.saturating_sub(age.div_ceil(1000)), mono, boot: now.boot.clone() }
}

impl Breaker {
    /// What it lets through at `now`.
    pub(crate) fn gate(&self, now: &Stamp) -> Gate {
        match self {
            Self::Closed | Self::Failing { .. } => Gate::Closed,
            Self::Tripped { since, cooldown, .. } => {
                let left = (u64::from(*cooldown) * 1000).saturating_sub(age(since, now)).div_ceil(1000);
                match u32::try_from(left) {
                    Ok(0) => Gate::HalfOpen,
                    left => Gate::Open { left: left.unwrap_or(*cooldown) },
                }
            }
        }
    }

    /// An attempt failed at `at`. While it is open that changes nothing: the deadline stays where it is.
    pub(crate) fn fail(&mut self, at: &Stamp, rules: Rules) -> Change {
        let before = match (&*self, self.gate(at)) {
            (_, Gate::Open { .. }) => return Change::Nothing,
            // One failure is enough now.
            (Self::Tripped { failures, .. }, _) => (*failures).max(rules.failures),
            (Self::Failing { failures, last }, _) if age(last, at) < FORGET => *failures,
            (Self::Closed | Self::Failing { .. }, _) => 0,
        };
        let failures = before.saturating_add(1);
        if failures < rules.failures {
            *self = Self::Failing { failures, last: at.clone() };
            return Change::Counted;
        }
        *self = Self::Tripped { failures, since: at.clone(), cooldown: rules.cooldown };
        Change::Opened
    }

    /// An attempt succeeded, or the subject was found healthy.
    pub(crate) fn succeed(&mut self) -> Change {
        match std::mem::take(self) {
            Self::Closed => Change::Nothing,
            Self::Failing { .. } => Change::Counted,
            Self::Tripped { .. } => Change::Closed,
        }
    }

    /// Brings its stamp into this boot's clocks, and one that lies in the future to `now`, so that a later
    /// step of the wall clock cannot stretch the wait. Says whether that changed it.
    pub(crate) fn settle(&mut self, now: &Stamp) -> bool {
        let stamp = match self {
            Self::Closed => return false,
            Self::Failing { last, .. } => last,
            Self::Tripped { since, .. } => since,
        };
        if same_boot(stamp, now) && stamp.mono <= now.mono && stamp.wall <= now.wall {
            return false;
        }
        let settled = ago(now, age(stamp, now));
        let changed = *stamp != settled;
        *stamp = settled;
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { failures: 3, cooldown: 1800 };

    /// `mono` in seconds.
    fn at(wall: u64, mono: i64, boot: &str) -> Stamp {
        Stamp { wall, mono: mono * 1000, boot: boot.to_owned() }
    }

    /// A moment in an undisturbed boot.
    fn t(seconds: u32) -> Stamp {
        at(1_796_000_000 + u64::from(seconds), 500 + i64::from(seconds), "a")
    }

    fn opened(now: &Stamp) -> Breaker {
        let mut breaker = Breaker::Closed;
        let changes = [(); 3].map(|()| breaker.fail(now, RULES));
        assert_eq!(changes, [Change::Counted, Change::Counted, Change::Opened]);
        breaker
    }

    #[test]
    fn failures_while_open_do_not_move_the_deadline() {
        let mut breaker = opened(&t(0));
        for second in 0..1800 {
            assert_eq!(breaker.fail(&t(second), RULES), Change::Nothing);
            assert_eq!(breaker.gate(&t(second)), Gate::Open { left: 1800 - second });
        }
        assert_eq!(breaker.gate(&t(1800)), Gate::HalfOpen);
    }

    #[test]
    fn a_failed_probe_opens_once_for_one_cooldown_and_a_success_closes() {
        let mut breaker = opened(&t(0));
        assert_eq!(breaker.fail(&t(2000), RULES), Change::Opened);
        assert_eq!(breaker.fail(&t(2001), RULES), Change::Nothing);
        assert_eq!(breaker.gate(&t(3799)), Gate::Open { left: 1 });
        assert_eq!(breaker.gate(&t(3800)), Gate::HalfOpen);
        assert_eq!(breaker.succeed(), Change::Closed);
        assert_eq!((breaker.clone(), breaker.succeed()), (Breaker::Closed, Change::Nothing));
    }

    #[test]
    fn only_failures_in_a_row_count() {
        let mut breaker = Breaker::Closed;
        for second in 0..10 {
            assert_eq!(breaker.fail(&t(second * 10), RULES), Change::Counted);
            assert_eq!(breaker.fail(&t(second * 10 + 1), RULES), Change::Counted);
            assert_eq!(breaker.succeed(), Change::Counted);
        }
        // A day apart is not a row; an hour apart is.
        for day in 0..9 {
            assert_eq!(breaker.fail(&t(day * 86_400), RULES), Change::Counted);
        }
        assert_eq!(breaker.fail(&t(8 * 86_400 + 3600), RULES), Change::Counted);
        assert_eq!(breaker.fail(&t(8 * 86_400 + 7200), RULES), Change::Opened);
    }

    #[test]
    fn the_clock_that_still_means_something_decides() {
        let left = |left| Gate::Open { left };
        // Opened at wall 10,000, monotonic 500, boot a.
        for (now, gate, why) in [
            (at(10_000, 1000, "a"), left(1300), "same boot: monotonic"),
            (at(99_000, 1000, "a"), left(1300), "the wall jumped forward"),
            (at(10, 1000, "a"), left(1300), "the wall jumped back"),
            (at(10, 2300, "a"), Gate::HalfOpen, "the wall jumped back, time is over"),
            (Stamp { mono: 2_299_500, ..at(0, 0, "a") }, left(1), "half a second is a second"),
            (at(10_600, 3, "b"), left(1200), "rebooted: wall"),
            (at(11_800, 3, "b"), Gate::HalfOpen, "rebooted: wall is over"),
            (at(10_600, 9999, ""), left(1200), "no boot id: wall"),
            (at(5, 3, "b"), left(1800), "from the future: one cooldown"),
            (at(10_000, 3, "a"), left(1800), "monotonic went back: one cooldown"),
        ] {
            assert_eq!(opened(&at(10_000, 500, "a")).gate(&now), gate, "{why}");
        }
    }

    #[test]
    fn a_stamp_from_the_future_waits_one_cooldown_and_no_longer() {
        for (since, now, later) in [
            (at(900_000, 500, "a"), at(1000, 20, "b"), at(1000, 1820, "b")),
            (at(900_000, 500, "a"), at(1000, 20, "a"), at(1000, 1820, "a")),
            (at(900_000, 500, ""), at(1000, 20, ""), at(2800, 0, "")),
        ] {
            let mut breaker = opened(&since);
            assert!(breaker.settle(&now));
            assert_eq!(breaker.gate(&now), Gate::Open { left: 1800 });
            assert!(!breaker.settle(&now), "{breaker:?}");
            assert_eq!(breaker.gate(&later), Gate::HalfOpen);
        }
    }

    #[test]
    fn a_reboot_carries_the_time_that_passed_into_the_new_clock() {
        let mut breaker = opened(&at(10_000, 500, "a"));
        assert!(breaker.settle(&at(10_600, 3, "b")));
        // From here on a wall that jumps changes nothing.
        assert_eq!(breaker.gate(&at(10_000_000, 4, "b")), Gate::Open { left: 1199 });
        assert_eq!(breaker.gate(&at(0, 1203, "b")), Gate::HalfOpen);
    }
}
