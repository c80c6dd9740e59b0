//! `hf-fetch` against servers that misbehave: each ends with the pinned file or with a named failure, in bounded
//! time, and never with a half file under the final name.

mod fetching;
mod private_home;
mod servers;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fetching::*;
use private_home::*;
use servers::behaviour::{PAGE, TAG, after_head, content, cut, good};
use servers::{Asked, Server, Wire};

const SIZE: usize = 140_000;

/// Fetches from a server whose GETs are answered by `then`; the whole run is short.
fn fetch_from(
    seed: u64,
    args: &[&str],
    then: impl Fn(usize, &[u8], &Asked, &mut Wire) + Send + Sync + 'static,
) -> (Home, Arc<Vec<u8>>, Server, Output) {
    let file = content(seed, SIZE);
    let server = Server::start(after_head(file.clone(), then));
    let home = home_of(&file);
    let output = run(fetch(&home, &server.url(), &["m", "--stall", "2"]).args(args));
    (home, file, server, output)
}

/// Runs cases side by side: most of their time is waiting.
fn each<T: Copy + Send + Sync>(cases: &[T], case: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for value in cases {
            scope.spawn(|| case(*value));
        }
    });
}

/// The file came, whole, and nothing else is left.
fn came(case: &str, home: &Home, file: &[u8], output: &Output) {
    assert_eq!((output.code, output.field(1)), (0, "healed".into()), "{case}: {output:?}");
    assert!(fs::read(target(home)).unwrap() == file, "{case}: other bytes");
    assert_eq!(listing(home), ["m.gguf"], "{case}");
}

/// It did not come, for this cause, and nothing has the final name.
fn failed(case: &str, home: &Home, output: &Output, state: &str, word: &str) {
    assert_eq!((output.code, output.field(1).as_str()), (3, state), "{case}: {output:?}");
    assert!(output.field(4).starts_with(word), "{case}: {output:?}");
    assert!(!target(home).exists(), "{case}");
}

#[test]
fn a_connection_dropped_at_any_byte_is_continued_behind_it() {
    each(&[0, 1, 40_000, SIZE - 1], |at| {
        let (home, file, server, output) = fetch_from(at as u64, &[], move |n, file, asked, wire| {
            if n == 0 { cut(file, 0, at, wire) } else { good(file, TAG, asked, wire) }
        });
        came(&format!("dropped at {at}"), &home, &file, &output);
        let range = server.gets()[1].range();
        assert_eq!(range, (at > 0).then_some((at, None)), "dropped at {at}");
        assert_eq!(server.sent(), SIZE as u64, "no byte came twice");
    });
}

/// The naive client appends: 40,000 bytes and then the whole file.
#[test]
fn d09_a_server_that_ignores_range_gets_a_fresh_start() {
    let (home, file, server, output) = fetch_from(2, &[], |n, file, asked, wire| {
        if n == 0 {
            return cut(file, 0, 40_000, wire);
        }
        assert_eq!(asked.range(), Some((40_000, None)));
        wire.head(200, &[("content-length", &SIZE.to_string())]);
        wire.body(file);
    });
    came("ignores range", &home, &file, &output);
    assert_eq!(server.gets().len(), 2);
}

#[test]
fn a_short_body_is_never_a_file_whatever_its_framing_said() {
    let (home, file, _, output) = fetch_from(3, &[], |n, file, asked, wire| match n {
        // Closed without a length.
        0 => {
            wire.head(200, &[]);
            wire.body(&file[..50_000]);
        }
        // Chunked, and cut between two chunks.
        1 => {
            wire.head(
                206,
                &[
                    ("transfer-encoding", "chunked"),
                    ("content-range", &format!("bytes 50000-{}/{SIZE}", SIZE - 1)),
                ],
            );
            wire.raw("2710\r\n");
            wire.body(&file[50_000..60_000]);
            wire.raw("\r\n");
        }
        // Chunked, ended properly, too early.
        2 => {
            wire.head(
                206,
                &[
                    ("transfer-encoding", "chunked"),
                    ("content-range", &format!("bytes 60000-{}/{SIZE}", SIZE - 1)),
                ],
            );
            wire.raw("2710\r\n");
            wire.body(&file[60_000..70_000]);
            wire.raw("\r\n0\r\n\r\n");
        }
        _ => good(file, TAG, asked, wire),
    });
    came("short bodies", &home, &file, &output);
}

