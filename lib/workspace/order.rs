//! The order of repairs: needs first, then tier, then the manifest's own order (Kahn, 1962, with a heap).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fmt::Write as _;

use contract::{Kind, State, Verdict};

use crate::entry::Entry;

/// The order of a manifest's entries, by their positions in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Every entry that can be ordered, each behind all that it needs.
    pub sequence: Vec<usize>,
    /// Cycles of needs, each in the order `a needs b needs c needs a`.
    pub cycles: Vec<Vec<usize>>,
    /// Entries that are in no cycle and need, directly or not, one that is.
    pub behind_cycles: Vec<usize>,
    /// Needs on an id that no entry has; they bind nothing.
    pub unknown: Vec<(usize, String)>,
}

/// Orders entries. Ids are unique (the parser sees to it).
pub fn order(entries: &[&Entry]) -> Order {
    let position: HashMap<&str, usize> = entries.iter().enumerate().map(|(n, e)| (&*e.id, n)).collect();
    let mut result = Order::default();
    let mut needs: Vec<Vec<usize>> = vec![Vec::new(); entries.len()];
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); entries.len()];
    for (n, entry) in entries.iter().enumerate() {
        for id in &entry.needs {
            match position.get(&**id) {
                Some(needed) => {
                    needs[n].push(*needed);
                    dependents[*needed].push(n);
                }
                None => result.unknown.push((n, id.to_string())),
            }
        }
    }
    let mut open: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut ready: BinaryHeap<_> =
        (0..entries.len()).filter(|n| open[*n] == 0).map(|n| Reverse((entries[n].tier, n))).collect();
    while let Some(Reverse((_, n))) = ready.pop() {
        result.sequence.push(n);
        for dependent in &dependents[n] {
            open[*dependent] -= 1;
            if open[*dependent] == 0 {
                ready.push(Reverse((entries[*dependent].tier, *dependent)));
            }
        }
    }
    find_cycles(&needs, &open, &mut result);
    result
}

/// Every entry still open needs another open one: following such needs from any of them ends in a cycle.
fn find_cycles(needs: &[Vec<usize>], open: &[usize], result: &mut Order) {
    let mut seen = vec![0_usize; needs.len()];
    let mut in_cycle = vec![false; needs.len()];
    for start in (0..needs.len()).filter(|n| open[*n] > 0) {
        let (mut path, mut at) = (Vec::new(), start);
        while seen[at] == 0 {
            seen[at] = start + 1;
            path.push(at);
            let Some(next) = needs[at].iter().find(|n| open[**n] > 0) else { break };
            at = *next;
        }
        if let Some(from) = path.iter().position(|n| *n == at).filter(|_| seen[at] == start + 1) {
            let cycle = path.split_off(from);
            for n in &cycle {
                in_cycle[*n] = true;
            }
            result.cycles.push(cycle);
        }
    }
    result.behind_cycles = (0..needs.len()).filter(|n| open[*n] > 0 && !in_cycle[*n]).collect();
}

/// What is wrong with the needs of a manifest, whatever the disk is like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Each needs the next, and the last the first: none of them can come back.
    Cycle {
        /// Their ids.
        ids: Vec<String>,
        /// As [`cycle_words`] has it.
        words: String,
    },
    /// A need that no entry is: it binds nothing.
    Unknown {
        /// Who needs it.
        id: String,
        /// What is needed.
        need: String,
    },
}

impl Fault {
    /// In words.
    pub fn words(&self) -> String {
        match self {
            Self::Cycle { words, .. } => format!("cycle of needs: {words}"),
            Self::Unknown { id, need } => format!("{id} needs '{need}', which no entry is"),
        }
    }

    /// As a verdict on the manifest: it works, but not as it was meant.
    pub fn verdict(&self) -> Verdict {
        Verdict::new(State::Degraded, Kind::Manifest, "needs", self.words())
    }

    /// The next command.
    pub fn way_out(&self) -> String {
        const OTHER: &str = "other needs: swr add PATH --needs ID ('' for none), or its line in manifest.jsonl; then swr sign";
        match self {
            Self::Cycle { .. } => format!("give one of them {OTHER}"),
            Self::Unknown { id, need } => format!("add '{need}' first, or give {id} {OTHER}"),
        }
    }

    /// Whether it is about one of these ids, or none is given.
    pub fn concerns(&self, only: &[String]) -> bool {
        only.is_empty()
            || match self {
                Self::Cycle { ids, .. } => ids.iter().any(|id| only.contains(id)),
                Self::Unknown { id, .. } => only.contains(id),
            }
    }
}

