//! Checks the history of a storm against the rules of `docs/guarantees.md`. It uses no code of the kernel.
//!
//! What cannot be known from outside counts in favour of the program: a fault is reported only if no order of the events
//! within the observed times explains it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::history::{Between, Call, Event, History, Kill, Line, Pause, Snapshot, Ticket};

/// The journal's clock has hundredths of a second.
const TICK: i64 = 10;
/// A lease that was not renewed for its ttl and this long must not block others.
const SLACK: i64 = 1000;

/// Everything that is wrong with a history; empty if it is correct.
pub(crate) fn faults(history: &History) -> Vec<String> {
    let mut faults = Vec::new();
    statuses(history, &mut faults);
    leases(history, &mut faults);
    fenced_changes(history, &mut faults);
    sections(history, &mut faults);
    lapses(history, &mut faults);
    runners(history, &mut faults);
    attempts(history, &mut faults);
    journal(history, &mut faults);
    finishes(history, &mut faults);
    answers(history, &mut faults);
    refusals(history, &mut faults);
    queues(history, &mut faults);
    starvation(history, &mut faults);
    exclusive_commands(history, &mut faults);
    faults
}

/// T1: each status follows from the previous one, and the feed ends with the tasks' statuses. Only an override changes a
/// completed task. In the end all are completed or skipped.
fn statuses(history: &History, faults: &mut Vec<String>) {
    let mut recorded: BTreeMap<&str, &str> = BTreeMap::new();
    let mut last = 0;
    for event in &history.feed {
        if event.seq <= last {
            faults.push(format!("T1: the feed does not rise: {event:?}"));
        }
        last = event.seq;
        let Some(task) = event.task.as_deref() else { continue };
        if event.is("task.created") {
            recorded.insert(task, event.to.as_deref().unwrap_or("pending"));
        }
        let (Some(to), true) = (event.to.as_deref(), event.is("task.status")) else { continue };
        let before = recorded.insert(task, to);
        if before != event.from.as_deref() {
            faults.push(format!("T1: the task was {before:?} before: {event:?}"));
        }
        if before == Some("completed") && !history.overriders.contains(&event.actor) {
            faults.push(format!("T1: a completed task was moved: {event:?}"));
        }
    }
    for (task, row) in &history.tasks {
        if !matches!(row.status.as_str(), "completed" | "skipped") {
            faults.push(format!("progress: task {task} ended up {}", row.status));
        }
        if recorded.get(task.as_str()) != Some(&row.status.as_str()) {
            faults.push(format!("T1: task {task} is {}, which is not in the feed", row.status));
        }
    }
}

/// L1, L2, L4, L10, R1: a resource (including a runner's slot) has one holder at a time, its fences rise, and the rows
/// have the whole history.
fn leases(history: &History, faults: &mut Vec<String>) {
    let mut open: BTreeMap<&str, i64> = BTreeMap::new();
    let mut latest: BTreeMap<&str, i64> = BTreeMap::new();
    let mut given: BTreeSet<i64> = BTreeSet::new();
    for event in &history.feed {
        let (Some(fence), Some(resource)) = (event.fence, event.resource.as_deref()) else { continue };
        match event.kind.as_str() {
            "lease.acquired" => {
                if let Some(other) = open.insert(resource, fence) {
                    faults.push(format!("L1: fence {other} holds it already: {event:?}"));
                }
                if latest.insert(resource, fence).is_some_and(|before| before >= fence) {
                    faults.push(format!("L2: the fence does not rise: {event:?}"));
                }
                if !given.insert(fence) {
                    faults.push(format!("L2: the fence was granted before: {event:?}"));
                }
                if history.leases.get(&fence).is_none_or(|row| row.resource != resource) {
                    faults.push(format!("L10: no row had this lease: {event:?}"));
                }
            }
            "lease.revived" => {
                if latest.get(resource) != Some(&fence) {
                    faults.push(format!("L7: revived after another grant: {event:?}"));
                }
                open.insert(resource, fence);
            }
            "lease.ended" => {
                // A lease may end twice in one case: it expired and was closed, and its holder finished afterwards.
                let other = open.remove(resource).is_some_and(|held| held != fence);
                if other || latest.get(resource) != Some(&fence) {
                    faults.push(format!("L1: it was not held under this fence: {event:?}"));
                }
            }
            _ => {}
        }
    }
    for (resource, fence) in open {
        faults.push(format!("L10: {resource} is still held under fence {fence} in the feed"));
    }
    removed(history, &latest, faults);
    for (fence, row) in &history.leases {
        if row.reason.is_none() {
            faults.push(format!("progress: fence {fence} is still open: {row:?}"));
        }
    }
}