#[test]
fn a_body_without_length_that_ends_where_the_pin_says_is_the_file() {
    let (home, file, _, output) = fetch_from(4, &[], |_, file, _, wire| {
        wire.head(200, &[]);
        wire.body(file);
    });
    came("no length", &home, &file, &output);
}

#[test]
fn a_body_that_goes_on_is_cut_where_the_pin_ends_and_then_judged() {
    let (home, file, _, output) = fetch_from(5, &[], |_, file, _, wire| {
        wire.head(200, &[]);
        wire.body(file);
        wire.body(PAGE);
    });
    came("goes on", &home, &file, &output);
}

#[test]
fn a_length_that_is_not_the_pinned_one_is_refused_unread() {
    for length in [SIZE - 1, SIZE + 1, 0] {
        let (home, _, server, output) = fetch_from(6, &[], move |_, _, _, wire| {
            wire.head(200, &[("content-length", &length.to_string())]);
        });
        failed(&length.to_string(), &home, &output, "bad", "changed: ");
        assert_eq!((server.gets().len(), listing(&home).len()), (1, 0), "{length}");
    }
}

#[test]
fn nothing_behind_what_is_held_means_another_file_and_a_fresh_start() {
    let (home, file, server, output) = fetch_from(7, &[], |n, file, asked, wire| match n {
        0 => cut(file, 0, 40_000, wire),
        1 => {
            wire.head(416, &[("content-type", "text/html"), ("content-length", &PAGE.len().to_string())]);
            wire.raw(PAGE);
        }
        _ => good(file, TAG, asked, wire),
    });
    came("416", &home, &file, &output);
    assert_eq!(server.gets()[2].range(), None);
}

#[test]
fn a_part_that_starts_elsewhere_is_refused() {
    each(&[0, 39_999, 40_001], |start| {
        let (home, file, server, output) = fetch_from(8, &[], move |n, file, asked, wire| match n {
            0 => cut(file, 0, 40_000, wire),
            1 => {
                wire.head(
                    206,
                    &[
                        ("content-length", &(SIZE - start).to_string()),
                        ("content-range", &format!("bytes {start}-{}/{SIZE}", SIZE - 1)),
                    ],
                );
                wire.body(&file[start..]);
            }
            _ => good(file, TAG, asked, wire),
        });
        came(&format!("starts at {start}"), &home, &file, &output);
        assert_eq!(server.gets()[2].range(), None, "asked for the whole after that");
    });
}

#[test]
fn a_part_that_nobody_asked_for_is_refused() {
    let (home, _, _, output) = fetch_from(9, &[], |_, file, _, wire| {
        wire.head(206, &[("content-range", &format!("bytes 0-99/{SIZE}")), ("content-length", "100")]);
        wire.body(&file[..100]);
    });
    failed("unasked part", &home, &output, "failed", "protocol: ");
}

