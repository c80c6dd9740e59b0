//! A file cut or extended at any byte is found by the library without a pin.

#[path = "vectors/gguf/corpus.rs"]
mod corpus;
#[path = "fuzz/gguf_file.rs"]
mod gguf_file;
#[path = "fuzz/gguf_oracle.rs"]
mod gguf_oracle;

use std::cell::Cell;
use std::io;

use contract::State;
use gguf::types::{Type, of};
use gguf::{Source, examine};
use gguf_file::GgufFile;

/// Where the tensor data of `dv-good.gguf` begins.
const DATA: usize = 8224;

#[test]
fn a_cut_at_every_byte_of_the_header_and_at_many_of_the_data_is_short() {
    let good = corpus::good();
    assert_eq!(examine(&&good[..]).unwrap().data_start, DATA as u64);
    let in_data = (DATA..good.len()).step_by(509).chain(good.len() - 300..good.len());
    for length in (0..DATA).chain(in_data) {
        let flaw = examine(&&good[..length]).expect_err("cut");
        assert_eq!(flaw.state, State::Short, "{length}: {}", flaw.cause);
    }
}

#[test]
fn a_cut_at_every_byte_of_a_small_model_is_found() {
    let whole = GgufFile::small().alignment(64).tensor("last", &[5], 24, 5).write().bytes;
    assert!(examine(&&whole[..]).unwrap().weak.is_empty());
    let padding = 64 - 5;
    for length in 0..whole.len() {
        match examine(&&whole[..length]) {
            Err(flaw) => assert_eq!(flaw.state, State::Short, "{length}: {}", flaw.cause),
            Ok(structure) => {
                assert!(length >= whole.len() - padding, "{length} bytes are accepted");
                assert!(structure.weak[0].contains("padding"), "{length}: {:?}", structure.weak);
            }
        }
    }
}

#[test]
fn appended_bytes_are_found_from_the_first_on() {
    let good = corpus::good();
    for filler in [0, b'x', 0xff] {
        for extra in (1..70).chain([4096, 100_000]) {
            let mut longer = good.clone();
            longer.resize(good.len() + extra, filler);
            let flaw = examine(&&longer[..]).expect_err("extended");
            assert_eq!(flaw.state, State::Corrupt);
            let appended =
                if extra == 1 { "1 byte appended".into() } else { format!("{extra} bytes appended") };
            assert!(flaw.cause.starts_with(&appended), "{}", flaw.cause);
        }
    }
}

#[test]
fn what_was_appended_is_named() {
    let good = corpus::good();
    let appended: [(&[u8], &str); 3] =
        [(b"<html>503</html>", "an HTML page"), (&good, "another GGUF"), (&[0; 100], "all zeros")];
    for (tail, name) in appended {
        let flaw = examine(&&[&good, tail].concat()[..]).expect_err("extended");
        assert!(flaw.cause.contains(name), "{}", flaw.cause);
    }
}

/// A file that is cut by another program after it was opened: it claims its old size and ends early.
struct Cut<'a> {
    bytes: &'a [u8],
    claimed: u64,
    reads: Cell<u32>,
}

impl Source for Cut<'_> {
    fn size(&self) -> u64 {
        self.claimed
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.reads.set(self.reads.get() + 1);
        self.bytes.read_at(buffer, at)
    }
}

#[test]
fn a_file_that_shrinks_while_its_header_is_read_is_unknown() {
    let good = corpus::good();
    for length in (24..DATA).step_by(97) {
        let cut = Cut { bytes: &good[..length], claimed: good.len() as u64, reads: Cell::new(0) };
        let flaw = examine(&cut).expect_err("cut");
        assert_eq!(flaw.state, State::Unknown, "{length}: {}", flaw.cause);
        assert!(cut.reads.get() < 100, "{} reads", cut.reads.get());
    }
}

#[test]
fn every_type_has_the_block_and_the_bytes_of_the_second_reading() {
    for id in 0..100 {
        let known = match of(id) {
            Type::Known(layout) => Some((layout.block.into(), layout.bytes.into())),
            Type::Removed(_) | Type::Unknown => None,
        };
        assert_eq!(known, gguf_oracle::layout(id.into()), "{id}");
    }
}

/// A disk that fails is not a damaged model.
#[test]
fn a_read_error_is_unknown() {
    struct Broken;
    impl Source for Broken {
        fn size(&self) -> u64 {
            1000
        }
        fn read_at(&self, _buffer: &mut [u8], _at: u64) -> io::Result<usize> {
            Err(io::Error::from(io::ErrorKind::StaleNetworkFileHandle))
        }
    }
    assert_eq!(examine(&Broken).expect_err("unreadable").state, State::Unknown);
}

/// Reads come back short and interrupted on some file systems.
#[test]
fn short_and_interrupted_reads_change_nothing() {
    struct Slow<'a>(&'a [u8], Cell<u32>);
    impl Source for Slow<'_> {
        fn size(&self) -> u64 {
            self.0.len() as u64
        }
        fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
            self.1.set(self.1.get() + 1);
            if self.1.get().is_multiple_of(3) {
                return Err(io::Error::from(io::ErrorKind::Interrupted));
            }
            let n = buffer.len().min(7);
            self.0.read_at(&mut buffer[..n], at)
        }
    }
    let good = corpus::good();
    assert_eq!(examine(&Slow(&good, Cell::new(0))), examine(&&good[..]));
}