/// L10: retention removes only old leases, and never the last one of a task.
fn removed(history: &History, latest: &BTreeMap<&str, i64>, faults: &mut Vec<String>) {
    for (resource, fence) in latest.iter().filter(|(resource, _)| resource.starts_with("task:")) {
        if !history.kept.contains(fence) {
            faults.push(format!("L10: the last lease of {resource} was removed, fence {fence}"));
        }
    }
    for event in history.feed.iter().filter(|event| event.is("lease.ended")) {
        let young = history.end - event.committed.after < history.retention;
        if young && event.fence.is_some_and(|fence| !history.kept.contains(&fence)) {
            faults.push(format!("L10: a lease was removed too early: {event:?}"));
        }
    }
}

/// L8, R3: a change of status in the name of a lease needs the latest grant, which nothing but time has ended.
fn fenced_changes(history: &History, faults: &mut Vec<String>) {
    let mut latest: BTreeMap<&str, i64> = BTreeMap::new();
    let mut over: BTreeMap<i64, (i64, &str)> = BTreeMap::new();
    for event in &history.feed {
        let (Some(fence), Some(task)) = (event.fence, event.task.as_deref()) else { continue };
        match event.kind.as_str() {
            "lease.acquired" => drop(latest.insert(task, fence)),
            "lease.revived" => drop(over.remove(&fence)),
            "lease.ended" if event.reason.as_deref() != Some("expired") => {
                over.insert(fence, event.transaction());
            }
            "task.status" => {
                if latest.get(task) != Some(&fence) {
                    faults.push(format!("L8: a change under a lost lease: {event:?}"));
                }
                if over.get(&fence).is_some_and(|ended| *ended != event.transaction()) {
                    faults.push(format!("L8: a change under a lease that has ended: {event:?}"));
                }
            }
            _ => {}
        }
    }
}

/// L9: a task in a serial section is granted only to the holder of the section, and a section has tasks of one holder.
fn sections(history: &History, faults: &mut Vec<String>) {
    let mut holders: BTreeMap<&str, &str> = BTreeMap::new();
    for event in &history.feed {
        if let Some(section) =
            event.resource.as_deref().and_then(|resource| resource.strip_prefix("section:"))
        {
            match (event.kind.as_str(), event.fence.and_then(|fence| history.leases.get(&fence))) {
                ("lease.acquired" | "lease.revived", Some(row)) => drop(holders.insert(section, &row.holder)),
                ("lease.ended", _) => drop(holders.remove(section)),
                _ => {}
            }
        }
        let task = event.task.as_ref().and_then(|task| history.tasks.get(task));
        let (Some(task), true) = (task, event.is("lease.acquired")) else { continue };
        if let Some(section) = task.section.as_deref().filter(|_| task.serial)
            && holders.get(section) != Some(&event.actor.as_str())
        {
            faults.push(format!("L9: its section is held by {:?}: {event:?}", holders.get(section)));
        }
    }
}

