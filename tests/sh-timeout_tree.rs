//! `sh-timeout` and the processes below it: who is ended, who is spared, who may not escape.
#![allow(clippy::disallowed_methods, reason = "tests lay out and clear files themselves")]

mod private_home;

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use contract::clock::Deadline;
use private_home::*;

const TOOL: &str = env!("CARGO_BIN_EXE_sh-timeout");

/// Long enough for a loaded machine, far shorter than the sleeps below.
const PROMPT: Duration = Duration::from_secs(20);

/// A `sleep` of more than an hour that no other process of this machine runs.
fn marked() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("sleep {}.{:03}", 4000 + std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Waits until `seen` says so, at most 20 s.
fn until(what: &str, mut seen: impl FnMut() -> bool) {
    let end = Deadline::after(PROMPT);
    while !seen() {
        assert!(!end.over(), "never: {what}");
        end.pause(Duration::from_millis(5));
    }
}

fn signal(home: &Home, name: &str, child: &Child) {
    assert_eq!(run(home.command("kill").args(["-s", name, &child.id().to_string()])).code, 0);
}

/// Whether processes with exactly this command line run; ends them.
fn end_marked(home: &Home, mark: &str) -> bool {
    let line: Vec<u8> = mark.bytes().map(|b| if b == b' ' { 0 } else { b }).chain([0]).collect();
    let is_marked = |pid: &String| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|l| l == line);
    let pids: Vec<String> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(is_marked)
        .collect();
    !pids.is_empty() && run(home.command("kill").args(&pids)).code == 0
}

