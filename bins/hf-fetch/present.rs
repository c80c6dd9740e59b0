//! What is under the final name already.

use std::path::Path;

use contract::message::{cause_of, quoted};
use files::digest::{self, Sha};
use files::open::{self, Print, Refusal};

/// What was found there.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Present {
    /// The pinned file, hashed now.
    Right,
    /// Nothing, or a file with other content; its print, so that it is not hashed twice.
    Other(Option<Print>),
    /// Something that is no file, and that no repair replaces.
    Blocked(String),
    /// It could not be read.
    Unreadable(String),
}

/// Compares a file with its pin; without a pin no file is right. A file whose print is `known` is not read again.
pub(crate) fn look(path: &Path, bytes: Option<u64>, sha: Option<&Sha>, known: Option<&Print>) -> Present {
    let unreadable = |cause: &std::io::Error| {
        Present::Unreadable(format!("cannot read {}: {}", quoted(path.as_os_str()), cause_of(cause)))
    };
    let (mut file, meta) = match open::regular(path) {
        Ok(found) => found,
        Err(Refusal::Io(cause)) if cause.kind() == std::io::ErrorKind::NotFound => {
            return Present::Other(None);
        }
        Err(Refusal::Io(cause)) => return unreadable(&cause),
        Err(Refusal::NotAFile(what)) => {
            return Present::Blocked(format!("{} is {}", quoted(path.as_os_str()), what.words()));
        }
    };
    let print = Print::of(&meta);
    let (Some(sha), Some(bytes)) = (sha, bytes) else { return Present::Other(Some(print)) };
    if bytes != meta.len() || known == Some(&print) {
        return Present::Other(Some(print));
    }
    match digest::of_file(&mut file) {
        Ok(Some(found)) if found == *sha => Present::Right,
        Ok(_) => Present::Other(Some(print)),
        Err(cause) => unreadable(&cause),
    }
}