/// L3, L5, L7: a lease is closed as expired only if it was not renewed for its ttl, and as that of a dead process only if the
/// process was dead.
fn lapses(history: &History, faults: &mut Vec<String>) {
    for event in &history.feed {
        let resource = event.resource.as_deref().unwrap_or_default();
        // The lease of a section ends with the reason of its last task.
        let expired = event.is("lease.ended") && event.reason.as_deref() == Some("expired");
        if !expired || resource.starts_with("section:") {
            continue;
        }
        let Some(fence) = event.fence else { continue };
        let (Some(row), Some(beats)) = (history.leases.get(&fence), history.beats.get(&fence)) else {
            continue;
        };
        let renewed = beats.iter().rfind(|beat| beat.by <= event.committed.by);
        if let Some(renewed) = renewed
            && event.committed.by - renewed.after + longest_commit(history, *renewed) < row.ttl
        {
            faults.push(format!("L3: expired before its ttl of {} ms, {renewed:?}: {event:?}", row.ttl));
        }
    }
    for fence in &history.alive {
        faults.push(format!("L5: the holder of fence {fence} was alive: {:?}", history.leases.get(fence)));
    }
}

/// The longest time between a transaction reading the clock and its commit being seen: longer if a process was paused,
/// perhaps inside the transaction.
fn longest_commit(history: &History, seen: Between) -> i64 {
    let overlapping =
        history.pauses.iter().filter(|pause| pause.from <= seen.by && seen.after <= pause.to + SLACK);
    SLACK + overlapping.map(|pause| pause.to - pause.from).sum::<i64>()
}

/// R4: a runner holds one task at a time, which it works on.
fn runners(history: &History, faults: &mut Vec<String>) {
    let mut held: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    for event in &history.feed {
        let Some(fence) = event.fence.filter(|_| event.task.is_some()) else { continue };
        let Some(row) = history.leases.get(&fence).filter(|row| row.of_runner) else { continue };
        let open = held.entry(&row.holder).or_default();
        match event.kind.as_str() {
            "lease.acquired" | "lease.revived" => {
                open.insert(fence);
                if open.len() > 1 {
                    faults.push(format!("R4: a runner holds several tasks, fences {open:?}: {event:?}"));
                }
            }
            "lease.ended" => drop(open.remove(&fence)),
            _ => {}
        }
    }
}

/// R2: no attempt at a task or item begins before the previous one has ended.
fn attempts(history: &History, faults: &mut Vec<String>) {
    let mut running: BTreeMap<&str, &str> = BTreeMap::new();
    for event in &history.feed {
        let (Some(resource), Some(attempt)) = (event.resource.as_deref(), event.attempt.as_deref()) else {
            continue;
        };
        match event.kind.as_str() {
            "attempt.started" => {
                if let Some(other) = running.insert(resource, attempt) {
                    faults.push(format!("R2: the attempt {other} has not ended: {event:?}"));
                }
            }
            "attempt.ended" if running.get(resource) == Some(&attempt) => drop(running.remove(resource)),
            _ => {}
        }
    }
    for (id, row) in history.attempts.iter().filter(|(_, row)| !row.ended) {
        faults.push(format!("R2: the attempt {id} has never ended: {row:?}"));
    }
}

/// R2: no process of an attempt writes a line after the attempt has ended, or after the next attempt has begun.
fn journal(history: &History, faults: &mut Vec<String>) {
    let ended: BTreeMap<&str, i64> = history
        .feed
        .iter()
        .filter(|event| event.is("attempt.ended"))
        .filter_map(|event| Some((event.attempt.as_deref()?, event.committed.by)))
        .collect();
    let mut current: BTreeMap<&str, &str> = BTreeMap::new();
    let mut past: BTreeSet<&str> = BTreeSet::new();
    for line in &history.journal {
        let Some(attempt) = history.attempts.get(&line.attempt) else {
            faults.push(format!("R2: an attempt without a row: {line:?}"));
            continue;
        };
        if ended.get(line.attempt.as_str()).is_some_and(|by| line.at > by + TICK) {
            faults.push(format!("R2: after the end of its attempt: {line:?} {attempt:?}"));
        }
        if past.contains(line.attempt.as_str()) {
            faults.push(format!("R2: after the next attempt began: {line:?} {attempt:?}"));
        }
        let before = current.insert(&attempt.resource, &line.attempt);
        past.extend(before.filter(|before| *before != line.attempt));
    }
}

