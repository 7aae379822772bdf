//! Judges a history: what the feed tells, what the processes said of themselves, and who was seen standing in line.
//!
//! It knows nothing of the kernel. It says what a user would call broken: two holders, a fence that does not rise, a word
//! under a lost lease that counted, a task finished twice, a waiter overtaken, two workers on one task, an answer that
//! the feed does not bear out.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Deed, Event, History, Look, Place};

/// Everything that is wrong with a history. Nothing, if all is well.
pub(crate) fn faults(history: &History) -> Vec<String> {
    let mut faults = Vec::new();
    statuses(history, &mut faults);
    leases(history, &mut faults);
    attempts(history, &mut faults);
    words(history, &mut faults);
    line(history, &mut faults);
    faults
}

/// Each status follows from the one before, each task is completed once and for all, and the feed ends where the tasks are.
fn statuses(history: &History, faults: &mut Vec<String>) {
    let mut told: BTreeMap<&str, &str> = BTreeMap::new();
    let mut completed: BTreeSet<&str> = BTreeSet::new();
    let mut last = 0;
    for event in &history.feed {
        if event.seq <= last {
            faults.push(format!("the feed does not rise: {event:?}"));
        }
        last = event.seq;
        let (Some(task), Some(to)) = (event.task.as_deref(), event.to.as_deref()) else { continue };
        let before = told.insert(task, to);
        if event.kind == "task.status" && before != event.from.as_deref() {
            faults.push(format!("the task was {before:?} before: {event:?}"));
        }
        if event.from.as_deref() == Some("completed") {
            faults.push(format!("a completed task was moved: {event:?}"));
        }
        if to == "completed" && !completed.insert(task) {
            faults.push(format!("completed twice: {event:?}"));
        }
    }
    for (task, status) in &history.statuses {
        if status != "completed" {
            faults.push(format!("task {task} ended up {status}"));
        }
        if told.get(task.as_str()) != Some(&status.as_str()) {
            faults.push(format!("task {task} is {status}, which the feed does not tell"));
        }
    }
}

/// One holder at a time, fences that rise, and only the latest grant speaks.
fn leases(history: &History, faults: &mut Vec<String>) {
    let mut open: BTreeMap<&str, i64> = BTreeMap::new();
    let mut latest: BTreeMap<&str, i64> = BTreeMap::new();
    let mut given: BTreeSet<i64> = BTreeSet::new();
    for event in &history.feed {
        let (Some(fence), resource) = (event.fence, event.resource.as_deref()) else { continue };
        match (event.kind.as_str(), resource) {
            ("lease.acquired", Some(resource)) => {
                if let Some(other) = open.insert(resource, fence) {
                    faults.push(format!("fence {other} holds it already: {event:?}"));
                }
                if latest.insert(resource, fence).is_some_and(|before| before >= fence) {
                    faults.push(format!("the fence does not rise: {event:?}"));
                }
                if !given.insert(fence) {
                    faults.push(format!("the fence was given before: {event:?}"));
                }
            }
            ("lease.revived", Some(resource)) => {
                if latest.get(resource) != Some(&fence) {
                    faults.push(format!("revived after another grant: {event:?}"));
                }
                open.insert(resource, fence);
            }
            ("lease.ended", Some(resource)) => {
                // Ended twice is right once: time closed it, and then its holder finished after all.
                let other = open.remove(resource).is_some_and(|held| held != fence);
                if other || latest.get(resource) != Some(&fence) {
                    faults.push(format!("it was not held under this fence: {event:?}"));
                }
            }
            ("task.status", _) => {
                let resource = format!("task:{}", event.task.as_deref().unwrap_or_default());
                if latest.get(resource.as_str()) != Some(&fence) {
                    faults.push(format!("a word under a lost lease counted: {event:?}"));
                }
            }
            _ => {}
        }
    }
    for (resource, fence) in open {
        faults.push(format!("{resource} is still held under fence {fence}"));
    }
}