impl Order {
    /// What is wrong with the needs of the entries that were ordered.
    pub fn faults(&self, entries: &[&Entry]) -> Vec<Fault> {
        let id = |n: usize| entries[n].id.to_string();
        let mut faults = Vec::new();
        for cycle in &self.cycles {
            let ids = cycle.iter().map(|n| id(*n)).collect();
            faults.push(Fault::Cycle { ids, words: cycle_words(entries, cycle) });
        }
        for (n, need) in &self.unknown {
            faults.push(Fault::Unknown { id: id(*n), need: need.clone() });
        }
        faults
    }
}

/// What is wrong with the needs of all entries of a manifest. Only entries that need or are needed are ordered, so that a
/// large manifest with few needs costs next to nothing.
pub fn faults<'a: 'b, 'b>(entries: impl Iterator<Item = &'b Entry<'a>> + Clone) -> Vec<Fault> {
    let mut needed: Vec<&str> = entries.clone().flat_map(|e| &e.needs).map(|n| &**n).collect();
    if needed.is_empty() {
        return Vec::new();
    }
    needed.sort_unstable();
    let bound = |e: &&Entry| !e.needs.is_empty() || needed.binary_search(&&*e.id).is_ok();
    let entries: Vec<&Entry> = entries.filter(bound).collect();
    order(&entries).faults(&entries)
}

/// The ids of a cycle as a person reads it: `a -> b -> a`. Of a long one the beginning: each of its members is said with
/// these words, and all in each would be the square of the manifest.
pub fn cycle_words(entries: &[&Entry], cycle: &[usize]) -> String {
    const SHOWN: usize = 8;
    let left = cycle.len().saturating_sub(SHOWN);
    let mut words = String::new();
    for n in cycle.iter().take(SHOWN) {
        words.push_str(&entries[*n].id);
        words.push_str(" -> ");
    }
    if left > 0 {
        let _ = write!(words, "{left} more -> ");
    }
    words.push_str(cycle.first().map_or("", |n| &*entries[*n].id));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Shape;

    fn ordered(list: &[(&str, u8, &[&str])]) -> (Vec<String>, Vec<String>, Vec<String>, usize) {
        let entries: Vec<Entry> = list
            .iter()
            .map(|(id, tier, needs)| Entry {
                id: (*id).into(),
                path: id.as_bytes().into(),
                tier: *tier,
                shape: Shape::Link { target: b"x".to_vec() },
                needs: needs.iter().map(|n| (*n).into()).collect(),
                restore: None,
                timeout_s: None,
                notes: None,
            })
            .collect();
        let entries: Vec<&Entry> = entries.iter().collect();
        let order = order(&entries);
        let ids = |list: &[usize]| list.iter().map(|n| entries[*n].id.to_string()).collect::<Vec<_>>();
        let cycles = order.cycles.iter().map(|c| cycle_words(&entries, c)).collect();
        (ids(&order.sequence), cycles, ids(&order.behind_cycles), order.unknown.len())
    }

    #[test]
    fn tiers_first_and_a_need_beats_a_tier() {
        let (sequence, cycles, behind, unknown) = ordered(&[
            ("build", 4, &["src"]),
            ("model", 3, &[]),
            ("src", 2, &["token"]),
            ("shim", 0, &["late", "nowhere"]),
            ("token", 0, &[]),
            ("late", 4, &[]),
        ]);
        assert_eq!(sequence, ["token", "src", "model", "build", "late", "shim"]);
        assert_eq!((cycles.len(), behind.len(), unknown), (0, 0, 1));
    }

    #[test]
    fn a_cycle_is_named_and_what_hangs_on_it_is_not_lost() {
        let (sequence, cycles, behind, _) = ordered(&[
            ("a", 0, &["b"]),
            ("b", 0, &["c"]),
            ("c", 0, &["a"]),
            ("behind", 0, &["a"]),
            ("self", 0, &["self"]),
            ("fine", 0, &[]),
        ]);
        assert_eq!(sequence, ["fine"]);
        assert_eq!(cycles, ["a -> b -> c -> a", "self -> self"]);
        assert_eq!(behind, ["behind"]);
    }

    #[test]
    fn a_long_cycle_is_named_in_few_words() {
        let ids: Vec<String> = (0..20_000).map(|n| format!("e{n}")).collect();
        let needs: Vec<[&str; 1]> = (0..ids.len()).map(|n| [ids[(n + 1) % ids.len()].as_str()]).collect();
        let list: Vec<_> = ids.iter().zip(&needs).map(|(id, n)| (id.as_str(), 0, &n[..])).collect();
        let (sequence, cycles, behind, _) = ordered(&list);
        assert_eq!((sequence.len(), cycles.len(), behind.len()), (0, 1, 0));
        assert!(cycles[0].starts_with("e0 -> e1 -> ") && cycles[0].ends_with("e7 -> 19992 more -> e0"));
    }
}