/// No lost finish: if an agent reported that it is done and this was acknowledged, or if it ended well and its lease was not
/// lost, its task is completed under its fence.
fn finishes(history: &History, faults: &mut Vec<String>) {
    let mut completed: BTreeSet<i64> = BTreeSet::new();
    for event in &history.feed {
        let item = event.is("lease.ended") && event.reason.as_deref() == Some("completed");
        if event.to.as_deref() == Some("completed") || item {
            completed.extend(event.fence);
        }
    }
    for line in &history.journal {
        let Some(attempt) = history.attempts.get(&line.attempt) else { continue };
        let good = line.text == "said 0" || line.text == "ok" && !lost(history, line, attempt.fence);
        if good && !completed.contains(&attempt.fence) {
            let row = history.leases.get(&attempt.fence);
            faults.push(format!("a finish was lost: {line:?} {attempt:?} {row:?}"));
        }
    }
}

/// Whether the lease under which a line was written may have been lost for a good reason.
fn lost(history: &History, line: &Line, fence: i64) -> bool {
    let Some(row) = history.leases.get(&fence) else { return false };
    let supervisor_killed = history.kills.iter().any(|kill| Some(kill.pid) == row.pid);
    // It was killed, or its supervisor was asked to stop, about when it ended.
    let ended_by_signal = history.kills.iter().any(|kill| {
        let own = kill.attempt.as_ref() == Some(&line.attempt);
        let stop = kill.dead_by.is_none() && (kill.at - SLACK..=kill.at + 10 * SLACK).contains(&line.at);
        own || stop
    });
    // A supervisor that cannot renew in time ends its work before the lease can end, and then there is no outcome.
    let beats = history.beats.get(&fence);
    let renewed = beats.and_then(|beats| beats.iter().rfind(|beat| beat.after <= line.at));
    let unrenewed = renewed.is_some_and(|beat| line.at - beat.after >= row.ttl * 3 / 8);
    match row.reason.as_deref() {
        Some("forced" | "expired") => true,
        Some("holder_died") => supervisor_killed || unrenewed,
        _ => ended_by_signal,
    }
}

/// The answers agree with the feed.
fn answers(history: &History, faults: &mut Vec<String>) {
    let mut by_actor: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    for call in &history.calls {
        by_actor.entry(&call.actor).or_default().push(call);
    }
    let mut grants: BTreeMap<i64, &Event> = BTreeMap::new();
    for event in &history.feed {
        let Some(fence) = event.fence else { continue };
        let granted = event.is("lease.acquired") && event.task.is_some();
        if granted {
            grants.insert(fence, event);
        }
        let Some(calls) = by_actor.get(event.actor.as_str()) else { continue };
        let unreported =
            || calls.iter().any(|call| call.may_be_incomplete() && call.overlaps(event.committed));
        if granted && !calls.iter().any(|call| call.granted == Some(fence)) && !unreported() {
            faults.push(format!("no process reports this grant: {event:?}"));
        }
    }
    for call in &history.calls {
        if let Some(fence) = call.granted.filter(|_| !call.reacquired) {
            match grants.get(&fence) {
                Some(event) if event.actor == call.actor && event.task == call.task => {}
                other => faults.push(format!("reported as granted, but the feed has {other:?}: {call:?}")),
            }
        }
        let finish = |event: &&Event| {
            event.to.as_deref() == Some("completed")
                && event.task == call.task
                && event.actor == call.actor
                && call.presented.is_none_or(|fence| event.fence == Some(fence))
                && call.overlaps(event.committed)
        };
        if call.finished && !history.feed.iter().any(|event| finish(&event)) {
            faults.push(format!("reported as finished, which is not in the feed: {call:?}"));
        }
        let renewed = call.renewed.and_then(|fence| history.leases.get(&fence));
        if renewed.is_some_and(|row| row.holder != call.actor) {
            faults.push(format!("L7: it renewed the lease of another holder, {renewed:?}: {call:?}"));
        }
        if call.reacquired && call.reacquired_from.is_some() && call.granted != call.reacquired_from {
            faults.push(format!("L6: the lease was given back under another fence: {call:?}"));
        }
        if !call.killed && !is_expected(history, call) {
            faults.push(format!("unexpected answer: {call:?}"));
        }
    }
}

