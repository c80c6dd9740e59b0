//! `hf-fetch` stopped half way, on a full disk, and beside what earlier runs left.

mod fetching;
mod private_home;
mod servers;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fetching::*;
use private_home::*;
use servers::Server;
use servers::behaviour::{PAGE, TAG, content, good, serving};

/// A server that holds each answer after `at` bytes of the file until `open` is set.
fn gated(file: Arc<Vec<u8>>, at: usize, open: Arc<AtomicBool>) -> Server {
    Server::start(move |asked, wire| {
        let Some(first) = (asked.method == "GET").then(|| asked.range().map_or(0, |(first, _)| first)) else {
            return good(&file, TAG, asked, wire);
        };
        let length = (file.len() - first).to_string();
        let range = format!("bytes {first}-{}/{}", file.len() - 1, file.len());
        let headers = [("content-length", length.as_str()), ("etag", TAG), ("content-range", &range)];
        wire.head(if first > 0 { 206 } else { 200 }, &headers[..if first > 0 { 3 } else { 2 }]);
        wire.body(&file[first..at.max(first)]);
        while !open.load(Ordering::SeqCst) {
            if wire.gone(Duration::from_millis(5)) {
                return;
            }
        }
        wire.body(&file[at.max(first)..]);
    })
}

/// Waits until the partial file has `size` bytes.
fn wait_for_partial(home: &Home, file: &[u8], size: u64) {
    let end = Instant::now() + Duration::from_secs(20);
    while partial(home, file).metadata().map_or(0, |m| m.len()) < size {
        assert!(Instant::now() < end, "the partial file never had {size} bytes: {:?}", listing(home));
        servers::rest(2);
    }
}

#[test]
fn a_stopped_run_is_continued_and_leaves_no_half_file() {
    for signal in ["TERM", "INT", "KILL"] {
        let file = content(30, 500_000);
        let open = Arc::new(AtomicBool::new(false));
        let server = gated(file.clone(), 200_000, open.clone());
        let home = home_of(&file);
        let mut child =
            fetch(&home, &server.url(), &["m"]).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        wait_for_partial(&home, &file, 200_000);
        let kill = home.command("/bin/sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status();
        assert!(kill.unwrap().success());
        wait(&mut child, Instant::now() + Duration::from_secs(20)).expect("it stops");
        assert!(!target(&home).exists());
        open.store(true, Ordering::SeqCst);
        let output = run(&mut fetch(&home, &server.url(), &["m"]));
        assert_eq!(output.code, 0, "{signal}: {output:?}");
        assert!(output.field(4).starts_with("300000 of 500000 bytes"), "{signal}: {output:?}");
        assert_eq!(fs::read(target(&home)).unwrap(), *file);
        assert_eq!(listing(&home), ["m.gguf"]);
        let second = &server.gets()[1];
        assert_eq!((second.range(), second.header("if-range")), (Some((200_000, None)), Some(TAG)));
    }
}

#[test]
fn d11_a_partial_file_that_is_whole_is_recognised_without_a_request() {
    let file = content(31, 100_000);
    let server = Server::start(|_, wire| {
        wire.head(416, &[("content-type", "text/html"), ("content-length", &PAGE.len().to_string())]);
        wire.raw(PAGE);
    });
    let home = home_of(&file);
    let name = partial(&home, &file);
    home.file(name.strip_prefix(&home.dir).unwrap().to_str().unwrap(), &**file);
    let output = run(&mut fetch(&home, &server.url(), &["m"]));
    assert_eq!((output.code, output.field(1)), (0, "healed".into()), "{output:?}");
    assert_eq!(fs::read(target(&home)).unwrap(), *file);
    assert_eq!((server.asked().len(), listing(&home)), (0, vec!["m.gguf".to_owned()]));
}

/// What an earlier run may have left in the partial file, and the bytes that the next one has to fetch at most.
#[test]
fn a_partial_file_that_is_wrong_never_gets_through() {
    let file = content(32, 100_000);
    let mut flipped = file[..60_000].to_vec();
    flipped[30_000] ^= 1;
    let mut whole = file.to_vec();
    whole[99_999] ^= 1;
    let mut longer = file.to_vec();
    longer.extend_from_slice(b"<html>");
    let table = [
        ("right prefix", file[..60_000].to_vec(), 40_000),
        ("flipped bit", flipped, 140_000),
        ("zeros", vec![0; 60_000], 140_000),
        ("whole and wrong", whole, 100_000),
        ("longer", longer, 100_000),
        ("one byte short", file[..99_999].to_vec(), 1),
        ("empty", Vec::new(), 100_000),
    ];
    for (case, left, most) in table {
        let server = serving(&file);
        let home = home_of(&file);
        let name = partial(&home, &file);
        home.file(name.strip_prefix(&home.dir).unwrap().to_str().unwrap(), left);
        let output = run(&mut fetch(&home, &server.url(), &["m"]));
        assert_eq!(output.code, 0, "{case}: {output:?}");
        assert_eq!(fs::read(target(&home)).unwrap(), *file, "{case}");
        assert_eq!(server.sent(), most, "{case}");
        assert_eq!(listing(&home), ["m.gguf"], "{case}");
    }
}

#[test]
fn partial_files_of_an_older_pin_go_when_the_model_is_there() {
    let file = content(33, 10_000);
    let server = serving(&file);
    let home = home_of(&file);
    for name in [".m.gguf.0123456789ab.part", ".m.gguf.0123456789ab.from", ".other.gguf.0123456789ab.part"] {
        home.file(&format!(".selfheal/models/{name}"), b"x");
    }
    assert_eq!(run(&mut fetch(&home, &server.url(), &["m"])).code, 0);
    assert_eq!(listing(&home), [".other.gguf.0123456789ab.part", "m.gguf"]);
}

/// The smallest model: an architecture and one tensor of 32 numbers.
fn sound_model() -> Vec<u8> {
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    };
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend_from_slice(&1_u64.to_le_bytes());
    bytes.extend_from_slice(&1_u64.to_le_bytes());
    text(&mut bytes, "general.architecture");
    bytes.extend_from_slice(&8_u32.to_le_bytes());
    text(&mut bytes, "llama");
    text(&mut bytes, "t");
    bytes.extend_from_slice(&1_u32.to_le_bytes());
    bytes.extend_from_slice(&32_u64.to_le_bytes());
    bytes.extend_from_slice(&0_u32.to_le_bytes());
    bytes.extend_from_slice(&0_u64.to_le_bytes());
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    bytes.extend_from_slice(&[1; 128]);
    bytes
}

