//! `hf-fetch --segments`: parallel ranges where they fit together, one stream where they do not.

mod fetching;
mod private_home;
mod servers;

use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fetching::*;
use private_home::*;
use servers::behaviour::{TAG, content, good};
use servers::{Asked, Server, Wire};

/// Three pieces of 8 MiB, the last one short.
const SIZE: usize = 20_000_000;
const PIECE: usize = 8 << 20;

/// A server whose GETs with a range are answered by `then`.
fn parts(
    file: &Arc<Vec<u8>>,
    then: impl Fn(usize, &[u8], &Asked, &mut Wire) + Send + Sync + 'static,
) -> Server {
    let file = file.clone();
    let count = AtomicUsize::new(0);
    Server::start(move |asked, wire| {
        if asked.method == "GET" && asked.range().is_some() {
            then(count.fetch_add(1, Ordering::SeqCst), &file, asked, wire);
        } else {
            good(&file, TAG, asked, wire);
        }
    })
}

fn came(case: &str, home: &Home, file: &[u8], output: &Output) {
    assert_eq!((output.code, output.field(1)), (0, "healed".into()), "{case}: {output:?}");
    assert!(fs::read(target(home)).unwrap() == file, "{case}: other bytes");
    assert_eq!(listing(home), ["m.gguf"], "{case}");
}

/// How the ranged requests are answered, and whether one stream had to do it in the end.
#[test]
fn pieces_that_do_not_fit_are_fetched_as_one_stream() {
    type Answer = fn(usize, &[u8], &Asked, &mut Wire);
    let table: [(&str, Answer, bool); 7] = [
        ("as it should be", |_, file, asked, wire| good(file, TAG, asked, wire), false),
        (
            "dropped once inside a piece",
            |n, file, asked, wire| {
                if n != 1 {
                    return good(file, TAG, asked, wire);
                }
                let (first, last) = asked.range().unwrap();
                let last = last.unwrap();
                let range = format!("bytes {first}-{last}/{SIZE}");
                let length = (last - first + 1).to_string();
                wire.head(206, &[("content-range", &range), ("content-length", &length), ("etag", TAG)]);
                wire.body(&file[first..first + 100_000]);
            },
            false,
        ),
        (
            "ranges ignored",
            |_, file, _, wire| {
                wire.head(200, &[("content-length", &SIZE.to_string())]);
                wire.body(&file[..1000]);
            },
            true,
        ),
        (
            "another part",
            |_, file, asked, wire| {
                let (first, last) = asked.range().unwrap();
                let last = last.unwrap();
                let range = format!("bytes {}-{last}/{SIZE}", first + 1);
                wire.head(206, &[("content-range", &range)]);
                wire.body(&file[first + 1..=last]);
            },
            true,
        ),
        (
            "another size",
            |_, file, asked, wire| {
                let (first, last) = asked.range().unwrap();
                let last = last.unwrap();
                wire.head(206, &[("content-range", &format!("bytes {first}-{last}/{}", SIZE + 1))]);
                wire.body(&file[first..=last]);
            },
            true,
        ),
        (
            "another entity each time",
            |n, file, asked, wire| {
                let (first, last) = asked.range().unwrap();
                let last = last.unwrap();
                let tag = format!("\"{n}\"");
                let range = format!("bytes {first}-{last}/{SIZE}");
                wire.head(206, &[("content-range", &range), ("etag", &tag)]);
                wire.body(&file[first..=last]);
            },
            true,
        ),
        (
            "other bytes in one piece",
            |n, file, asked, wire| {
                let (first, last) = asked.range().unwrap();
                let last = last.unwrap();
                let range = format!("bytes {first}-{last}/{SIZE}");
                wire.head(206, &[("content-range", &range)]);
                if n == 1 {
                    wire.body(vec![0; last - first + 1]);
                } else {
                    wire.body(&file[first..=last]);
                }
            },
            true,
        ),
    ];
    let file = content(70, SIZE);
    for (case, answer, whole) in table {
        let server = parts(&file, answer);
        let home = home_of(&file);
        let output = run(&mut fetch(&home, &server.url(), &["m", "--segments", "3"]));
        came(case, &home, &file, &output);
        assert_eq!(server.gets().iter().any(|a| a.range().is_none()), whole, "{case}");
    }
}

#[test]
fn several_pieces_are_on_their_way_at_once_and_taken_in_order() {
    let file = content(71, SIZE);
    // The first piece is answered when the others are asked for.
    let asked_for = Arc::new(AtomicUsize::new(0));
    let seen = asked_for.clone();
    let server = parts(&file, move |_, file, asked, wire| {
        seen.fetch_add(1, Ordering::SeqCst);
        let end = Instant::now() + Duration::from_secs(20);
        while asked.range().unwrap().0 == 0 && seen.load(Ordering::SeqCst) < 3 && Instant::now() < end {
            servers::rest(2);
        }
        good(file, TAG, asked, wire);
    });
    let home = home_of(&file);
    let output = run(&mut fetch(&home, &server.url(), &["m", "--segments", "3"]));
    came("parallel", &home, &file, &output);
    assert_eq!(asked_for.load(Ordering::SeqCst), 3);
}

#[test]
fn a_killed_run_of_pieces_leaves_a_whole_beginning() {
    let file = content(72, SIZE);
    // The third piece never comes.
    let server = parts(&file, |_, file, asked, wire| {
        if asked.range().unwrap().0 == 2 * PIECE {
            wire.gone(Duration::from_secs(30));
        } else {
            good(file, TAG, asked, wire);
        }
    });
    let home = home_of(&file);
    let mut first = fetch(&home, &server.url(), &["m", "--segments", "3"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    while partial(&home, &file).metadata().map_or(0, |m| m.len()) < 2 * PIECE as u64 {
        assert!(Instant::now() < end, "two pieces never came");
        servers::rest(2);
    }
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(fs::read(partial(&home, &file)).unwrap() == file[..2 * PIECE]);
    let server = parts(&file, |_, file, asked, wire| good(file, TAG, asked, wire));
    let output = run(&mut fetch(&home, &server.url(), &["m"]));
    came("killed", &home, &file, &output);
    assert_eq!(server.sent(), (SIZE - 2 * PIECE) as u64);
}

/// On a terminal it is a bar, redrawn in place.
#[test]
fn a_terminal_sees_a_bar() {
    let file = content(73, SIZE);
    let server = parts(&file, |_, file, asked, wire| good(file, TAG, asked, wire));
    let home = home_of(&file);
    let base = fetch(&home, &server.url(), &[]);
    if servers::real::program("script").is_none() {
        return;
    }
    let mut command = home.command("script");
    command.args(["-q", "-e", "-c", &format!("'{}' m", base.get_program().display()), "typescript"]);
    for (name, value) in base.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let output = run(&mut command);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.out().contains(&format!("\rm [{}] 20 MB of 20 MB", "#".repeat(30))), "{output:?}");
    assert!(!output.out().contains(" %, "), "{output:?}");
}
