//! When to ask again: a doubling pause with jitter, what the server asks for, and an end to it.

use std::hash::{BuildHasher as _, Hasher as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use contract::clock::Deadline;

use crate::failure::Failure;

/// Attempts after the first without progress between them.
const ROW: u32 = 4;
/// Failed attempts altogether.
const ALL: u32 = 100;
/// Bytes that count as progress.
const PROGRESS: u64 = 1 << 20;
/// The first pause, and the longest.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);
/// A server that asks for more than this is not waited for.
const PATIENCE: Duration = Duration::from_secs(300);

/// The attempts of one download.
#[derive(Debug)]
pub struct Retry {
    total: Deadline,
    row: u32,
    all: u32,
}

impl Retry {
    /// Attempts that all end by `total`.
    pub fn until(total: Deadline) -> Self {
        Self { total, row: 0, all: 0 }
    }

    /// Waits before the next attempt, after telling `say` how long; the failure comes back when there is none.
    /// `progress` is how many bytes more than ever before the attempt has brought.
    pub fn pause(
        &mut self,
        failure: Failure,
        progress: u64,
        say: impl FnOnce(&Failure, Duration),
    ) -> Result<(), Failure> {
        self.row = if progress >= PROGRESS { 1 } else { self.row + 1 };
        self.all += 1;
        if !failure.cause.passing() || self.row > ROW || self.all > ALL {
            return Err(failure);
        }
        let pause = delay(self.row, unit(), failure.wait);
        if pause > PATIENCE || pause >= self.total.left() {
            let detail = format!("{}, the next attempt would be in {} s", failure.detail, pause.as_secs());
            return Err(Failure { detail, ..failure });
        }
        say(&failure, pause);
        self.total.pause(pause);
        Ok(())
    }
}

/// The pause after `row` failures; `unit` in 0..1 spreads it over half to one and a half.
fn delay(row: u32, unit: f64, asked: Option<Duration>) -> Duration {
    let doubled = FIRST.saturating_mul(1 << row.saturating_sub(1).min(16)).min(LONGEST);
    let spread = doubled.mul_f64(0.5 + unit);
    // What the server asked for is a lower bound; the spread on top keeps many clients apart.
    asked.map_or(spread, |asked| asked.saturating_add(spread.min(asked / 4)))
}

/// A number in 0..1 that differs between processes and calls: std's hash keys are random.
fn unit() -> f64 {
    let hash = std::hash::RandomState::new().build_hasher().finish();
    f64::from(u32::try_from(hash >> 32).unwrap_or(0)) / (f64::from(u32::MAX) + 1.0)
}

/// What a `Retry-After` header asks for: seconds, or a date, measured from the answer's own `Date` when there is
/// one (RFC 9110, section 10.2.3).
pub(crate) fn after(value: &str, date: Option<&str>) -> Option<Duration> {
    let value = value.trim();
    if value.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().ok()?));
    }
    let now = date
        .and_then(seconds)
        .or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|d| d.as_secs()))?;
    Some(Duration::from_secs(seconds(value)?.saturating_sub(now)))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT` as seconds since 1970 (civil date to days after Howard Hinnant).
fn seconds(date: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = date.split_once(", ")?.1.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let name = words.next()?;
    let month = MONTHS.iter().position(|m| *m == name)? as u64 + 1;
    let year: u64 = words.next()?.parse().ok().filter(|y| (1970..10_000).contains(y))?;
    let mut clock = words.next()?.splitn(3, ':').map(|n| n.parse::<u64>().ok());
    let time = clock.next()?? * 3600 + clock.next()?? * 60 + clock.next()??;
    let year = year - u64::from(month <= 2);
    let shifted = (month + 9) % 12;
    let era_day = (153 * shifted + 2) / 5 + day.checked_sub(1)?;
    let days = (year / 400) * 146_097 + (year % 400) * 365 + (year % 400) / 4 - (year % 400) / 100 + era_day;
    (days.checked_sub(719_468)?.checked_mul(86_400)?).checked_add(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Cause;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(after("7", None), Some(Duration::from_secs(7)));
        assert_eq!(after("Sun, 06 Nov 1994 08:50:37 GMT", date), Some(Duration::from_secs(60)));
        assert_eq!(after("Sun, 06 Nov 1994 08:40:00 GMT", date), Some(Duration::ZERO));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(seconds("Tue, 29 Feb 2000 00:00:00 GMT"), Some(951_782_400));
        for wrong in ["", "-1", "soon", "Sun, 06 Foo 1994 08:49:37 GMT", "99999999999999999999999"] {
            assert_eq!(after(wrong, None).filter(|d| !d.is_zero()), None, "{wrong:?}");
        }
    }

    #[test]
    fn pauses_double_spread_and_end() {
        assert_eq!(delay(1, 0.0, None), Duration::from_millis(250));
        assert_eq!(delay(3, 0.5, None), Duration::from_secs(2));
        assert_eq!(delay(60, 0.999, None).as_secs(), 44);
        assert!(delay(1, 0.9, Some(Duration::from_secs(9))) >= Duration::from_secs(9));
        assert!((0.0..1.0).contains(&unit()));
        assert!((0..8).any(|_| (unit() - unit()).abs() > 1e-9));
    }

    #[test]
    fn a_server_that_asks_for_an_hour_is_not_waited_for() {
        let mut retry = Retry::until(Deadline::after(Duration::from_secs(86_400)));
        let mut failure = Failure::new(Cause::Busy, "x");
        failure.wait = Some(Duration::from_secs(3600));
        assert!(retry.pause(failure, 0, |_, _| ()).unwrap_err().detail.contains("3600 s"));
    }

    #[test]
    fn a_failure_that_will_not_pass_is_not_retried() {
        let mut retry = Retry::until(Deadline::after(Duration::from_secs(60)));
        for cause in [Cause::NotFound, Cause::Changed, Cause::Tls, Cause::Refused, Cause::Proxy, Cause::Disk]
        {
            assert!(retry.pause(Failure::new(cause, "x"), 0, |_, _| ()).is_err(), "{cause:?}");
        }
    }
}