#[test]
fn another_sound_model_under_the_name_is_moved_aside() {
    let file = content(34, 10_000);
    let server = serving(&file);
    let theirs = sound_model();
    let home = home_of(&file);
    home.file(".selfheal/models/m.gguf", &theirs);
    let output = run(&mut fetch(&home, &server.url(), &["m"]));
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(fs::read(target(&home)).unwrap(), *file);
    assert_eq!(fs::read(home.path(".selfheal/models/m.gguf.aside-1")).unwrap(), theirs);
}

#[test]
fn d14_a_size_limit_is_named_before_a_byte_comes_and_after() {
    let file = content(35, 1_000_000);
    let open = Arc::new(AtomicBool::new(false));
    let server = gated(file.clone(), 600_000, open.clone());
    let home = home_of(&file);
    let under = |limit: &str| {
        let mut command = fetch(&home, &server.url(), &[]);
        let mut shell = home.command("/bin/sh");
        shell.args(["-c", &format!("ulimit -f {limit}; exec \"$@\""), "sh"]);
        shell.arg(command.get_program()).arg("m");
        for (name, value) in command.get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        command.env_clear();
        shell
    };
    // 512-byte blocks: less than the model.
    let output = run(&mut under("1000"));
    assert_eq!((output.code, output.field(1)), (3, "failed".into()), "{output:?}");
    assert!(output.field(4).starts_with("disk: size limit of 512000 bytes"), "{output:?}");
    assert_eq!((server.gets().len(), listing(&home).len()), (0, 0));
    // The limit comes when the download is under way: SIGXFSZ would kill the program without a word.
    let mut child =
        fetch(&home, &server.url(), &["m"]).stderr(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    wait_for_partial(&home, &file, 600_000);
    let limited = home
        .command("prlimit")
        .args(["--pid", &child.id().to_string(), "--fsize=700000"])
        .status()
        .is_ok_and(|status| status.success());
    open.store(true, Ordering::SeqCst);
    let status = wait(&mut child, Instant::now() + Duration::from_secs(20)).expect("it ends");
    if limited {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut text).unwrap();
        assert_eq!(status.code(), Some(3), "{text}");
        assert!(text.starts_with("failed\tmodel\tm\tdisk: cannot write "), "{text}");
        assert_eq!(partial(&home, &file).metadata().unwrap().size(), 700_000);
        let output = run(&mut fetch(&home, &server.url(), &["m"]));
        assert_eq!(output.code, 0, "{output:?}");
        assert!(output.field(4).starts_with("300000 of 1000000 bytes"), "{output:?}");
    } else {
        servers::real::not_run("prlimit missing");
    }
    assert_eq!(fs::read(target(&home)).unwrap(), *file);
}