#[test]
fn a_file_that_changes_half_way_is_not_spliced() {
    // The server honours If-Range, or ignores it and shows the new tag, or shows none at all.
    each(&[0, 1, 2], |kind| {
        let old = content(90, SIZE);
        let (home, file, _, output) = fetch_from(10, &[], move |n, file, asked, wire| match (n, kind) {
            (0, _) => {
                wire.head(200, &[("content-length", &SIZE.to_string()), ("etag", "\"old\"")]);
                wire.body(&old[..40_000]);
            }
            (_, 0) => good(file, TAG, asked, wire),
            (1, _) => {
                let (first, _) = asked.range().unwrap();
                let range = format!("bytes {first}-{}/{SIZE}", SIZE - 1);
                let mut headers = vec![("content-range", range.as_str())];
                if kind == 1 {
                    headers.push(("etag", TAG));
                }
                wire.head(206, &headers);
                wire.body(&file[first..]);
            }
            _ => good(file, TAG, asked, wire),
        });
        came(&format!("changed half way, {kind}"), &home, &file, &output);
        // A tag says it before the bytes are read, else the digest says it after.
        let word = ["", "another entity now", "what came in pieces is not the pinned file"][kind];
        assert!(output.err().contains(word), "{kind}: {}", output.err());
    });
}

