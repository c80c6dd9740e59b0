//! What became of each entry turn by turn, and how likely it is to survive the next one.

use std::io;
use std::path::Path;

use contract::{Fix, State};

use crate::entry::is_id;
use crate::fields::Object;
use crate::json::{self, Json};

/// A larger history is rotated once.
const LIMIT: u64 = 1 << 20;

/// One look at the workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Turn {
    /// Seconds since 1970 on the wall clock.
    pub wall: u64,
    /// Each entry and its worst state.
    pub states: Vec<(String, State)>,
}

/// How an entry fared.
#[derive(Clone, PartialEq, Debug)]
pub struct Survival {
    /// The entry.
    pub id: String,
    /// Turns that began healthy and were looked at again.
    pub observations: u64,
    /// Those of them that were still healthy.
    pub survived: u64,
    /// Turns it was looked at.
    pub looks: u64,
    /// The last state.
    pub last: State,
}

impl Survival {
    /// The probability to survive a turn by Laplace's rule of succession, (s + 1) / (n + 2): never 0 or 1 by luck.
    pub fn per_mille(&self) -> u64 {
        (self.survived + 1) * 1000 / (self.observations + 2)
    }
}

/// Appends one turn.
pub fn append(fix: &Fix, path: &Path, turn: &Turn) -> io::Result<()> {
    if path.metadata().is_ok_and(|m| m.len() >= LIMIT) {
        files::atomic::replace(fix, path, &path.with_extension("jsonl.1"))?;
    }
    let mut states = Object::new();
    for (id, state) in &turn.states {
        states.text(id, state.word());
    }
    let mut line = Object::new();
    line.raw("wall", &turn.wall.to_string());
    line.raw("states", &states.end());
    files::records::append(fix, path, line.end().as_bytes())
}

/// The turns of a history and its rotated part, oldest first; lines that are none are skipped.
pub fn read(path: &Path) -> io::Result<Vec<Turn>> {
    let mut turns = Vec::new();
    for part in [&path.with_extension("jsonl.1"), path] {
        turns.extend(files::records::read(part, LIMIT * 2)?.iter().filter_map(|l| parse(l)));
    }
    Ok(turns)
}

fn parse(line: &[u8]) -> Option<Turn> {
    let Json::Object(pairs) = json::parse_wide(line).ok()? else { return None };
    let get = |key: &str| pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v);
    let (Json::Number(wall), Json::Object(states)) = (get("wall")?, get("states")?) else { return None };
    let states = states.iter().filter_map(|(id, state)| match state {
        Json::Text(word) if is_id(id) => Some((id.clone().into_owned(), State::from_word(word.as_bytes())?)),
        _ => None,
    });
    Some(Turn { wall: *wall, states: states.collect() })
}

/// How each entry fared over the turns, in order of first appearance. What could not be checked counts as not looked at,
/// and what was healed begins its next turn healthy: without that, what is lost in every turn would never be seen to be.
pub fn survival(turns: &[Turn]) -> Vec<Survival> {
    let mut all: Vec<Survival> = Vec::new();
    let mut position = std::collections::HashMap::new();
    for (id, state) in turns.iter().flat_map(|t| &t.states) {
        // Failed and skipped repairs: the look before them has said it.
        if matches!(state, State::Unknown | State::Failed | State::Skipped | State::Would) {
            continue;
        }
        let look = *state != State::Healed;
        let healthy = |s: State| matches!(s, State::Ok | State::Healed);
        let Some(at) = position.get(id) else {
            position.insert(id.clone(), all.len());
            let looks = u64::from(look);
            all.push(Survival { id: id.clone(), observations: 0, survived: 0, looks, last: *state });
            continue;
        };
        let entry: &mut Survival = &mut all[*at];
        if healthy(entry.last) {
            entry.observations += 1;
            entry.survived += u64::from(*state == State::Ok);
        }
        entry.looks += u64::from(look);
        entry.last = *state;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_home::Home;

    #[test]
    fn only_a_healthy_turn_can_be_survived() {
        let turn =
            |n: u64, a: State, b: State| Turn { wall: n, states: vec![("a".into(), a), ("b".into(), b)] };
        let turns = [
            turn(1, State::Ok, State::Missing),
            turn(2, State::Ok, State::Missing),
            turn(3, State::Missing, State::Ok),
            turn(4, State::Ok, State::Unknown),
            turn(5, State::Ok, State::Ok),
        ];
        let found = survival(&turns);
        assert_eq!((found[0].observations, found[0].survived, found[0].looks), (3, 2, 5));
        assert_eq!((found[1].observations, found[1].survived, found[1].looks), (1, 1, 4));
        assert_eq!(found[0].per_mille(), 600);
        assert_eq!(survival(&[])[..], []);
    }

    #[test]
    fn what_is_lost_and_healed_every_turn_is_seen_to_be_lost() {
        let states =
            [State::Ok, State::Missing, State::Healed, State::Missing, State::Failed, State::Missing];
        let turns = states.map(|state| Turn { wall: 1, states: vec![("a".into(), state)] });
        let found = &survival(&turns)[0];
        // Of the looks after it was healthy; the last began damaged.
        assert_eq!((found.observations, found.survived, found.looks), (2, 0, 4));
        assert_eq!((found.per_mille(), found.last), (250, State::Missing));
    }

    #[test]
    fn a_turn_written_is_read_back_and_a_torn_one_is_skipped() {
        let home = Home::new();
        let path = home.path("history.jsonl");
        let fix = contract::mode::by_name();
        let turn = Turn { wall: 7, states: vec![("a.b".into(), State::Stripped)] };
        append(&fix, &path, &turn).unwrap();
        files::records::append(&fix, &path, b"{\"wall\":8,\"sta").unwrap();
        append(&fix, &path, &turn).unwrap();
        assert_eq!(read(&path).unwrap(), [turn.clone(), turn]);
    }
}