/// No attempt of a task begins before the one before it has ended.
fn attempts(history: &History, faults: &mut Vec<String>) {
    let mut running: BTreeMap<&str, i64> = BTreeMap::new();
    for event in &history.feed {
        let (Some(task), Some(fence)) = (event.task.as_deref(), event.fence) else { continue };
        match event.kind.as_str() {
            "attempt.started" => {
                if let Some(other) = running.insert(task, fence) {
                    faults.push(format!("the attempt under fence {other} has not ended: {event:?}"));
                }
            }
            "attempt.ended" if running.get(task) == Some(&fence) => {
                running.remove(task);
            }
            _ => {}
        }
    }
    for (task, fence) in running {
        faults.push(format!("the attempt of {task} under fence {fence} has never ended"));
    }
}

/// What the processes said, and what the feed tells, are the same.
fn words(history: &History, faults: &mut Vec<String>) {
    let mut by_worker: BTreeMap<&str, Vec<&Deed>> = BTreeMap::new();
    for deed in &history.deeds {
        by_worker.entry(&deed.worker).or_default().push(deed);
    }
    let none = Vec::new();
    let of = |worker: &str| by_worker.get(worker).unwrap_or(&none);
    let mut grants: BTreeMap<i64, &Event> = BTreeMap::new();
    let mut finishes: BTreeMap<i64, &Event> = BTreeMap::new();
    for event in &history.feed {
        let Some(fence) = event.fence else { continue };
        let silent = || of(&event.actor).iter().any(|deed| deed.is_silent() && deed.covers(event.at));
        if event.kind == "lease.acquired" && event.task.is_some() {
            grants.insert(fence, event);
            if !of(&event.actor).iter().any(|deed| deed.granted == Some(fence)) && !silent() {
                faults.push(format!("nobody says that it was given this: {event:?}"));
            }
        }
        if event.to.as_deref() == Some("completed") {
            finishes.insert(fence, event);
            if !of(&event.actor).iter().any(|deed| deed.finished == Some(fence)) && !silent() {
                faults.push(format!("nobody says that it finished this: {event:?}"));
            }
        }
    }
    for deed in &history.deeds {
        for (said, told, what) in [(deed.granted, &grants, "given"), (deed.finished, &finishes, "finished")] {
            let Some(fence) = said else { continue };
            match told.get(&fence) {
                Some(event) if event.actor == deed.worker && event.task == deed.task => {}
                other => faults.push(format!("said to be {what}, but the feed has {other:?}: {deed:?}")),
            }
        }
    }
}

/// Nobody is given what an older, live place in line was waiting for. Only who works in a serial section may go on in it
/// past those who want anything: nobody else could have had that.
fn line(history: &History, faults: &mut Vec<String>) {
    let killed: BTreeMap<u32, i64> =
        history.deeds.iter().filter_map(|deed| deed.killed.map(|at| (deed.pid, at))).collect();
    // Who works in which section, now and before the transaction that the event is part of.
    let mut at_work: BTreeMap<&str, &str> = BTreeMap::new();
    let mut before_it = at_work.clone();
    let mut transaction = (0, "");
    for event in &history.feed {
        if transaction != (event.at, event.actor.as_str()) {
            transaction = (event.at, &event.actor);
            before_it.clone_from(&at_work);
        }
        if event.task.is_none()
            && let Some(section) = event.resource.as_deref()
        {
            match event.kind.as_str() {
                "lease.acquired" => drop(at_work.insert(section, &event.actor)),
                "lease.ended" => drop(at_work.remove(section)),
                _ => {}
            }
        }
        if event.kind != "lease.acquired" {
            continue;
        }
        let section = event.task.as_ref().and_then(|task| history.sections.get(task));
        let goes_on = section.is_some_and(|s| before_it.get(s.as_str()) == Some(&event.actor.as_str()));
        let after = history.looks.partition_point(|look| look.seq < event.seq);
        let (Some(before), Some(after)) =
            (after.checked_sub(1).map(|n| &history.looks[n]), history.looks.get(after))
        else {
            continue;
        };
        // A worker has one process at a time.
        let takers: Vec<&Deed> =
            history.deeds.iter().filter(|deed| deed.worker == event.actor && deed.covers(event.at)).collect();
        let mut lines: Vec<&str> = event.resource.as_deref().into_iter().collect();
        if event.task.is_some() && !goes_on && takers.iter().all(|deed| deed.verb == "next") {
            lines.push("ready:");
        }
        for resource in lines {
            // In line both before and after the grant, and so at the moment of it.
            let stood = before.places.iter().filter(|place| {
                place.resource == resource && after.places.iter().any(|still| still.number == place.number)
            });
            let own = before
                .places
                .iter()
                .filter(|place| place.resource == resource && takers.iter().any(|deed| deed.pid == place.pid))
                .map(|place| place.number)
                .min()
                .unwrap_or(i64::MAX);
            for place in stood {
                let lived = killed.get(&place.pid).is_none_or(|at| *at > after.at);
                let fresh = place.refreshed > event.at - history.ticket_life;
                if place.number < own && lived && fresh {
                    faults.push(format!("{place:?} was overtaken: {event:?}"));
                }
            }
        }
    }
}

