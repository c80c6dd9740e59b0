//! Time: deadlines on the monotonic clock, and stamps that survive a reboot or a clock that jumps.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::home;

/// A moment on the monotonic clock by which a wait ends.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// The moment `bound` from now.
    pub fn after(bound: Duration) -> Self {
        Self(Instant::now() + bound)
    }

    /// What is left; zero when it is over.
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether the moment has come.
    pub fn over(self) -> bool {
        self.left().is_zero()
    }

    /// The earlier of two.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// Waits `step`, or what is left if that is less.
    #[expect(clippy::disallowed_methods, reason = "the one sleep: never past the deadline")]
    pub fn pause(self, step: Duration) {
        std::thread::sleep(step.min(self.left()));
    }
}

/// A moment in three clocks, so that a later reader can tell which of them still mean anything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// Seconds since 1970 on the wall clock, which may jump.
    pub wall: u64,
    /// Milliseconds since boot, which never jump but mean nothing after a reboot.
    pub mono: i64,
    /// The kernel's id of this boot; empty when it cannot be read.
    pub boot: String,
}

/// Now. Tests set `SELFHEAL_TEST_CLOCK` to `WALL:MONO:BOOT`.
pub fn now() -> Stamp {
    if let Some(stamp) = home::test_clock().and_then(|text| parse(&text)) {
        return stamp;
    }
    let wall = system_wall();
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let mono = read("/proc/uptime").split(' ').next().and_then(milliseconds).unwrap_or(0);
    Stamp { wall, mono, boot: read("/proc/sys/kernel/random/boot_id").trim().to_owned() }
}

/// The wall clock of [`now`] alone, without the files that the other two are read from.
pub fn wall() -> u64 {
    home::test_clock().and_then(|text| parse(&text)).map_or_else(system_wall, |stamp| stamp.wall)
}

fn system_wall() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

fn parse(text: &str) -> Option<Stamp> {
    let mut parts = text.splitn(3, ':');
    let wall = parts.next()?.parse().ok()?;
    let mono = milliseconds(parts.next()?)?;
    Some(Stamp { wall, mono, boot: parts.next()?.to_owned() })
}

/// Decimal seconds such as `12.34` in milliseconds; in integers, because reading floats is 20 kB of every tool.
fn milliseconds(seconds: &str) -> Option<i64> {
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let thousandths = fraction.bytes().chain([b'0'; 3]).take(3).fold(0, |n, b| n * 10 + i64::from(b - b'0'));
    whole.parse::<i64>().ok()?.checked_mul(1000)?.checked_add(thousandths)
}

/// Wall seconds as `YYYY-MM-DDTHH:MM:SSZ` (days to civil date after Howard Hinnant, `chrono-Compatible
/// Low-Level Date Algorithms`).
pub fn utc(wall: u64) -> String {
    let (days, secs) = (wall / 86_400, wall % 86_400);
    let z = days + 719_468;
    let (era, doe) = (z / 146_097, z % 146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", secs / 3600, secs / 60 % 60, secs % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_matches_known_dates() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_796_000_399), "2026-11-30T00:59:59Z");
    }

    #[test]
    fn uptime_is_read_to_the_millisecond() {
        for (text, expected) in [("12.34", 12_340), ("0", 0), ("7.", 7000), ("1.23456", 1234)] {
            assert_eq!(milliseconds(text), Some(expected), "{text}");
        }
        for wrong in ["", ".5", "-1", "+1", "1e3", "nan", "9223372036854775807"] {
            assert_eq!(milliseconds(wrong), None, "{wrong:?}");
        }
        assert_eq!(parse("5:6.5:a:b"), Some(Stamp { wall: 5, mono: 6500, boot: "a:b".to_owned() }));
    }

    #[test]
    fn a_deadline_in_the_past_is_over() {
        let deadline = Deadline::after(Duration::ZERO);
        assert!(deadline.over());
        deadline.pause(Duration::from_secs(60));
    }
}
