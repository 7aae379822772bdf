//! Checks a history: the feed, the processes' own reports, and the queues as they were observed.
//!
//! It uses no code of the kernel. It reports violations that a user can observe: two holders, a fence that does not rise, a
//! change under a lost lease, a task finished twice, a waiter overtaken, two workers on one task, an answer that
//! contradicts the feed.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Call, Event, History, Snapshot, Ticket};

/// Everything that is wrong with a history; empty if it is correct.
pub(crate) fn faults(history: &History) -> Vec<String> {
    let mut faults = Vec::new();
    statuses(history, &mut faults);
    leases(history, &mut faults);
    attempts(history, &mut faults);
    reports(history, &mut faults);
    queue_order(history, &mut faults);
    faults
}

/// Each status follows from the previous one, each task is completed once, and the feed ends with the tasks' statuses.
fn statuses(history: &History, faults: &mut Vec<String>) {
    let mut recorded: BTreeMap<&str, &str> = BTreeMap::new();
    let mut completed: BTreeSet<&str> = BTreeSet::new();
    let mut last = 0;
    for event in &history.feed {
        if event.seq <= last {
            faults.push(format!("the feed does not rise: {event:?}"));
        }
        last = event.seq;
        let (Some(task), Some(to)) = (event.task.as_deref(), event.to.as_deref()) else { continue };
        let before = recorded.insert(task, to);
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
        if recorded.get(task.as_str()) != Some(&status.as_str()) {
            faults.push(format!("task {task} is {status}, which is not in the feed"));
        }
    }
}

/// A resource has one holder at a time, its fences rise, and only its latest grant can change anything.
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
                    faults.push(format!("the fence was granted before: {event:?}"));
                }
            }
            ("lease.revived", Some(resource)) => {
                if latest.get(resource) != Some(&fence) {
                    faults.push(format!("revived after another grant: {event:?}"));
                }
                open.insert(resource, fence);
            }
            ("lease.ended", Some(resource)) => {
                // A lease may end twice in one case: it expired and was closed, and its holder finished afterwards.
                let other = open.remove(resource).is_some_and(|held| held != fence);
                if other || latest.get(resource) != Some(&fence) {
                    faults.push(format!("it was not held under this fence: {event:?}"));
                }
            }
            ("task.status", _) => {
                let resource = format!("task:{}", event.task.as_deref().unwrap_or_default());
                if latest.get(resource.as_str()) != Some(&fence) {
                    faults.push(format!("a change under a lost lease: {event:?}"));
                }
            }
            _ => {}
        }
    }
    for (resource, fence) in open {
        faults.push(format!("{resource} is still held under fence {fence}"));
    }
}

/// No attempt at a task begins before the previous one has ended.
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

/// The reports of the processes agree with the feed.
fn reports(history: &History, faults: &mut Vec<String>) {
    let mut by_worker: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    for call in &history.calls {
        by_worker.entry(&call.worker).or_default().push(call);
    }
    let none = Vec::new();
    let of = |worker: &str| by_worker.get(worker).unwrap_or(&none);
    let mut grants: BTreeMap<i64, &Event> = BTreeMap::new();
    let mut finishes: BTreeMap<i64, &Event> = BTreeMap::new();
    for event in &history.feed {
        let Some(fence) = event.fence else { continue };
        let unreported =
            || of(&event.actor).iter().any(|call| call.may_be_incomplete() && call.covers(event.at));
        if event.kind == "lease.acquired" && event.task.is_some() {
            grants.insert(fence, event);
            if !of(&event.actor).iter().any(|call| call.granted == Some(fence)) && !unreported() {
                faults.push(format!("no process reports this grant: {event:?}"));
            }
        }
        if event.to.as_deref() == Some("completed") {
            finishes.insert(fence, event);
            if !of(&event.actor).iter().any(|call| call.finished == Some(fence)) && !unreported() {
                faults.push(format!("no process reports this finish: {event:?}"));
            }
        }
    }
    for call in &history.calls {
        for (said, recorded, what) in
            [(call.granted, &grants, "granted"), (call.finished, &finishes, "finished")]
        {
            let Some(fence) = said else { continue };
            match recorded.get(&fence) {
                Some(event) if event.actor == call.worker && event.task == call.task => {}
                other => faults.push(format!("reported as {what}, but the feed has {other:?}: {call:?}")),
            }
        }
    }
}