/// Whether a command may end with this code.
fn is_expected(history: &History, call: &Call) -> bool {
    let Some(code) = call.code else { return false };
    // 1: the store was away for too long.
    let store = code == 1 && call.error.as_deref() == Some("STORE_ERROR");
    // 1: a runner that was paused is still there after its time to stop.
    let paused = || history.pauses.iter().any(|pause| is_paused_runner(pause, call));
    let late = code == 1 && call.verb == "stop" && paused();
    let codes: &[i32] = match call.verb {
        // 2: the task cannot be claimed in its status. 8: the lease was lost while earlier processes were reaped.
        "claim" => &[0, 2, 4, 6, 8, 9, 10],
        "next" => &[0, 8, 9, 10],
        "renew" | "release" | "done" => &[0, 8],
        "evict" => &[0, 4],
        "cleanup" | "list" | "stop" => &[0],
        // 1: the store of a project is away.
        "wakeup" => &[0, 1],
        // Its task was taken over, evicted, or cannot be claimed; or its command was killed.
        "run" => &[0, 2, 4, 6, 8, 9, 10, 137],
        "override" => &[0, 2, 4, 6],
        "exclusive" => &[0, 4, 5, 6, 9, 137],
        // All slots are taken; or the preset is parked.
        "runner" => &[0, 1, 6],
        // The job was finished or is being resumed by another process.
        "job" => &[0, 2, 4, 6, 8],
        _ => &[0, 2, 4],
    };
    store || late || codes.contains(&code)
}

/// Whether a runner was paused while the call waited.
fn is_paused_runner(pause: &Pause, call: &Call) -> bool {
    pause.is_runner && pause.from <= call.ended && call.begun <= pause.to
}

/// L3, L5: a lease refuses others only while its time lasts and its process is not dead.
fn refusals(history: &History, faults: &mut Vec<String>) {
    for call in &history.calls {
        let Some(fence) = call.refused_by.filter(|_| call.code == Some(6)) else { continue };
        let Some(row) = history.leases.get(&fence) else { continue };
        let renewed = history.beats.get(&fence).and_then(|beats| beats.last());
        if let Some(renewed) = renewed
            && call.begun > renewed.by + row.ttl + SLACK
        {
            faults.push(format!("L3: refused by a lease that had expired, {renewed:?} {row:?}: {call:?}"));
        }
        // A process that was killed before the grant only had the same pid.
        let granted = history.beats.get(&fence).and_then(|beats| beats.first());
        let is_holder = |kill: &Kill| granted.is_none_or(|granted| granted.after <= kill.at);
        let dead = |pid| {
            let mut killed = history.kills.iter().filter(|kill| kill.pid == pid && is_holder(kill));
            killed.find(|kill| kill.dead_by < Some(call.begun))
        };
        if let Some(kill) = row.pid.and_then(dead).filter(|kill| kill.dead_by.is_some()) {
            faults.push(format!("L5: refused by a dead holder, {kill:?} {row:?}: {call:?}"));
        }
    }
}

/// The state of the tasks and sections before an event.
#[derive(Debug, Default)]
struct State<'a> {
    statuses: BTreeMap<&'a str, &'a str>,
    /// The open lease of each resource.
    open: BTreeMap<&'a str, i64>,
}

impl<'a> State<'a> {
    fn apply(&mut self, event: &'a Event) {
        if let (Some(task), Some(to)) = (event.task.as_deref(), event.to.as_deref()) {
            self.statuses.insert(task, to);
        } else if let (Some(task), true) = (event.task.as_deref(), event.is("task.created")) {
            self.statuses.insert(task, "pending");
        }
        let (Some(resource), Some(fence)) = (event.resource.as_deref(), event.fence) else { return };
        match event.kind.as_str() {
            "lease.acquired" | "lease.revived" => drop(self.open.insert(resource, fence)),
            "lease.ended" => drop(self.open.remove(resource)),
            _ => {}
        }
    }