fn start(home: &Home, args: &[&str]) -> Child {
    home.command(TOOL).args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn d01_a_background_job_that_holds_the_pipe_is_not_waited_for() {
    let home = Home::new();
    for holder in ["SLEEP &", "SLEEP </dev/null >/dev/null &", "setsid SLEEP &", "(setsid setsid SLEEP &) &"]
    {
        let sleep = marked();
        let body = format!("{} echo hi", holder.replace("SLEEP", &sleep));
        let shell = format!("out=$({TOOL} 30 sh -c '{body}'); echo \"$? $out\"");
        let out = run(home.command("sh").args(["-c", &shell]));
        assert_eq!(out.out(), "0 hi\n", "{holder}");
        assert!(out.wall < Duration::from_secs(5), "{holder}: {:?}", out.wall);
        assert!(!alive(&sleep), "{holder}");
    }
}

const ESCAPES: [&str; 8] = [
    "setsid SLEEP & wait",
    "setsid sh -c 'setsid SLEEP & sleep 60' & wait",
    "(setsid sh -c '(setsid SLEEP &) &' &) ; sleep 60",
    "trap '' TERM; SLEEP & wait; wait; wait",
    "sh -c \"trap '' TERM HUP INT; SLEEP & while :; do sleep 1; done\" & wait",
    "SLEEP & kill -STOP $!; wait",
    "SLEEP & kill -STOP $$",
    "nohup SLEEP >/dev/null 2>&1 & sleep 60",
];

#[test]
fn whoever_leaves_the_group_or_the_session_ends_at_the_bound_as_well() {
    std::thread::scope(|scope| {
        for option in ["--kill-after=.2", "--stdin", "--foreground"] {
            scope.spawn(move || {
                let home = Home::new();
                for body in ESCAPES {
                    let sleep = marked();
                    let body = body.replace("SLEEP", &sleep);
                    let out = run(home.command(TOOL).args([option, "-k", ".2", ".4", "sh", "-c", &body]));
                    assert_eq!(out.code, 2, "{option} {body}: {}", out.err());
                    assert!(out.wall < PROMPT, "{option} {body}: {:?}", out.wall);
                    assert!(!alive(&sleep), "{option} {body}");
                }
            });
        }
    });
}

#[test]
fn a_tree_of_fifty_that_keeps_growing_is_ended() {
    let home = Home::new();
    let sleep = marked();
    // Each process starts two more, a session of its own now and then, until there are fifty.
    let body = format!(
        "[ $1 -gt 0 ] || exec {sleep}; trap '' TERM; setsid sh grow $(($1 - 1)) & sh grow $(($1 - 1)) & wait; wait; {sleep}"
    );
    home.file("grow", body);
    let out = run(home.command(TOOL).args(["-k", ".1", "1", "sh", "grow", "5"]));
    assert_eq!(out.code, 2, "{}", out.err());
    assert!(!alive(&sleep) && !alive("sh grow"));
}

#[test]
fn what_was_there_before_is_spared() {
    let home = Home::new();
    for (options, bound, command) in [
        ("", "20", "true"),
        ("", ".3", "sleep 60"),
        ("--stdin", ".3", "sleep 60"),
        ("-k 0", ".3", "sleep 60"),
    ] {
        let (earlier, ours) = (marked(), marked());
        let shell = format!(
            "({earlier} >/dev/null 2>&1 & setsid {earlier} >/dev/null 2>&1 & exec {TOOL} {options} {bound} \
             sh -c 'setsid {ours} >/dev/null 2>&1 & {command}')"
        );
        let out = run(home.command("sh").args(["-c", &shell]));
        assert!(out.wall < PROMPT, "{:?}", out.wall);
        assert!(!alive(&ours), "{options} {bound} {command}");
        assert!(end_marked(&home, &earlier), "{options} {bound} {command}");
    }
}

#[test]
fn an_orphan_of_what_was_there_before_is_spared_too() {
    let home = Home::new();
    let earlier = marked();
    // The earlier child leaves an orphan behind while the command runs: it becomes a child of the tool.
    let shell = format!(
        "sh -c 'while [ ! -e running ]; do sleep .01; done; {earlier} >/dev/null 2>&1 & : > left' >/dev/null 2>&1 & \
         exec {TOOL} 30 sh -c ': > running; while [ ! -e left ]; do sleep .01; done; sleep .3; exit 7'"
    );
    let out = run(home.command("sh").args(["-c", &shell]));
    assert_eq!(out.code, 7, "{}", out.err());
    assert!(end_marked(&home, &earlier));
}

#[test]
fn leave_keeps_what_a_command_that_ended_by_itself_left_running() {
    let home = Home::new();
    let sleep = marked();
    let body = format!("{sleep} >/dev/null 2>&1 & exit 3");
    assert_eq!(run(home.command(TOOL).args(["--leave", "30", "sh", "-c", &body])).code, 3);
    assert!(end_marked(&home, &sleep));
    let sleep = marked();
    let body = format!("{sleep} >/dev/null 2>&1 & wait");
    assert_eq!(run(home.command(TOOL).args(["--leave", ".3", "sh", "-c", &body])).code, 2);
    assert!(!alive(&sleep), "at the bound nothing is left");
}

#[test]
fn what_was_left_running_may_clean_up_first() {
    let home = Home::new();
    let body = "sh -c 'trap \"echo bye > bye; exit\" TERM; : > ready; while :; do sleep .05; done' & \
                while [ ! -e ready ]; do sleep .01; done";
    assert_eq!(run(home.command(TOOL).args(["30", "sh", "-c", body])).code, 0);
    assert_eq!(std::fs::read_to_string(home.path("bye")).unwrap(), "bye\n");
}

#[test]
fn a_signal_sent_to_the_tool_ends_the_whole_tree() {
    let home = Home::new();
    for (name, number) in [("TERM", 15), ("INT", 2), ("HUP", 1), ("QUIT", 3), ("XCPU", 24)] {
        let sleep = marked();
        // A background job of a shell without job control ignores INT and QUIT, so KILL has to come for it.
        let body = format!("setsid {sleep} & : > ready; exec {sleep}");
        let mut tool = start(&home, &["-k", ".3", "60", "sh", "-c", &body]);
        until("the command runs", || home.path("ready").exists());
        signal(&home, name, &tool);
        let status = wait(&mut tool, Instant::now() + PROMPT).expect("it ends");
        assert_eq!(status.signal(), Some(number), "{name}: dies as the command died");
        assert!(!alive(&sleep), "{name}");
        std::fs::remove_file(home.path("ready")).unwrap();
    }
}

#[test]
fn a_command_that_survives_the_signal_chooses_its_status() {
    let home = Home::new();
    let body = "trap 'exit 9' TERM; : > ready; while :; do sleep .05; done";
    let mut tool = start(&home, &["60", "sh", "-c", body]);
    until("the command runs", || home.path("ready").exists());
    signal(&home, "TERM", &tool);
    assert_eq!(wait(&mut tool, Instant::now() + PROMPT).expect("it ends").code(), Some(9));
}

#[test]
fn a_message_goes_to_the_command_and_ends_nothing() {
    let home = Home::new();
    let body = "trap ': > got' USR1; trap ': > done; exit 4' USR2; : > ready; while :; do sleep .05; done";
    let mut tool = start(&home, &["60", "sh", "-c", body]);
    until("the command runs", || home.path("ready").exists());
    signal(&home, "USR1", &tool);
    until("USR1 arrives", || home.path("got").exists());
    assert!(tool.try_wait().unwrap().is_none());
    signal(&home, "USR2", &tool);
    assert_eq!(wait(&mut tool, Instant::now() + PROMPT).expect("it ends").code(), Some(4));
}

#[test]
fn a_killed_tool_takes_its_command_along() {
    let home = Home::new();
    let sleep = marked();
    let body = format!(": > ready; exec {sleep}");
    let mut tool = start(&home, &["60", "sh", "-c", &body]);
    until("the command runs", || home.path("ready").exists() && alive(&sleep));
    tool.kill().unwrap();
    tool.wait().unwrap();
    until("the command is gone", || !alive(&sleep));
}

#[test]
fn a_suspended_tool_suspends_its_tree_and_both_go_on() {
    let home = Home::new();
    let body = "echo $$ > pid; while :; do echo x >> beats; sleep .02; done";
    let mut command = home.command(TOOL);
    // A group of its own whose parent is in the same session: there TSTP stops, as under a shell with job control.
    command.args(["60", "sh", "-c", body]).process_group(0).stderr(Stdio::null());
    let mut tool = command.spawn().unwrap();
    let beats = || std::fs::metadata(home.path("beats")).map_or(0, |m| m.len());
    until("it beats", || beats() > 4);
    let shell = std::fs::read_to_string(home.path("pid")).unwrap().trim().to_owned();
    let stopped = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" T"))
    };
    let own = tool.id().to_string();
    signal(&home, "TSTP", &tool);
    until("both are stopped", || stopped(&own) && stopped(&shell));
    let before = beats();
    signal(&home, "CONT", &tool);
    until("both go on", || !stopped(&own) && !stopped(&shell) && beats() > before + 4);
    signal(&home, "TERM", &tool);
    assert!(wait(&mut tool, Instant::now() + PROMPT).is_some());
}

#[test]
fn it_ends_where_proc_is_not_mounted() {
    let home = Home::new();
    let sleep = marked();
    let inner = format!(
        "mount -t tmpfs none /proc || exit 99; {TOOL} -k .2 .4 sh -c '{sleep} & {sleep}'; echo $?; \
         {TOOL} 30 sh -c '{sleep} & exit 6'; echo $?"
    );
    let out = run(home.command("unshare").args(["--mount", "sh", "-c", &inner]));
    if out.code == 99 || out.err().contains("unshare") {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "no mount namespace here: without /proc not tried");
        return;
    }
    assert_eq!(out.out(), "2\n6\n", "{}", out.err());
    assert!(out.wall < PROMPT && !alive(&sleep), "{:?}", out.wall);
}