/// A grant never overtakes an older, live ticket for the same task (Q1). Waiters for any ready task are different: each of
/// them reserves one task, and a later caller may take what is left. So a grant overtakes them only if fewer tasks are left
/// than there are earlier waiters. The holder of a serial section may always continue in it, because no
/// other process could have taken its tasks.
fn queue_order(history: &History, faults: &mut Vec<String>) {
    let killed: BTreeMap<u32, i64> =
        history.calls.iter().filter_map(|call| call.killed.map(|at| (call.pid, at))).collect();
    // The holder of each section, now and before the transaction that the event belongs to.
    let mut at_work: BTreeMap<&str, &str> = BTreeMap::new();
    let mut before_it = at_work.clone();
    let mut transaction = (0, "");
    let mut statuses: BTreeMap<&str, &str> = BTreeMap::new();
    for event in &history.feed {
        if let (Some(task), Some(status)) = (&event.task, &event.to) {
            statuses.insert(task, status);
        }
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
        let after = history.snapshots.partition_point(|snapshot| snapshot.seq < event.seq);
        let (Some(before), Some(after)) =
            (after.checked_sub(1).map(|n| &history.snapshots[n]), history.snapshots.get(after))
        else {
            continue;
        };
        // A worker has one process at a time.
        let takers: Vec<&Call> =
            history.calls.iter().filter(|call| call.worker == event.actor && call.covers(event.at)).collect();
        if event.task.is_none() || goes_on {
            continue;
        }
        let queues = event.resource.as_deref().into_iter().chain(["ready:"]);
        for resource in queues {
            // Queued both before and after the grant, and so at the moment of it.
            let queued = before.tickets.iter().filter(|ticket| {
                ticket.resource == resource && after.tickets.iter().any(|still| still.number == ticket.number)
            });
            let own = before
                .tickets
                .iter()
                .filter(|ticket| takers.iter().any(|call| call.pid == ticket.pid))
                .map(|ticket| ticket.number)
                .min()
                .unwrap_or(i64::MAX);
            let overtaken: Vec<&Ticket> = queued
                .filter(|ticket| {
                    let lived = killed.get(&ticket.pid).is_none_or(|at| *at > after.at);
                    let fresh = ticket.refreshed > event.at - history.ticket_life;
                    ticket.number < own && lived && fresh
                })
                .collect();
            if resource == "ready:" && overtaken.len() <= left_over(history, event, &statuses, &before_it) {
                continue;
            }
            faults.extend(overtaken.iter().map(|ticket| format!("{ticket:?} was overtaken: {event:?}")));
        }
    }
}

/// At most how many tasks were ready besides the one that `grant` took. A serial section offers one at a time. A task in
/// progress counts too if its lease was closed by another worker later, because it may have lapsed already.
fn left_over(
    history: &History,
    grant: &Event,
    statuses: &BTreeMap<&str, &str>,
    holders: &BTreeMap<&str, &str>,
) -> usize {
    let may_have_lapsed = |task: &str| {
        let mut of_task = history.feed.iter().filter(|event| event.task.as_deref() == Some(task));
        let held = of_task.clone().rfind(|event| event.kind == "lease.acquired" && event.seq < grant.seq);
        held.is_some_and(|held| {
            of_task.any(|event| {
                event.kind == "lease.ended" && event.fence == held.fence && event.actor != held.actor
            })
        })
    };
    let ready = statuses.iter().filter(|(task, status)| {
        let open = **status == "pending" || **status == "in_progress" && may_have_lapsed(task);
        Some(**task) != grant.task.as_deref() && open
    });
    let places: BTreeSet<&str> = ready
        .map(|(task, _)| history.sections.get(*task).map_or(*task, String::as_str))
        .filter(|place| !holders.contains_key(place))
        .collect();
    places.len()
}

mod tests {
    use super::*;

    /// A short and correct history: `a` works on a task and releases it, `b` has waited for it and finishes it under two
    /// attempts, and `c` is killed while it claims another task, which `a` then takes over and finishes.
    fn correct_history() -> History {
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
        let call = |worker: &str, pid, verb, task: &str, begun: i64, ended: i64| Call {
            worker: worker.to_owned(),
            pid,
            verb,
            task: Some(task.to_owned()),
            begun: begun * 100,
            ended: ended * 100,
            code: Some(0),
            ..Call::default()
        };
        let calls = vec![
            Call { granted: Some(1), ..call("a", 10, "claim", "T", 3, 4) },
            Call { granted: Some(2), ..call("b", 11, "claim", "T", 4, 8) },
            call("a", 12, "release", "T", 5, 6),
            Call { finished: Some(2), ..call("b", 13, "done", "T", 11, 12) },
            Call { killed: Some(1450), code: None, ..call("c", 14, "claim", "U", 13, 15) },
            Call { granted: Some(4), ..call("a", 15, "claim", "U", 15, 18) },
            Call { finished: Some(4), ..call("a", 16, "done", "U", 21, 22) },
        ];
        let ticket = |number, holder: &str, pid, refreshed| Ticket {
            number,
            resource: "task:T".to_owned(),
            holder: holder.to_owned(),
            pid,
            refreshed,
        };
        let snapshots = vec![
            Snapshot { at: 450, seq: 4, tickets: vec![ticket(1, "b", 11, 440), ticket(2, "d", 17, 445)] },
            Snapshot { at: 650, seq: 6, tickets: vec![ticket(1, "b", 11, 440), ticket(2, "d", 17, 445)] },
            Snapshot { at: 850, seq: 8, tickets: vec![ticket(2, "d", 17, 445)] },
        ];
        let statuses = [("T", "completed"), ("U", "completed")]
            .map(|(task, status)| (task.to_owned(), status.to_owned()))
            .into();
        History { feed, calls, snapshots, ticket_life: 3000, sections: BTreeMap::new(), statuses }
    }