    fn holder<'h>(&self, history: &'h History, resource: &str) -> Option<&'h str> {
        self.open.get(resource).and_then(|fence| history.leases.get(fence)).map(|row| row.holder.as_str())
    }

    /// Whether nothing, or only a lease that may have lapsed by the time `at`, holds the resource. Its end does not tell that if it was
    /// revived after it had lapsed.
    fn may_be_free(&self, history: &History, resource: &str, at: i64) -> bool {
        let Some(fence) = self.open.get(resource) else { return true };
        let Some(row) = history.leases.get(fence) else { return true };
        let renewed = history.beats.get(fence).and_then(|beats| beats.iter().rfind(|beat| beat.after <= at));
        matches!(row.reason.as_deref(), Some("expired" | "holder_died"))
            || renewed.is_some_and(|beat| beat.after + row.ttl <= at)
    }

    /// Whether the task was certainly pending, unblocked and not held.
    fn is_free(&self, history: &History, task: &str) -> bool {
        self.statuses.get(task) == Some(&"pending")
            && !self.open.contains_key(format!("task:{task}").as_str())
            && !self.is_blocked(history, task)
    }

    fn is_blocked(&self, history: &History, task: &str) -> bool {
        history.tasks.get(task).is_some_and(|row| {
            let done =
                |on: &String| matches!(self.statuses.get(on.as_str()), Some(&"completed" | &"skipped"));
            !row.depends_on.iter().all(done)
        })
    }
}

/// Q1: a grant never passes an earlier live ticket that wanted the task, no matter what the caller asked for. A ticket
/// for exactly this task always counts as passed. A ticket for ready work counts as passed if too few other tasks were
/// ready for all such tickets.
fn queues(history: &History, faults: &mut Vec<String>) {
    let mut state = State::default();
    let mut before = State::default();
    let mut transaction = (0, "");
    for event in &history.feed {
        if transaction != event.transaction() {
            transaction = event.transaction();
            before = State { statuses: state.statuses.clone(), open: state.open.clone() };
        }
        if event.is("lease.acquired") && event.task.is_some() {
            faults.extend(
                passed(history, &before, event).map(|ticket| format!("Q1: {ticket:?} was passed: {event:?}")),
            );
        }
        state.apply(event);
    }
}

/// An earlier ticket that a grant has passed.
fn passed<'a>(history: &'a History, before: &State<'_>, grant: &Event) -> Option<&'a Ticket> {
    let task = grant.task.as_deref()?;
    let row = history.tasks.get(task)?;
    let holder = &history.leases.get(&grant.fence?)?.holder;
    let place = row.section.as_deref().filter(|_| row.serial).map(|section| format!("section:{section}"));
    // The holder of a serial section may always continue in it.
    if place.as_ref().is_some_and(|place| before.holder(history, place) == Some(holder)) {
        return None;
    }
    let (earlier, later) = around(history, grant)?;
    let takers =
        history.calls.iter().filter(|call| call.actor == grant.actor && call.overlaps(grant.committed));
    // A later process of the same holder may have replaced the one in the lease.
    let recorded = history.leases.get(&grant.fence?).and_then(|row| row.pid);
    let pids: Vec<u32> = takers.map(|call| call.pid).chain(recorded).collect();
    let own =
        earlier.tickets.iter().filter(|ticket| pids.contains(&ticket.pid)).map(|ticket| ticket.number).min();
    let waiting = |ticket: &&Ticket| {
        own.is_none_or(|own| ticket.number < own)
            && !pids.contains(&ticket.pid)
            && later.tickets.iter().any(|still| still.number == ticket.number)
            && grant.committed.by - ticket.refreshed_after < history.ticket_life
            && !history.kills.iter().any(|kill| kill.pid == ticket.pid && kill.at <= grant.committed.by)
    };
    let tickets: Vec<&Ticket> = earlier.tickets.iter().filter(waiting).collect();
    // A claim of one task of a serial section takes the whole section.
    let taken_with_it = |other: &str| {
        let same = place.is_some() && history.tasks.get(other).is_some_and(|of| of.section == row.section);
        same && before.is_free(history, other)
    };
    let named = tickets.iter().find(|ticket| {
        ticket.resource.strip_prefix("task:").is_some_and(|other| other == task || taken_with_it(other))
    });
    if let Some(ticket) = named {
        return Some(ticket);
    }
    let wanted: Vec<&Ticket> =
        tickets.into_iter().filter(|ticket| wants(ticket, row.section.as_deref())).collect();
    let places = ready_places(history, before, task, grant.committed.by);
    unserved(&wanted, &places)
}