mod tests {
    use super::*;

    /// A short and blameless life: `a` works on a task and lets go, `b` has waited for it and finishes it under two
    /// attempts, and `c` was killed while it claimed another task, which `a` then took over and finished.
    fn blameless() -> History {
        let event = |seq: i64, kind: &str, actor: &str, task: &str, fence: i64| Event {
            seq,
            at: seq * 100,
            kind: kind.to_owned(),
            actor: actor.to_owned(),
            task: Some(task.to_owned()),
            fence: (fence > 0).then_some(fence),
            resource: (fence > 0).then(|| format!("task:{task}")),
            ..Event::default()
        };
        let moved = |seq, actor, task, fence, from: &str, to: &str| Event {
            from: (!from.is_empty()).then(|| from.to_owned()),
            to: Some(to.to_owned()),
            ..event(seq, if from.is_empty() { "task.created" } else { "task.status" }, actor, task, fence)
        };
        let feed = vec![
            moved(1, "x", "T", 0, "", "pending"),
            moved(2, "x", "U", 0, "", "pending"),
            event(3, "lease.acquired", "a", "T", 1),
            moved(4, "a", "T", 1, "pending", "in_progress"),
            event(5, "lease.ended", "a", "T", 1),
            moved(6, "a", "T", 1, "in_progress", "pending"),
            event(7, "lease.acquired", "b", "T", 2),
            moved(8, "b", "T", 2, "pending", "in_progress"),
            event(9, "attempt.started", "b", "T", 2),
            event(10, "attempt.ended", "b", "T", 2),
            event(11, "lease.ended", "b", "T", 2),
            moved(12, "b", "T", 2, "in_progress", "completed"),
            event(13, "lease.acquired", "c", "U", 3),
            moved(14, "c", "U", 3, "pending", "in_progress"),
            event(15, "lease.ended", "a", "U", 3),
            moved(16, "a", "U", 3, "in_progress", "pending"),
            event(17, "lease.acquired", "a", "U", 4),
            moved(18, "a", "U", 4, "pending", "in_progress"),
            event(19, "attempt.started", "a", "U", 4),
            event(20, "attempt.ended", "a", "U", 4),
            event(21, "lease.ended", "a", "U", 4),
            moved(22, "a", "U", 4, "in_progress", "completed"),
        ];
        let deed = |worker: &str, pid, verb, task: &str, begun: i64, ended: i64| Deed {
            worker: worker.to_owned(),
            pid,
            verb,
            task: Some(task.to_owned()),
            begun: begun * 100,
            ended: ended * 100,
            code: Some(0),
            ..Deed::default()
        };
        let deeds = vec![
            Deed { granted: Some(1), ..deed("a", 10, "claim", "T", 3, 4) },
            Deed { granted: Some(2), ..deed("b", 11, "claim", "T", 4, 8) },
            deed("a", 12, "release", "T", 5, 6),
            Deed { finished: Some(2), ..deed("b", 13, "done", "T", 11, 12) },
            Deed { killed: Some(1450), code: None, ..deed("c", 14, "claim", "U", 13, 15) },
            Deed { granted: Some(4), ..deed("a", 15, "claim", "U", 15, 18) },
            Deed { finished: Some(4), ..deed("a", 16, "done", "U", 21, 22) },
        ];
        let place = |number, holder: &str, pid, refreshed| Place {
            number,
            resource: "task:T".to_owned(),
            holder: holder.to_owned(),
            pid,
            refreshed,
        };
        let looks = vec![
            Look { at: 450, seq: 4, places: vec![place(1, "b", 11, 440), place(2, "d", 17, 445)] },
            Look { at: 650, seq: 6, places: vec![place(1, "b", 11, 440), place(2, "d", 17, 445)] },
            Look { at: 850, seq: 8, places: vec![place(2, "d", 17, 445)] },
        ];
        let statuses = [("T", "completed"), ("U", "completed")]
            .map(|(task, status)| (task.to_owned(), status.to_owned()))
            .into();
        History { feed, deeds, looks, ticket_life: 3000, sections: BTreeMap::new(), statuses }
    }