    fn event(history: &mut History, seq: i64) -> &mut Event {
        history.feed.iter_mut().find(|event| event.seq == seq).unwrap()
    }

    #[test]
    fn a_correct_history_has_no_faults() {
        assert_eq!(faults(&correct_history()), Vec::<String>::new());
    }

    #[test]
    fn every_tampered_history_is_detected() {
        type Tamper = fn(&mut History);
        let cases: [(&str, Tamper); 15] = [
            ("completed twice", |h| {
                let mut again = event(h, 12).clone();
                again.seq = 23;
                again.from = Some("completed".into());
                h.feed.push(again);
            }),
            ("the fence does not rise", |h| event(h, 17).fence = Some(2)),
            ("the fence was granted before", |h| event(h, 13).fence = Some(2)),
            ("holds it already", |h| h.feed.retain(|e| e.seq != 5)),
            ("was not held under this fence", |h| event(h, 11).fence = Some(1)),
            ("a change under a lost lease", |h| event(h, 12).fence = Some(1)),
            ("the task was", |h| h.feed.retain(|e| e.seq != 6)),
            ("is not in the feed", |h| h.feed.retain(|e| e.seq != 22)),
            ("ended up in_progress", |h| {
                h.feed.retain(|e| e.seq != 22);
                h.statuses.insert("U".into(), "in_progress".into());
            }),
            ("still held", |h| h.feed.retain(|e| e.seq != 21)),
            ("has not ended", |h| {
                h.feed.retain(|e| e.seq != 10);
                event(h, 19).task = Some("T".into());
            }),
            ("no process reports this grant", |h| h.calls[4].killed = None),
            ("no process reports this finish", |h| h.calls[3].finished = None),
            ("but the feed has", |h| h.calls[2].granted = Some(9)),
            ("was overtaken", |h| h.snapshots[0].tickets[1].number = 0),
        ];
        for (expected, tamper) in cases {
            let mut history = correct_history();
            tamper(&mut history);
            // The tickets keep the same order in every snapshot.
            let number = history.snapshots[0].tickets[1].number;
            for snapshot in &mut history.snapshots {
                for ticket in snapshot.tickets.iter_mut().filter(|ticket| ticket.pid == 17) {
                    ticket.number = number;
                }
            }
            let found = faults(&history);
            assert!(found.iter().any(|fault| fault.contains(expected)), "{expected:?} not in {found:#?}");
        }
    }

    #[test]
    fn waiters_for_any_task_are_overtaken_only_if_too_few_tasks_are_left() {
        let overtaken = |waiters: &[u32]| {
            let mut history = correct_history();
            history.calls[1].verb = "next";
            for snapshot in &mut history.snapshots {
                let waiting = |pid: &u32| Ticket {
                    number: 0,
                    resource: "ready:".to_owned(),
                    holder: "d".to_owned(),
                    pid: *pid,
                    refreshed: 445,
                };
                snapshot.tickets = waiters.iter().map(waiting).collect();
            }
            faults(&history).iter().filter(|fault| fault.contains("overtaken")).count()
        };
        assert_eq!(overtaken(&[17]), 0, "U is left for it");
        assert_eq!(overtaken(&[17, 18]), 2, "only U is left");
    }

    #[test]
    fn a_dead_or_silent_waiter_does_not_count_as_overtaken() {
        let overtaken = |change: fn(&mut History)| {
            let mut history = correct_history();
            for snapshot in &mut history.snapshots {
                for ticket in snapshot.tickets.iter_mut().filter(|ticket| ticket.pid == 17) {
                    ticket.number = 0;
                }
            }
            change(&mut history);
            faults(&history).iter().any(|fault| fault.contains("overtaken"))
        };
        assert!(overtaken(|_| {}));
        assert!(!overtaken(|h| h.calls.push(Call {
            worker: "d".into(),
            pid: 17,
            verb: "claim",
            begun: 400,
            ended: 700,
            killed: Some(600),
            ..Call::default()
        })));
        assert!(!overtaken(|h| h.ticket_life = 100));
    }
}