/// The snapshots before and after an event.
fn around<'a>(history: &'a History, event: &Event) -> Option<(&'a Snapshot, &'a Snapshot)> {
    let after = history.snapshots.partition_point(|snapshot| snapshot.seq < event.seq);
    Some((history.snapshots.get(after.checked_sub(1)?)?, history.snapshots.get(after)?))
}

/// Whether a ticket is for ready work, in this section or anywhere.
fn wants(ticket: &Ticket, section: Option<&str>) -> bool {
    ticket.resource.strip_prefix("ready:").is_some_and(|of| of.is_empty() || Some(of) == section)
}

/// The work that may have been ready besides `taken`, as one place per task with its section. A serial section offers one
/// task at a time.
fn ready_places(history: &History, before: &State<'_>, taken: &str, at: i64) -> Vec<Option<String>> {
    let mut places: BTreeMap<String, Option<String>> = BTreeMap::new();
    let taken_section = history.tasks.get(taken).filter(|row| row.serial).and_then(|row| row.section.clone());
    for (task, row) in &history.tasks {
        let open = matches!(before.statuses.get(task.as_str()), Some(&"pending" | &"in_progress"));
        let serial = row.section.clone().filter(|_| row.serial);
        if task == taken
            || !open
            || before.is_blocked(history, task)
            || !before.may_be_free(history, &format!("task:{task}"), at)
            || serial.is_some() && serial == taken_section
            || serial.as_ref().is_some_and(|s| !before.may_be_free(history, &format!("section:{s}"), at))
        {
            continue;
        }
        places.insert(serial.unwrap_or_else(|| task.clone()), row.section.clone());
    }
    places.into_values().collect()
}

/// A ticket for which no place is left, no matter how the places are assigned.
fn unserved<'a>(tickets: &[&'a Ticket], places: &[Option<String>]) -> Option<&'a Ticket> {
    let mut given: Vec<Option<usize>> = vec![None; places.len()];
    (0..tickets.len())
        .find(|n| !place_for(*n, tickets, places, &mut given, &mut vec![false; places.len()]))
        .map(|n| tickets[n])
}

/// Finds a place for a ticket, and moves other tickets to other places if that helps.
fn place_for(
    ticket: usize,
    tickets: &[&Ticket],
    places: &[Option<String>],
    given: &mut [Option<usize>],
    tried: &mut [bool],
) -> bool {
    for place in 0..places.len() {
        if tried[place] || !wants(tickets[ticket], places[place].as_deref()) {
            continue;
        }
        tried[place] = true;
        if given[place].is_none_or(|other| place_for(other, tickets, places, given, tried)) {
            given[place] = Some(ticket);
            return true;
        }
    }
    false
}

