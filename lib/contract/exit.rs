//! Every exit code of the toolkit, and how a verdict becomes one.

use crate::verdict::{Kind, State};

/// A process exit status. The constants below are the only place where a number is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code(u8);

/// Nothing is wrong.
pub const OK: Code = Code(0);
/// The command line was not understood.
pub const USAGE: Code = Code(64);
/// A program of the toolkit is missing.
pub const PROGRAM_MISSING: Code = Code(69);
/// A bug in the tool itself, a panic included.
pub const BUG: Code = Code(70);
/// Something could not be read or written.
pub const IO: Code = Code(74);
/// Another process holds the lock.
pub const BUSY: Code = Code(75);

/// Numbers of the guard family: every tool whose name does not begin with `swr`.
pub mod guard {
    use super::Code;
    /// At least one run was started and none gave an answer.
    pub const INFERENCE: Code = Code(2);
    /// The model is not available.
    pub const MODEL: Code = Code(3);
    /// The program to run is not available.
    pub const BINARY: Code = Code(4);
    /// It works, but not as asked for; also: a repair would be needed and there is no consent.
    pub const DEGRADED: Code = Code(5);
}

/// Numbers of the `swr` family.
pub mod swr {
    use super::Code;
    /// The workspace is damaged.
    pub const DAMAGED: Code = Code(1);
    /// Damage that could not be repaired.
    pub const NOT_REPAIRABLE: Code = Code(2);
    /// The recipe ended 0 and the entry is still damaged.
    pub const STILL_DAMAGED: Code = Code(3);
    /// The manifest is unusable or not signed.
    pub const MANIFEST: Code = Code(4);
}

/// Numbers that GNU `timeout` documents, spoken under that name only.
pub mod gnu {
    use super::Code;
    /// The bound was reached.
    pub const EXPIRED: Code = Code(124);
    /// `timeout` itself failed, wrong usage included.
    pub const FAILED: Code = Code(125);
    /// The command was found and could not be run.
    pub const NOT_RUNNABLE: Code = Code(126);
    /// The command was not found.
    pub const NOT_FOUND: Code = Code(127);
    /// KILL had to be sent.
    pub const KILLED: Code = Code(137);
}

impl Code {
    /// The status of another command, handed on unchanged by a prefix command.
    pub fn transparent(status: u8) -> Self {
        Self(status)
    }

    /// The number itself.
    pub fn number(self) -> u8 {
        self.0
    }
}

/// An exit family: how verdicts fold into a number.
pub trait Family {
    /// The codes of this family from worst to best; a code that is not listed is worst of all.
    const WORST_FIRST: &'static [Code];

    /// The number a single verdict stands for.
    fn code(state: State, kind: Kind) -> Code;

    /// The worse of two codes.
    fn worse(a: Code, b: Code) -> Code {
        let rank = |c: Code| Self::WORST_FIRST.iter().position(|w| *w == c).map_or(0, |p| p + 1);
        if rank(a) <= rank(b) { a } else { b }
    }
}

/// The guard family.
pub struct Guard;
/// The `swr` family.
pub struct Swr;

impl Family for Guard {
    const WORST_FIRST: &'static [Code] =
        &[guard::BINARY, guard::MODEL, guard::INFERENCE, guard::DEGRADED, OK];

    fn code(state: State, kind: Kind) -> Code {
        use State as S;
        match state {
            S::Ok | S::Healed => OK,
            S::Open | S::Degraded | S::Would | S::Skipped | S::Unknown | S::Untracked => guard::DEGRADED,
            S::Missing | S::Short | S::Corrupt | S::Stripped | S::Failed | S::Bad => match kind {
                Kind::Model => guard::MODEL,
                Kind::Binary => guard::BINARY,
                Kind::Run => guard::INFERENCE,
                _ => guard::DEGRADED,
            },
        }
    }
}

impl Family for Swr {
    const WORST_FIRST: &'static [Code] =
        &[swr::MANIFEST, swr::NOT_REPAIRABLE, swr::STILL_DAMAGED, swr::DAMAGED, OK];

    fn code(state: State, _kind: Kind) -> Code {
        use State as S;
        match state {
            S::Ok | S::Healed => OK,
            S::Missing
            | S::Short
            | S::Corrupt
            | S::Stripped
            | S::Would
            | S::Untracked
            | S::Degraded
            | S::Unknown => swr::DAMAGED,
            S::Failed | S::Open | S::Skipped => swr::NOT_REPAIRABLE,
            S::Bad => swr::MANIFEST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folds codes as a report does.
    fn fold<F: Family>(codes: &[Code]) -> Code {
        codes.iter().copied().fold(OK, F::worse)
    }

    #[test]
    fn guard_order_is_4_3_2_5_0() {
        assert_eq!(fold::<Guard>(&[]), OK);
        assert_eq!(fold::<Guard>(&[OK, guard::DEGRADED]), guard::DEGRADED);
        assert_eq!(fold::<Guard>(&[guard::DEGRADED, guard::INFERENCE, OK]), guard::INFERENCE);
        assert_eq!(fold::<Guard>(&[guard::INFERENCE, guard::MODEL, guard::DEGRADED]), guard::MODEL);
        assert_eq!(fold::<Guard>(&[guard::MODEL, guard::BINARY]), guard::BINARY);
    }

    #[test]
    fn swr_order_is_4_2_3_1_0() {
        assert_eq!(fold::<Swr>(&[OK, swr::DAMAGED]), swr::DAMAGED);
        assert_eq!(fold::<Swr>(&[swr::DAMAGED, swr::STILL_DAMAGED]), swr::STILL_DAMAGED);
        assert_eq!(fold::<Swr>(&[swr::STILL_DAMAGED, swr::NOT_REPAIRABLE]), swr::NOT_REPAIRABLE);
        assert_eq!(fold::<Swr>(&[swr::NOT_REPAIRABLE, swr::MANIFEST]), swr::MANIFEST);
    }

    #[test]
    fn a_code_outside_the_family_is_never_hidden() {
        assert_eq!(Guard::worse(guard::BINARY, IO), IO);
        assert_eq!(Swr::worse(IO, swr::MANIFEST), IO);
    }

    #[test]
    fn guard_names_the_kind_only_for_damage() {
        assert_eq!(Guard::code(State::Bad, Kind::Model), guard::MODEL);
        assert_eq!(Guard::code(State::Missing, Kind::Binary), guard::BINARY);
        assert_eq!(Guard::code(State::Failed, Kind::Run), guard::INFERENCE);
        assert_eq!(Guard::code(State::Corrupt, Kind::Cache), guard::DEGRADED);
        assert_eq!(Guard::code(State::Would, Kind::Model), guard::DEGRADED);
        assert_eq!(Guard::code(State::Unknown, Kind::Binary), guard::DEGRADED);
    }
}
