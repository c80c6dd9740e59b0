//! `sh-timeout` and output: bounded exactly, lost never, and a reader that goes away or dawdles.

mod private_home;

use std::time::Duration;

use private_home::*;

const TOOL: &str = env!("CARGO_BIN_EXE_sh-timeout");

#[test]
fn endless_output_is_cut_at_exactly_so_many_bytes() {
    let home = Home::new();
    for (limit, bytes) in [("0", 0), ("1", 1), ("65536", 65536), ("65537", 65537), ("1M", 1 << 20)] {
        let out = run(home.command(TOOL).args(["--max-output", limit, "60", "yes"]));
        assert_eq!((out.code, out.stdout.len()), (2, bytes), "{limit}");
        assert!(out.stdout.chunks(2).all(|c| c == b"y\n" || c == b"y"), "{limit}");
        assert!(out.wall < Duration::from_secs(20), "{limit}: {:?}", out.wall);
    }
}

#[test]
fn both_streams_count_together() {
    let home = Home::new();
    let body = "printf aaaaaaaaaa; printf bbbbbbbbbb >&2; printf cccccccccc";
    let all = run(home.command(TOOL).args(["--max-output", "30", "60", "sh", "-c", body]));
    assert_eq!((all.code, all.out().as_str(), all.err().as_str()), (0, "aaaaaaaaaacccccccccc", "bbbbbbbbbb"));
    let cut = run(home.command(TOOL).args(["--max-output", "7", "60", "sh", "-c", body]));
    let said = cut.err();
    let passed = said.split("sh-timeout:").next().unwrap();
    assert_eq!((cut.code, cut.stdout.len() + passed.len()), (2, 7), "{said}");
}

#[test]
fn the_order_of_two_streams_in_one_file_is_kept() {
    let home = Home::new();
    let body = "i=0; while [ $i -lt 200 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done";
    let shell = format!("{TOOL} --max-output 1M 60 sh -c '{body}' 2>&1");
    let expected = run(home.command("sh").args(["-c", &format!("{{ {body}; }} 2>&1")])).out();
    assert_eq!(run(home.command("sh").args(["-c", &shell])).out(), expected);
}

#[test]
fn what_was_written_before_the_end_is_not_lost() {
    let home = Home::new();
    // The last words fill the pipe when the command is over, and the reader is slow.
    let body = "head -c 300000 /dev/zero | tr '\\0' x";
    for options in ["", "--max-output 1M", "--idle 20"] {
        let shell = format!("{TOOL} {options} 60 sh -c \"{body}\" | (sleep .3; wc -c)");
        assert_eq!(run(home.command("sh").args(["-c", &shell])).out().trim(), "300000", "{options}");
    }
}

#[test]
fn a_reader_that_never_reads_holds_nobody_beyond_the_bound() {
    let home = Home::new();
    let shell =
        format!("mkfifo pipe; exec 3<>pipe; {TOOL} -k .2 --max-output 1G .5 yes >pipe 2>/dev/null; echo $?");
    let out = run(home.command("sh").args(["-c", &shell]));
    assert_eq!(out.out(), "2\n");
    assert!(out.wall < Duration::from_secs(20), "{:?}", out.wall);
}

#[test]
fn a_reader_that_goes_away_ends_the_command_as_without_us() {
    let home = Home::new();
    for options in ["", "--max-output 1G", "--idle 30"] {
        let shell = format!("{{ {TOOL} {options} 30 yes; echo $? >&2; }} | head -1");
        let out = run(home.command("sh").args(["-c", &shell]));
        assert_eq!((out.out().as_str(), out.err().as_str()), ("y\n", "141\n"), "{options}");
        assert!(out.wall < Duration::from_secs(20), "{options}: {:?}", out.wall);
    }
}

#[test]
fn a_full_disk_is_74_with_its_cause() {
    let home = Home::new();
    let direct =
        run(home.command("sh").args(["-c", &format!("{TOOL} 9 sh -c 'echo hi || exit 7' >/dev/full")]));
    assert_eq!(direct.code, 7, "passed on directly, the command sees it itself");
    let shell = format!("{TOOL} --max-output 1M 30 yes >/dev/full");
    let pumped = run(home.command("sh").args(["-c", &shell]));
    assert_eq!(pumped.code, 74);
    assert!(pumped.err().contains("cannot write the output of 'yes': no space left"), "{}", pumped.err());
    for option in ["--help", "--version"] {
        let out = run(home.command("sh").args(["-c", &format!("exec {TOOL} {option} >/dev/full")]));
        assert_eq!(out.code, 74, "{option}");
    }
}

#[test]
fn a_closed_stdout_is_the_commands_to_notice() {
    let home = Home::new();
    for options in ["", "--max-output 1M"] {
        let shell = format!("exec {TOOL} {options} 9 sh -c 'echo hi 2>/dev/null || exit 7' >&-");
        assert_eq!(run(home.command("sh").args(["-c", &shell])).code, 7, "{options}");
    }
    let help = run(home.command("sh").args(["-c", &format!("exec {TOOL} --help >&-")]));
    assert_eq!(help.code, 74);
}

#[test]
fn silence_ends_a_command_that_still_runs_and_speech_does_not() {
    let home = Home::new();
    let body = "for i in 1 2 3 4 5 6; do echo $i; sleep .2; done";
    let speaks = run(home.command(TOOL).args(["--idle", "5", "60", "sh", "-c", body]));
    assert_eq!((speaks.code, speaks.out().lines().count()), (0, 6));
    let silent = run(home.command(TOOL).args(["--idle", ".5", "60", "sh", "-c", "echo on; exec sleep 60"]));
    assert_eq!((silent.code, silent.out().as_str()), (2, "on\n"));
    assert!(silent.wall < Duration::from_secs(20));
}

#[test]
fn a_socket_as_stdout_gets_everything() {
    use std::io::Read as _;
    use std::os::fd::OwnedFd;
    let home = Home::new();
    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        ours.read_to_end(&mut bytes).map(|_| bytes.len())
    });
    let mut command = home.command(TOOL);
    command.args(["--max-output", "3M", "60", "yes"]).stdout(OwnedFd::from(theirs));
    command.stderr(std::process::Stdio::null());
    let mut tool = command.spawn().unwrap();
    drop(command);
    let status = wait(&mut tool, std::time::Instant::now() + Duration::from_secs(30)).expect("it ends");
    assert_eq!((status.code(), reader.join().unwrap().unwrap()), (Some(2), 3 << 20));
}