/// Q1: a call for the next task must not be answered with "nothing is ready" if, during the whole call, more tasks were
/// ready than there were waiters for them.
fn starvation(history: &History, faults: &mut Vec<String>) {
    for call in history.calls.iter().filter(|call| call.verb == "next") {
        if !matches!(call.error.as_deref(), Some("NOTHING_READY" | "WAIT_TIMEOUT")) {
            continue;
        }
        let during = Between { after: call.begun, by: call.ended };
        let ready: Vec<&str> = history
            .tasks
            .iter()
            .filter(|(_, row)| !row.serial && row.depends_on.is_empty())
            .filter(|(_, row)| call.section.is_none() || call.section == row.section_name)
            .map(|(task, _)| task.as_str())
            .filter(|task| was_pending(history, task, during))
            .collect();
        let mut others: BTreeSet<i64> = BTreeSet::new();
        let first = history.snapshots.partition_point(|snapshot| snapshot.at <= call.begun).saturating_sub(1);
        for snapshot in
            history.snapshots[first..].iter().take_while(|snapshot| snapshot.at <= call.ended + SLACK)
        {
            let may_take = |ticket: &&Ticket| {
                ticket.pid != call.pid
                    && ready.iter().any(|task| {
                        wants(ticket, history.tasks[*task].section.as_deref())
                            || ticket.resource.strip_prefix("task:") == Some(task)
                    })
            };
            others.extend(snapshot.tickets.iter().filter(may_take).map(|ticket| ticket.number));
        }
        if ready.len() > others.len() {
            faults.push(format!("Q1: {ready:?} were ready, and {} waited: {call:?}", others.len()));
        }
    }
}

/// Whether a task was pending during all of this time.
fn was_pending(history: &History, task: &str, during: Between) -> bool {
    let of_task = |event: &&Event| event.task.as_deref() == Some(task);
    let mut status = None;
    for event in history.feed.iter().filter(of_task) {
        let to = if event.is("task.created") { Some("pending") } else { event.to.as_deref() };
        let Some(to) = to else { continue };
        if event.committed.by < during.after {
            status = Some(to);
        } else if event.committed.after <= during.by {
            return false;
        }
    }
    status == Some("pending")
}

/// No two commands run under the exclusive lock at the same time.
fn exclusive_commands(history: &History, faults: &mut Vec<String>) {
    let mut lines = history.exclusive.iter();
    while let Some(begin) = lines.next() {
        let Some(name) = begin.strip_suffix(" begin") else { continue };
        let end = format!("{name} end");
        // A command without an end was killed.
        if lines.clone().any(|line| *line == end) && lines.clone().next() != Some(&end) {
            faults.push(format!("two commands ran under the exclusive lock: {:?}", history.exclusive));
        }
    }
}

/// The part of the history that the faults are about: every entry that shares a fence, a task, an attempt or a lease with them.
pub(crate) fn explain(history: &History, faults: &[String]) -> String {
    let named = |name: &str| faults.iter().any(|fault| fault.contains(name));
    let tasks: Vec<&String> = history.tasks.keys().filter(|task| named(task)).take(3).collect();
    let mut text = String::new();
    let about = |entry: &str| tasks.iter().any(|task| entry.contains(task.as_str()));
    let mut attempts = Vec::new();
    for event in &history.feed {
        let entry = format!("{event:?}");
        if about(&entry) {
            attempts.extend(event.attempt.clone());
            let _ = writeln!(text, "{entry}");
        }
    }
    for (fence, row) in history.leases.iter().filter(|(_, row)| about(&row.resource)) {
        let _ = writeln!(text, "{fence} {row:?} {:?}", history.beats.get(fence));
    }
    for line in history.journal.iter().filter(|line| attempts.contains(&line.attempt)) {
        let _ = writeln!(text, "{line:?}");
    }
    for call in
        history.calls.iter().filter(|call| call.task.as_ref().is_some_and(|task| tasks.contains(&task)))
    {
        let _ = writeln!(text, "{call:?}");
    }
    let pids: Vec<u32> =
        history.leases.values().filter(|row| about(&row.resource)).filter_map(|row| row.pid).collect();
    for kill in &history.kills {
        if pids.contains(&kill.pid) || kill.attempt.as_ref().is_some_and(|a| attempts.contains(a)) {
            let _ = writeln!(text, "{kill:?}");
        }
    }
    text
}
