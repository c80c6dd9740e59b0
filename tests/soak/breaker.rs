//! Thirty-two writers of one subject, half of them killed with -9 at a random moment: the state stays readable, and
//! there is never more than one probe. Part of `make soak`.
#![allow(clippy::disallowed_methods, reason = "tests start programs and lay out files themselves")]

#[path = "../breaker_calls.rs"]
mod breaker_calls;
#[path = "../private_home.rs"]
mod private_home;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use breaker_calls::{Calls, START};
use private_home::{Home, run};

const WRITERS: u64 = 32;

/// The same numbers for the same seed (Steele, Lea, Flood: `SplitMix64`); who wins a race differs all the same.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

/// Runs a call, killed after `kill` unless it has ended; its exit status, or `None` when it was killed.
fn call(command: &mut Command, input: &str, kill: Option<Duration>) -> Option<i32> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if kill.is_some_and(|after| began.elapsed() >= after) {
            child.kill().unwrap();
            return child.wait().unwrap().code();
        }
        assert!(began.elapsed() < Duration::from_secs(120), "hung: {command:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn kill_time(dice: &mut Dice) -> Option<Duration> {
    (dice.roll(2) == 0).then(|| Duration::from_micros(dice.roll(30_000)))
}

/// A breaker under the real clock.
fn breaker(home: &Home, args: &[&str]) -> Command {
    let mut command = home.command(env!("CARGO_BIN_EXE_breaker"));
    command.env("SELFHEAL_MODE", "fix").args(args);
    command
}

/// Notes its run, and whether the one that ran before still runs: same process id, same time of birth, not on its
/// way out (the flag 4 in stat, `PF_EXITING`). An empty note is of one killed while it wrote. Starts no process of its own until then, so that nothing of it is
/// left when it is killed.
const PROBE: &str = "set -C
born() { read -r _ _ state _ _ _ _ _ flags _ _ _ _ _ _ _ _ _ _ _ _ birth _; } 2>/dev/null </proc/$1/stat
born $$; me=\"$$ $birth\"
if ! { echo \"$me\" >running; } 2>/dev/null; then
  read -r pid before <running
  flags=4; [ -z \"$pid\" ] || born \"$pid\"
  [ $((flags & 4)) != 0 ] || [ \"$birth\" != \"$before\" ] || echo \"$me met $pid $state $flags\" >>overlaps
  echo \"$me\" >|running
fi
echo run >>runs; sleep \"$1\"; exit 1";

/// The commands always fail and the cooldown is a second: after the first three each run is a probe, and every
/// probe that was not killed keeps a second to itself.
fn one_probe_at_a_time(bound: Duration, seed: u64) {
    let home = Home::new();
    home.script("probe", PROBE);
    let attempt = |length: &str| {
        breaker(&home, &["--failures", "3", "--cooldown", "1s", "scout", "--", "./probe", length])
    };
    for _ in 0..3 {
        assert_eq!(run(&mut attempt("0")).code, 1);
    }
    let (done, killed, refused) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (attempt, home, done, killed, refused) = (&attempt, &home, &done, &killed, &refused);
            scope.spawn(move || {
                let mut dice = Dice(seed * 1000 + writer);
                while began.elapsed() < bound {
                    let kill = kill_time(&mut dice);
                    let (status, prefix) = match dice.roll(10) {
                        0 => {
                            let line = "failed\tmodel\tscout\tx\nmissing\tmodel\tscout\tx\n";
                            let args = ["--failures", "3", "--cooldown", "1s"];
                            (call(&mut breaker(home, &args), line, kill), false)
                        }
                        1 => {
                            let status = run(&mut breaker(home, &["status", "scout"]));
                            assert!(matches!(status.field(1).as_str(), "open" | "degraded"), "{status:?}");
                            continue;
                        }
                        _ => {
                            let length = ["0", "0.02", "0.1"][usize::try_from(dice.roll(3)).unwrap()];
                            (call(&mut attempt(length), "", kill), true)
                        }
                    };
                    done.fetch_add(1, Ordering::Relaxed);
                    match status {
                        None => drop(killed.fetch_add(1, Ordering::Relaxed)),
                        Some(5) if prefix => drop(refused.fetch_add(1, Ordering::Relaxed)),
                        // 75: on a machine this busy the lock may not come in its ten seconds.
                        Some(1 | 75) if prefix => {}
                        Some(3 | 5 | 75) if !prefix => {}
                        other => panic!("prefix {prefix}: ended {other:?}"),
                    }
                }
            });
        }
    });
    let lines = |name: &str| fs::read_to_string(home.path(name)).unwrap_or_default().lines().count() as u64;
    let (done, killed, refused) = (done.into_inner(), killed.into_inner(), refused.into_inner());
    let seconds = began.elapsed().as_secs();
    println!("{done} calls in {seconds} s, {killed} killed, {refused} refused, {} runs", lines("runs"));
    let overlaps = fs::read_to_string(home.path("overlaps")).unwrap_or_default();
    assert_eq!(overlaps, "", "two probes at once");
    assert!(lines("runs") >= 3 + seconds / 4, "probes were let through: {}", lines("runs"));
    assert!(lines("runs") <= 3 + killed + seconds + 1, "a probe keeps its cooldown: {}", lines("runs"));
    assert!(killed > 0 && refused > 0);
    left_clean(&home);
}