/// A file system of 1 MiB, in a mount namespace of its own.
#[test]
fn d14_a_full_disk_is_named_and_only_the_missing_part_is_asked_for() {
    let file = content(36, 1_500_000);
    let server = serving(&file);
    let home = home_of(&file);
    home.file("prefix", &file[..900_000]);
    let name = partial(&home, &file).file_name().unwrap().to_str().unwrap().to_owned();
    // 1,500,000 bytes do not fit in 1.25 MiB; with 900,000 of them there, the rest does not fit into 0.3 MiB,
    // and fits when the disk has grown to 2 MiB.
    let script = format!(
        "mount -t tmpfs -o size=1280k none \"$M\" || exit 99\n\
         \"$F\" m; echo \"first $?\"; ls -A \"$M\"\n\
         cp prefix \"$M/{name}\"\n\
         \"$F\" m; echo \"second $?\"; ls -A \"$M\"\n\
         mount -o remount,size=2m \"$M\"\n\
         \"$F\" m; echo \"third $?\"; ls -A \"$M\"; cp \"$M/m.gguf\" result\n"
    );
    let models = home.path("models");
    fs::create_dir(&models).unwrap();
    let base = fetch(&home, &server.url(), &[]);
    let mut command = home.command("unshare");
    command.args(["-r", "-m", "/bin/sh", "-c", &script]);
    for (key, value) in base.get_envs() {
        command.env(key, value.unwrap_or_default());
    }
    command.env("F", base.get_program()).env("M", &models).env("SELFHEAL_MODELS_DIR", &models);
    if servers::real::program("unshare").is_none() {
        return;
    }
    let output = run(&mut command);
    if output.code == 99 || output.err().contains("unshare failed") {
        servers::real::not_run("no mount namespace");
        return;
    }
    let out = output.out();
    let lines: Vec<_> = out.lines().map(|l| l.split(" bytes needed").next().unwrap_or(l)).collect();
    assert_eq!(lines[0], "failed\tmodel\tm\tdisk: 1500000", "{output:?}");
    assert_eq!(lines[1], "first 3");
    let second = lines.iter().position(|l| l.starts_with("failed") && *l != lines[0]).unwrap();
    // The disk that 900,000 bytes take, in pages.
    assert_eq!(lines[second], "failed\tmodel\tm\tdisk: 598880", "{output:?}");
    assert_eq!(&lines[2..second], [""; 0], "no leftover: {output:?}");
    assert_eq!(&lines[second + 1..second + 3], ["second 3", &name], "the partial file is kept: {output:?}");
    assert!(lines[second + 3].starts_with("healed\tmodel\tm\t600000 of 1500000"), "{output:?}");
    assert_eq!(&lines[second + 4..], ["third 0", "m.gguf"], "{output:?}");
    assert_eq!(fs::read(home.path("result")).unwrap(), *file);
}

/// The verdict still comes when nothing can be written.
#[test]
fn a_home_that_cannot_be_written_is_a_named_failure() {
    let file = content(37, 1000);
    let server = serving(&file);
    let home = home_of(&file);
    home.file("a-file", b"");
    let blocked = home.path("a-file/models");
    let output = run(fetch(&home, &server.url(), &["m"]).env("SELFHEAL_MODELS_DIR", &blocked));
    assert_eq!((output.code, output.field(1)), (5, "unknown".into()), "{output:?}");
    let output = run(fetch(&home, &server.url(), &["m"]).env("SELFHEAL_MODELS_DIR", "/proc/models"));
    assert_eq!((output.code, output.field(1)), (3, "failed".into()), "{output:?}");
    assert!(output.field(4).starts_with("disk: cannot write in '/proc/models': "), "{output:?}");
    assert_eq!(server.gets().len(), 0);
}
