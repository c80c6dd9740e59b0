//! `swr-verify` on a manifest so large that entries are looked at while the next ones are still read.
#![allow(clippy::disallowed_methods, reason = "tests lay out files and start programs themselves")]

mod private_home;
mod swr_box;

use std::fs;

use private_home::{Output, run};
use swr_box::{Box, chmod};

const VERIFY: &str = env!("CARGO_BIN_EXE_swr-verify");
const ENTRIES: usize = 700;

fn verify(b: &Box, args: &[&str]) -> Output {
    run(b.home.command(VERIFY).args(args))
}

/// Many small files and a tree in their midst.
fn many() -> Box {
    let mut b = Box::new();
    for n in 0..ENTRIES {
        if n == ENTRIES / 2 {
            b.tree("t", &[("s", "sentinel", 0o644), ("d/x", "x", 0o755)]);
            b.add("t", b"t", 2, None, &[]);
        }
        let path = format!("many/{n}");
        b.home.file(&path, format!("content {n}"));
        b.add(&format!("many-{n}"), path.as_bytes(), 1, None, &[]);
    }
    b.sign();
    assert!(b.manifest.to_bytes().len() > 64 << 10, "it is not large");
    b
}

#[test]
fn every_entry_is_looked_at_once_and_in_order_whatever_the_number_of_threads() {
    let b = many();
    let ids: Vec<_> = b.manifest.lines.iter().map(|l| l.entry.id.clone()).collect();
    fs::remove_file(b.home.path("many/3")).unwrap();
    fs::write(b.home.path("many/399"), "CONTENT 399").unwrap();
    chmod(&b.home.path("many/699"), 0o600);
    fs::remove_file(b.home.path("t/d/x")).unwrap();
    let one = verify(&b, &["--no-cache", "--jobs", "1"]);
    assert_eq!(one.code, 1, "{}", one.err());
    let said: Vec<Vec<String>> =
        one.out().lines().map(|l| l.split('\t').map(str::to_owned).collect()).collect();
    let damaged: Vec<_> =
        said.iter().filter(|l| l[0] != "ok").map(|l| format!("{} {}", l[0], l[2])).collect();
    assert_eq!(
        damaged,
        ["missing many-3", "short t", "short t", "missing t", "corrupt many-399", "stripped many-699"]
    );
    let mut seen: Vec<_> = said.iter().map(|l| l[2].clone()).collect();
    seen.dedup();
    assert_eq!(seen, ids);
    for jobs in ["2", "5"] {
        let more = verify(&b, &["--no-cache", "--jobs", jobs]);
        assert_eq!((more.code, more.out()), (one.code, one.out()), "{jobs} jobs");
    }
    let only = verify(&b, &["--only", "many-399", "--only", "many-4"]);
    assert_eq!((only.code, only.out().lines().count()), (1, 2), "{}", only.out());
}

#[test]
fn a_wrong_line_anywhere_is_one_bad_line_and_nothing_else() {
    let b = many();
    let good = String::from_utf8(b.manifest.to_bytes()).unwrap();
    let lines: Vec<&str> = good.lines().collect();
    for at in [1, ENTRIES / 2, ENTRIES] {
        for (wrong, words) in [
            ("", "EOF"),
            ("{\"id\":", "EOF"),
            ("{\"id\":\"x\",\"path\":\"../x\"}", "expected a path below"),
            (lines[7], "'many-6' stands twice"),
        ] {
            let mut text = lines[..at].join("\n") + "\n" + wrong + "\n" + &lines[at..].join("\n") + "\n";
            if at == 1 && wrong == lines[7] {
                text = good.replace("\"id\":\"many-5\"", "\"id\":\"many-6\"");
            }
            b.write(text.as_bytes());
            for jobs in ["1", "4"] {
                let out = verify(&b, &["--jobs", jobs]);
                assert_eq!((out.code, out.out().lines().count()), (4, 1), "{wrong}: {}", out.out());
                assert_eq!((out.field(1), out.field(3)), ("bad".into(), "manifest".into()));
                assert!(out.out().contains(words), "{wrong} at {at}: {}", out.out());
            }
        }
    }
}

#[test]
fn needs_that_cannot_be_met_are_seen_among_many_that_can() {
    let mut b = many();
    let mut need = |id: &str, needs: &[&str]| {
        let mut entry = b.manifest.entry(id).unwrap().clone();
        entry.needs = needs.iter().map(|n| (*n).to_owned().into()).collect();
        b.manifest.put(entry);
        b.write(&b.manifest.to_bytes());
        let mut said = Vec::new();
        for jobs in ["1", "4"] {
            let out = verify(&b, &["--jobs", jobs]);
            let faults: Vec<_> =
                out.out().lines().filter(|l| !l.starts_with("ok\t")).map(str::to_owned).collect();
            said.push((out.code, faults));
        }
        assert_eq!(said[0], said[1]);
        said.remove(0)
    };
    assert_eq!(need("many-600", &["many-1", "t"]), (0, vec![]), "further up");
    assert_eq!(need("many-2", &["many-600", "many-650"]), (0, vec![]), "further down");
    let cycle = need("many-1", &["many-2"]);
    assert_eq!((cycle.0, cycle.1.len()), (1, 1), "{cycle:?}");
    assert!(cycle.1[0].starts_with("degraded\tmanifest\tneeds\tcycle of needs: "), "{cycle:?}");
    assert_eq!(need("many-1", &[]), (0, vec![]));
    let unknown = need("many-300", &["nobody"]);
    let words = "degraded\tmanifest\tneeds\tmany-300 needs 'nobody', which no entry is";
    assert_eq!(unknown, (1, vec![words.to_owned()]));
}
