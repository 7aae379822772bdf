//! The counters that a store maintains equal a recount, after any sequence of edits.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::{SectionId, TaskId};
use tenure_core::section::SectionMode;
use tenure_core::store::{TaskEdit, TaskFilter, Viewer};
use tenure_core::task::TaskStatus;

use super::readiness::ready_for;
use crate::cli::Dice;
use crate::fixture::{Fixture, TESTER, new_task};

const SECTIONS: [&str; 3] = ["S", "T", "U"];

#[derive(Default)]
struct Expected {
    tasks: BTreeMap<String, (Option<usize>, TaskStatus)>,
    deps: BTreeSet<(String, String)>,
    section_deps: BTreeSet<(usize, usize)>,
}

impl Expected {
    fn open_tasks(&self, section: usize) -> usize {
        let open =
            |(at, status): &&(Option<usize>, TaskStatus)| *at == Some(section) && !status.is_finished();
        self.tasks.values().filter(open).count()
    }

    fn blocked_by(&self, key: &str) -> Vec<String> {
        let mut found: Vec<_> = self
            .deps
            .iter()
            .filter(|(task, on)| task == key && !self.tasks[on].1.is_finished())
            .map(|(_, on)| on.clone())
            .collect();
        let section = self.tasks[key].0;
        let before =
            self.section_deps.iter().filter(|(of, on)| Some(*of) == section && self.open_tasks(*on) > 0);
        let mut names: Vec<_> = before.map(|(_, on)| format!("section:{}", SECTIONS[*on])).collect();
        names.sort();
        found.append(&mut names);
        found
    }
}

pub(super) fn open_dependencies_and_open_tasks_survive_random_edits(fresh: &dyn Fn() -> Fixture) {
    for seed in 0..6 {
        random_edits(&fresh(), seed);
    }
}

fn random_edits(f: &Fixture, seed: u64) {
    let mut dice = Dice::new(seed);
    let mut expected = Expected::default();
    let sections: Vec<SectionId> =
        SECTIONS.iter().map(|name| f.add_section(name, SectionMode::Parallel)).collect();
    for step in 0..80 {
        let keys: Vec<String> = expected.tasks.keys().cloned().collect();
        let pick = |dice: &mut Dice| keys[dice.index(keys.len())].clone();
        match dice.index(8) {
            0 | 1 => add(f, &mut expected, &sections, &mut dice, step),
            _ if keys.len() < 2 => {}
            2 => {
                let (task, on) = (pick(&mut dice), pick(&mut dice));
                // Only later tasks depend on earlier ones, so that there is no cycle.
                if f.id(&task) > f.id(&on) {
                    f.depend(&task, &on);
                    expected.deps.insert((task, on));
                }
            }
            3 => {
                let (task, on) = (pick(&mut dice), pick(&mut dice));
                let (a, b) = (f.id(&task), f.id(&on));
                let removed = f.write(|tx| tx.remove_dependency(&a, &b)).unwrap();
                assert_eq!(removed, expected.deps.remove(&(task, on)));
            }
            4 => {
                let (key, at) = (pick(&mut dice), dice.index(4));
                let section = (at < 3).then_some(at);
                let id = section.map(|at| sections[at].clone());
                f.edit(&key, &TaskEdit { section: Some(id), ..TaskEdit::default() });
                expected.tasks.get_mut(&key).unwrap().0 = section;
            }
            5 if dice.index(3) == 0 => {
                let key = pick(&mut dice);
                let id = f.id(&key);
                f.write(|tx| tx.delete_task(&id, NewEvent::new(EventKind::TaskDeleted, TESTER).task(&id)))
                    .unwrap();
                expected.tasks.remove(&key);
                expected.deps.retain(|(task, on)| *task != key && *on != key);
            }
            6 => {
                let (a, b) = (dice.index(3), dice.index(3));
                if a > b && expected.section_deps.insert((a, b)) {
                    f.write(|tx| tx.add_section_dependency(&sections[a], &sections[b])).unwrap();
                } else if expected.section_deps.remove(&(a, b)) {
                    f.write(|tx| tx.remove_section_dependency(&sections[a], &sections[b])).unwrap();
                }
            }
            _ => {
                let (key, to) = (pick(&mut dice), TaskStatus::ALL[dice.index(6)]);
                if to != TaskStatus::InProgress {
                    f.override_status(&f.bare("ann"), &key, to, false).unwrap();
                    expected.tasks.get_mut(&key).unwrap().1 = to;
                }
            }
        }
        compare(f, &expected, seed);
    }
    compare_counts(f, &expected, seed);
}

/// The number of tasks of each status, in each section and outside of all.
fn compare_counts(f: &Fixture, expected: &Expected, seed: u64) {
    for at in [None, Some(0), Some(1), Some(2)] {
        let section = at.map_or_else(|| SectionId::new(""), |at: usize| f.section(SECTIONS[at]).id);
        for status in TaskStatus::ALL {
            let filter = TaskFilter {
                statuses: Some(vec![status]),
                section: Some(section.clone()),
                ..TaskFilter::default()
            };
            let found = f.read(|view| view.count_matches(&filter, &Viewer::default()));
            let wanted = expected.tasks.values().filter(|task| **task == (at, status)).count();
            assert_eq!(found, wanted as u64, "seed {seed}, section {at:?}, {status}");
        }
    }
}

/// A store may combine the writes of a transaction, but two writes to the row of a section must both count.
pub(super) fn every_change_of_a_transaction_is_counted(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Parallel);
    let (moved, done, new) =
        (f.add_task_in("A", Some(&section)), f.add_task_in("B", Some(&section)), TaskId::new("new"));
    f.write(|tx| {
        let created = NewEvent::new(EventKind::TaskCreated, TESTER).task(&new);
        tx.insert_task(&new_task(&new, "C", Some(&section), 7), created)?;
        tx.edit_task(&moved, &TaskEdit { section: Some(None), ..TaskEdit::default() }, None)?;
        let (from, to) = (TaskStatus::Pending, TaskStatus::Completed);
        tx.set_status(&done, to, NewEvent::new(EventKind::TaskStatus, TESTER).task(&done).status(from, to))
    })
    .unwrap();
    let found = f.section("S");
    assert_eq!((found.tasks, found.open_tasks), (2, 1));
}

fn add(f: &Fixture, expected: &mut Expected, sections: &[SectionId], dice: &mut Dice, step: usize) {
    let at = dice.index(4);
    let section = (at < 3).then_some(at);
    let key = format!("T{step}");
    f.add_task_in(&key, section.map(|at| &sections[at]));
    expected.tasks.insert(key, (section, TaskStatus::Pending));
}

fn compare(f: &Fixture, expected: &Expected, seed: u64) {
    for (at, name) in SECTIONS.iter().enumerate() {
        let section = f.section(name);
        assert_eq!(section.open_tasks, expected.open_tasks(at) as u64, "seed {seed}, section {name}");
    }
    let ready = ready_for(f, None);
    for (key, (_, status)) in &expected.tasks {
        let blocked_by = expected.blocked_by(key);
        let is_ready = blocked_by.is_empty() && *status == TaskStatus::Pending;
        assert_eq!(f.task(key).blocked_by, blocked_by, "seed {seed}, task {key}");
        assert_eq!(ready.contains(key), is_ready, "seed {seed}, task {key}");
    }
}
