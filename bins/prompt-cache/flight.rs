//! Single flight: of equal calls at the same time one runs its command, the others wait for its answer.

use std::time::Duration;

use contract::clock::Deadline;
use contract::{Fix, message};
use files::claim::Claim;
use files::digest::Sha;

use crate::TOOL;
use crate::store::{Hit, Store};

/// Between two looks at whether the other has an answer.
const STEP: Duration = Duration::from_millis(20);

/// Whose turn it is.
pub(crate) enum Turn {
    /// Ours; others wait until the claim is dropped. Without one nobody waits for us.
    Ours { _claim: Option<Claim> },
    /// Another had the answer.
    Theirs(Hit),
}

/// Waits for our turn or another's answer, at most `bound`; then it is our turn without a claim. A holder that was
/// killed has freed its claim, one that failed has left no answer: then the next one runs.
pub(crate) fn turn(store: &Store, fix: &Fix, key: &Sha, bound: Duration) -> Turn {
    let claim = match store.claim(fix, key) {
        Ok(claim) => claim,
        Err(cause) => {
            let cause = message::cause_of(&cause);
            message::note(TOOL, &format!("cannot lock the key, equal calls may run at once: {cause}"));
            return Turn::Ours { _claim: None };
        }
    };
    let deadline = Deadline::after(bound);
    loop {
        let Ok(ours) = claim.take() else { return Turn::Ours { _claim: None } };
        if let crate::store::Found::Hit(hit) = store.look(key) {
            return Turn::Theirs(hit);
        }
        if ours {
            return Turn::Ours { _claim: Some(claim) };
        }
        if deadline.over() {
            message::note(TOOL, "an equal call did not end in time, this one runs on its own");
            return Turn::Ours { _claim: None };
        }
        deadline.pause(STEP);
    }
}