#[test]
fn one_byte_a_second_is_a_stall() {
    let start = Instant::now();
    let (home, file, server, output) = fetch_from(11, &[], |n, file, asked, wire| {
        if n > 0 {
            return good(file, TAG, asked, wire);
        }
        wire.head(200, &[("content-length", &SIZE.to_string()), ("etag", TAG)]);
        for byte in &file[..20] {
            if !wire.body([*byte]) || wire.gone(Duration::from_millis(500)) {
                return;
            }
        }
    });
    came("trickle", &home, &file, &output);
    assert!(output.err().contains("stalled: "), "{}", output.err());
    assert!(server.gets()[1].range().is_some_and(|(first, _)| first > 0), "what trickled in is kept");
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn silence_is_a_stall_before_and_inside_the_answer() {
    each(&[0, 1, 2], |kind| {
        let (home, file, _, output) = fetch_from(12 + kind, &[], move |n, file, asked, wire| {
            if n > 0 {
                return good(file, TAG, asked, wire);
            }
            match kind {
                // No status line at all.
                0 => {}
                // Half a header.
                1 => drop(wire.raw("HTTP/1.1 200 OK\r\ncontent-le")),
                _ => cut(file, 0, 1000, wire),
            }
            wire.gone(Duration::from_secs(20));
        });
        came(&format!("silence {kind}"), &home, &file, &output);
        assert!(output.err().contains("stalled: "), "{kind}: {}", output.err());
    });
}

#[test]
fn a_connection_closed_before_the_status_line_is_lost_not_503() {
    let (home, file, _, output) = fetch_from(16, &[], |n, file, asked, wire| {
        if n > 0 {
            good(file, TAG, asked, wire);
        }
    });
    came("closed", &home, &file, &output);
    assert!(output.err().contains("connection lost: "), "{}", output.err());
}

#[test]
fn a_server_that_asks_to_wait_is_waited_for() {
    let began = Arc::new(AtomicUsize::new(0));
    let start = Instant::now();
    let (home, file, server, output) = fetch_from(17, &[], move |n, file, asked, wire| match n {
        0 => wire.head(429, &[("retry-after", "1"), ("content-length", "0")]),
        1 => wire.head(503, &[("content-length", "0")]),
        _ => {
            began.store(n, Ordering::SeqCst);
            good(file, TAG, asked, wire);
        }
    });
    came("429", &home, &file, &output);
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert_eq!(server.gets().len(), 3);
}

#[test]
fn a_server_that_asks_for_an_hour_is_left_at_once() {
    for asks in ["3600", "Wed, 31 Dec 2200 00:00:00 GMT"] {
        let (home, _, server, output) = fetch_from(18, &[], move |_, _, _, wire| {
            wire.head(503, &[("retry-after", asks), ("content-length", "0")]);
        });
        failed(asks, &home, &output, "failed", "busy: ");
        assert_eq!(server.gets().len(), 1);
    }
}

#[test]
fn retries_end() {
    // The second server never gets further than before, although bytes flow each time.
    each(&[("server: ", 0), ("connection lost: ", 90_000)], |(cause, bytes)| {
        let (home, _, server, output) = fetch_from(19, &[], move |_, file, _, wire| {
            wire.head(if bytes > 0 { 200 } else { 500 }, &[("content-length", &SIZE.to_string())]);
            wire.body(&file[..bytes]);
        });
        failed(cause, &home, &output, "failed", cause);
        assert!((2..10).contains(&server.gets().len()), "{}", server.gets().len());
    });
}

#[test]
fn the_total_bound_ends_everything() {
    let start = Instant::now();
    let (home, file, _, output) = fetch_from(21, &["--limit", "1", "--stall", "30"], |_, file, _, wire| {
        cut(file, 0, 1000, wire);
        wire.gone(Duration::from_secs(20));
    });
    failed("limit", &home, &output, "failed", "expired: ");
    assert!(start.elapsed() < Duration::from_secs(15));
    assert_eq!(partial(&home, &file).metadata().unwrap().len(), 1000, "kept for the next run");
}

#[test]
fn a_web_page_in_place_of_the_file_is_named() {
    // By its type, and by its first bytes with the pinned length.
    let (home, _, server, output) = fetch_from(22, &[], |_, _, _, wire| {
        wire.head(200, &[("content-type", "text/html"), ("content-length", &PAGE.len().to_string())]);
        wire.raw(PAGE);
    });
    failed("typed", &home, &output, "failed", "web page: ");
    assert_eq!((server.gets().len(), listing(&home).len()), (1, 0));
    let (home, _, _, output) = fetch_from(23, &[], |_, _, _, wire| {
        wire.head(200, &[("content-length", &SIZE.to_string())]);
        let mut page = format!("\n {PAGE}").into_bytes();
        page.resize(SIZE, b' ');
        wire.raw(page);
    });
    failed("disguised", &home, &output, "failed", "web page: ");
    assert_eq!(listing(&home).len(), 0);
}

#[test]
fn headers_without_end_are_refused() {
    let (home, _, server, output) = fetch_from(24, &[], |_, _, _, wire| {
        wire.raw("HTTP/1.1 200 OK\r\n");
        for n in 0..100_000 {
            if !wire.raw(format!("x-{n}: {}\r\n", "y".repeat(1000))) {
                return;
            }
        }
    });
    failed("huge header", &home, &output, "failed", "protocol: ");
    assert_eq!(server.gets().len(), 1);
    // Large ones below the bound are read.
    let (home, file, _, output) = fetch_from(25, &[], |_, file, asked, wire| {
        wire.raw("HTTP/1.1 200 OK\r\nconnection: close\r\n");
        wire.raw(format!("x-large: {}\r\ncontent-length: {SIZE}\r\n\r\n", "y".repeat(40_000)));
        assert_eq!(asked.method, "GET");
        wire.body(file);
    });
    came("large header", &home, &file, &output);
}

#[test]
fn what_is_not_http_is_refused() {
    let (home, _, _, output) = fetch_from(26, &[], |_, _, _, wire| {
        wire.raw("SSH-2.0-OpenSSH_9.2\r\n\r\n");
    });
    failed("ssh", &home, &output, "failed", "protocol: ");
}

#[test]
fn bytes_damaged_on_the_way_are_not_called_a_changed_file() {
    let file = content(27, SIZE);
    let pin = sha(&file).hex();
    let server = Server::start(move |asked, wire| {
        let linked = [("x-linked-size", SIZE.to_string()), ("x-linked-etag", pin.clone())];
        let length = SIZE.to_string();
        let mut headers: Vec<_> = linked.iter().map(|(n, v)| (*n, v.as_str())).collect();
        headers.push(("content-length", &length));
        wire.head(200, &headers);
        if asked.method == "GET" {
            wire.body(&**content(28, SIZE));
        }
    });
    let home = home_of(&file);
    let output = run(&mut fetch(&home, &server.url(), &["m"]));
    failed("damaged", &home, &output, "failed", "corrupt: ");
    assert_eq!(listing(&home).len(), 0, "wrong bytes are not kept");
}