    fn event(history: &mut History, seq: i64) -> &mut Event {
        history.feed.iter_mut().find(|event| event.seq == seq).unwrap()
    }

    #[test]
    fn a_blameless_history_has_no_faults() {
        assert_eq!(faults(&blameless()), Vec::<String>::new());
    }

    #[test]
    fn every_doctored_history_is_found_out() {
        type Doctor = fn(&mut History);
        let doctors: [(&str, Doctor); 15] = [
            ("completed twice", |h| {
                let mut again = event(h, 12).clone();
                again.seq = 23;
                again.from = Some("completed".into());
                h.feed.push(again);
            }),
            ("the fence does not rise", |h| event(h, 17).fence = Some(2)),
            ("the fence was given before", |h| event(h, 13).fence = Some(2)),
            ("holds it already", |h| h.feed.retain(|e| e.seq != 5)),
            ("was not held under this fence", |h| event(h, 11).fence = Some(1)),
            ("a word under a lost lease", |h| event(h, 12).fence = Some(1)),
            ("the task was", |h| h.feed.retain(|e| e.seq != 6)),
            ("the feed does not tell", |h| h.feed.retain(|e| e.seq != 22)),
            ("ended up in_progress", |h| {
                h.feed.retain(|e| e.seq != 22);
                h.statuses.insert("U".into(), "in_progress".into());
            }),
            ("still held", |h| h.feed.retain(|e| e.seq != 21)),
            ("has not ended", |h| {
                h.feed.retain(|e| e.seq != 10);
                event(h, 19).task = Some("T".into());
            }),
            ("nobody says that it was given", |h| h.deeds[4].killed = None),
            ("nobody says that it finished", |h| h.deeds[3].finished = None),
            ("but the feed has", |h| h.deeds[2].granted = Some(9)),
            ("was overtaken", |h| h.looks[0].places[1].number = 0),
        ];
        for (expected, doctor) in doctors {
            let mut history = blameless();
            doctor(&mut history);
            // The places keep the order that the doctor gave them in every look.
            let number = history.looks[0].places[1].number;
            for look in &mut history.looks {
                for place in look.places.iter_mut().filter(|place| place.pid == 17) {
                    place.number = number;
                }
            }
            let found = faults(&history);
            assert!(found.iter().any(|fault| fault.contains(expected)), "{expected:?} not in {found:#?}");
        }
    }

    #[test]
    fn whoever_was_dead_or_silent_for_too_long_is_not_overtaken() {
        let overtaken = |change: fn(&mut History)| {
            let mut history = blameless();
            for look in &mut history.looks {
                for place in look.places.iter_mut().filter(|place| place.pid == 17) {
                    place.number = 0;
                }
            }
            change(&mut history);
            faults(&history).iter().any(|fault| fault.contains("overtaken"))
        };
        assert!(overtaken(|_| {}));
        assert!(!overtaken(|h| h.deeds.push(Deed {
            worker: "d".into(),
            pid: 17,
            verb: "claim",
            begun: 400,
            ended: 700,
            killed: Some(600),
            ..Deed::default()
        })));
        assert!(!overtaken(|h| h.ticket_life = 100));
    }
}