/// Successes, failures, verdicts, resets and a shell that appends, under a clock that jumps.
fn always_readable(rounds: u64, seed: u64) {
    let calls = Calls::new();
    let clock = AtomicU64::new(0);
    let (done, killed) = (AtomicU64::new(0), AtomicU64::new(0));
    fs::create_dir_all(calls.state("")).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (calls, clock, done, killed) = (&calls, &clock, &done, &killed);
            scope.spawn(move || {
                let mut dice = Dice(seed * 1000 + writer);
                for _ in 0..rounds {
                    let now = clock.fetch_add(dice.roll(120), Ordering::Relaxed);
                    let wall = START + now * dice.roll(3);
                    let boot = ["a", "a", "a", "b", ""][usize::try_from(dice.roll(5)).unwrap()];
                    let pending = "date +%s >>\"$HOME/.selfheal/state/breaker/scout.pending\"";
                    let (args, input): (&[&str], &str) = match dice.roll(12) {
                        0 => (&["reset", "scout"], ""),
                        1 => (&["scout", "--", "true"], ""),
                        2 => (&["--verdicts", "scout", "--", "printf", "failed\tmodel\tscout\tx\n"], ""),
                        3 => (&["scout", "--", "sh", "-c", pending], ""),
                        4 => (&[], "failed\tmodel\tscout\tx\nok\tmodel\tscout\tx\n"),
                        5..8 => (&[], "failed\tmodel\tscout\tx\nfailed\tmodel\tscout\tx\n"),
                        _ => (&["scout", "--", "false"], ""),
                    };
                    if dice.roll(4) == 0 {
                        let path = calls.state("scout.pending");
                        let file = OpenOptions::new().create(true).append(true).open(path);
                        file.and_then(|mut f| writeln!(f, "{wall}")).unwrap();
                    }
                    let mut command = calls.breaker(args);
                    command.env("SELFHEAL_TEST_CLOCK", format!("{wall}:{now}:{boot}"));
                    let status = call(&mut command, input, kill_time(&mut dice));
                    assert!(matches!(status, None | Some(0 | 1 | 3 | 5 | 75)), "{args:?} ended {status:?}");
                    done.fetch_add(1, Ordering::Relaxed);
                    killed.fetch_add(u64::from(status.is_none()), Ordering::Relaxed);
                    let word = calls.status("scout");
                    assert!(matches!(word.as_str(), "ok" | "open" | "degraded"), "{word}");
                }
            });
        }
    });
    println!("{} calls, {} killed, every state between readable", done.into_inner(), killed.into_inner());
    left_clean(&calls.home);
}

/// One more failure finds nothing that needs a hand, and leaves nothing but state.
fn left_clean(home: &Home) {
    let reset = run(&mut breaker(home, &["reset", "scout"]));
    assert_eq!(reset.code, 0, "{}", reset.err());
    assert_eq!(run(&mut breaker(home, &["scout", "--", "false"])).code, 1);
    let files = fs::read_dir(home.path(".selfheal/state/breaker")).unwrap().flatten();
    let names: Vec<_> = files.map(|e| e.file_name().into_string().unwrap()).collect();
    assert_eq!(names, ["scout.state"]);
}

#[test]
fn writers_that_are_killed_leave_one_probe_at_a_time() {
    one_probe_at_a_time(Duration::from_secs(4), 1);
}

#[test]
fn writers_that_are_killed_leave_a_readable_state() {
    always_readable(6, 1);
}

#[test]
#[ignore = "five minutes"]
fn the_same_for_long() {
    for seed in 2..5 {
        one_probe_at_a_time(Duration::from_secs(60), seed);
        always_readable(300, seed);
    }
}
