//! The journal of many agents that work on one store, and its check: no task was granted twice at the same time, and no
//! acknowledged finish was lost.
//!
//! Each agent appends a line for each answer that it got. Times are of one clock for all agents.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// What an agent did with a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Claimed,
    Released,
    Finished,
    /// It tried to finish or release the task, and does not know whether that succeeded.
    Unsure,
}

const NAMES: [(Action, &str); 4] = [
    (Action::Claimed, "claimed"),
    (Action::Released, "released"),
    (Action::Finished, "finished"),
    (Action::Unsure, "unsure"),
];

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub action: Action,
    pub agent: u32,
    /// The key of the task.
    pub task: String,
    pub fence: i64,
    /// When the request was sent, and when its answer arrived, in nanoseconds.
    pub sent: u64,
    pub answered: u64,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(action, _)| *action == self.action).map_or("", |(_, name)| name);
        let Self { agent, task, fence, sent, answered, .. } = self;
        write!(f, "{name} {agent} {task} {fence} {sent} {answered}")
    }
}

impl FromStr for Entry {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let read = || {
            let mut words = line.split(' ');
            let name = words.next()?;
            let entry = Self {
                action: NAMES.iter().find(|(_, known)| *known == name)?.0,
                agent: words.next()?.parse().ok()?,
                task: words.next()?.to_owned(),
                fence: words.next()?.parse().ok()?,
                sent: words.next()?.parse().ok()?,
                answered: words.next()?.parse().ok()?,
            };
            words.next().is_none().then_some(entry)
        };
        read().ok_or_else(|| format!("not a line of the journal: {line}"))
    }
}

/// The entries of a journal that violate the rules. `completed` are the keys of the tasks that are completed in
/// the store.
pub fn violations(journal: &[Entry], completed: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    // For each task, its claims and their ends, by fence.
    let mut claims: BTreeMap<&str, BTreeMap<i64, Vec<&Entry>>> = BTreeMap::new();
    let mut ends: BTreeMap<i64, Vec<&Entry>> = BTreeMap::new();
    for entry in journal {
        match entry.action {
            Action::Claimed => {
                claims.entry(&entry.task).or_default().entry(entry.fence).or_default().push(entry);
            }
            _ => ends.entry(entry.fence).or_default().push(entry),
        }
    }
    for (task, by_fence) in &claims {
        for same in by_fence.values().filter(|same| same.len() > 1) {
            found.push(format!("{task} was granted to {} agents with fence {}", same.len(), same[0].fence));
        }
        for (fence, after) in by_fence.keys().zip(by_fence.values().skip(1)) {
            // The holder sent its finish or release before the next holder got its answer.
            let gave_up =
                ends.get(fence).is_some_and(|all| all.iter().any(|end| end.sent <= after[0].answered));
            if !gave_up {
                found.push(format!("{task} was granted as {} while {fence} held it", after[0].fence));
            }
        }
    }
    let mut perhaps_finished = BTreeSet::new();
    for end in ends.values().flatten() {
        match end.action {
            Action::Finished if !completed.contains(&end.task) => {
                found.push(format!("the finish of {} by agent {} was lost", end.task, end.agent));
            }
            Action::Finished | Action::Unsure => {
                perhaps_finished.insert(&end.task);
            }
            Action::Released | Action::Claimed => {}
        }
    }
    for task in completed.iter().filter(|task| !perhaps_finished.contains(task)) {
        found.push(format!("{task} is completed, and no agent finished it"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(action: Action, agent: u32, task: &str, fence: i64, sent: u64) -> Entry {
        Entry { action, agent, task: task.to_owned(), fence, sent, answered: sent + 10 }
    }

    fn check(journal: &[Entry], completed: &[&str]) -> Vec<String> {
        violations(journal, &completed.iter().map(|key| (*key).to_owned()).collect())
    }

    fn fair() -> Vec<Entry> {
        vec![
            entry(Action::Claimed, 1, "A", 1, 0),
            entry(Action::Released, 1, "A", 1, 20),
            entry(Action::Claimed, 2, "A", 2, 5),
            entry(Action::Finished, 2, "A", 2, 60),
            entry(Action::Claimed, 1, "B", 3, 40),
            entry(Action::Unsure, 1, "B", 3, 50),
        ]
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        for entry in fair() {
            assert_eq!(entry.to_string().parse(), Ok(entry));
        }
        for bad in ["", "claimed 1 A 1 0", "seized 1 A 1 0 1", "claimed 1 A 1 0 1 2"] {
            bad.parse::<Entry>().unwrap_err();
        }
    }

    #[test]
    fn a_fair_journal_has_no_violation() {
        let mut journal = fair();
        // The next holder has waited since before the release, and gets its answer after the release was
        // sent.
        journal[2].answered = 25;
        assert_eq!(check(&journal, &["A"]), Vec::<String>::new());
        assert_eq!(check(&journal, &["A", "B"]), Vec::<String>::new(), "B may have been finished");
    }

    #[test]
    fn double_grants_and_lost_finishes_are_found() {
        let mut journal = fair();
        journal[2].answered = 15;
        assert_eq!(check(&journal, &["A"]), ["A was granted as 2 while 1 held it"]);
        journal.remove(1);
        assert_eq!(check(&journal, &["A"]), ["A was granted as 2 while 1 held it"]);
        let twice = [entry(Action::Claimed, 1, "A", 1, 0), entry(Action::Claimed, 2, "A", 1, 0)];
        assert_eq!(check(&twice, &[]), ["A was granted to 2 agents with fence 1"]);
        let mut journal = fair();
        journal[2].answered = 25;
        assert_eq!(check(&journal, &[]), ["the finish of A by agent 2 was lost"]);
        assert_eq!(check(&journal, &["A", "C"]), ["C is completed, and no agent finished it"]);
    }
}
