//! The checker finds each kind of fault that is put into a history, and none in a correct history.

use crate::checker::faults;
use crate::history::{
    AttemptRow, Between, Call, Event, History, Kill, LeaseRow, Line, Pause, Snapshot, TaskRow, Ticket,
};

/// Events are 100 ms apart.
fn at(seq: i64) -> Between {
    Between { after: seq * 100 - 10, by: seq * 100 }
}

fn event(seq: i64, kind: &str, actor: &str, task: &str, fence: i64) -> Event {
    Event {
        seq,
        committed: at(seq),
        recorded: seq,
        kind: kind.to_owned(),
        actor: actor.to_owned(),
        task: Some(task.to_owned()),
        fence: (fence > 0).then_some(fence),
        resource: (fence > 0).then(|| format!("task:{task}")),
        ..Event::default()
    }
}

fn moved(seq: i64, actor: &str, task: &str, fence: i64, from: &str, to: &str) -> Event {
    let kind = if from.is_empty() { "task.created" } else { "task.status" };
    Event {
        from: (!from.is_empty()).then(|| from.to_owned()),
        to: Some(to.to_owned()),
        resource: None,
        ..event(seq, kind, actor, task, fence)
    }
}

fn ended(seq: i64, actor: &str, task: &str, fence: i64, reason: &str) -> Event {
    Event { reason: Some(reason.to_owned()), ..event(seq, "lease.ended", actor, task, fence) }
}

fn attempt(seq: i64, kind: &str, actor: &str, task: &str, fence: i64) -> Event {
    Event { attempt: Some(format!("x{fence}")), ..event(seq, kind, actor, task, fence) }
}

fn lease(task: &str, holder: &str, pid: Option<u32>, reason: &str) -> LeaseRow {
    LeaseRow {
        resource: format!("task:{task}"),
        of_runner: holder == "runner",
        holder: holder.to_owned(),
        pid,
        ttl: 3000,
        reason: Some(reason.to_owned()),
    }
}

fn call(actor: &str, pid: u32, verb: &'static str, task: &str, begun: i64, ended: i64) -> Call {
    Call {
        actor: actor.to_owned(),
        pid,
        verb,
        task: Some(task.to_owned()),
        begun: begun * 100 - 50,
        ended: ended * 100 + 50,
        code: Some(0),
        ..Call::default()
    }
}

fn line(at: i64, fence: i64, text: &str) -> Line {
    Line { at: at * 100, attempt: format!("x{fence}"), text: text.to_owned() }
}

fn ticket(number: i64, resource: &str, pid: u32) -> Ticket {
    Ticket { number, resource: resource.to_owned(), pid, refreshed_after: 450 }
}

/// `ann` works on a task by hand and releases it; a runner then completes it. The process of `bob` is killed while it holds
/// another task, which `ann` takes over and completes, and for which `eve` waits in vain.
fn correct_history() -> History {
    let feed = vec![
        moved(1, "x", "T", 0, "", "pending"),
        moved(2, "x", "U", 0, "", "pending"),
        event(3, "lease.acquired", "ann", "T", 1),
        moved(4, "ann", "T", 1, "pending", "in_progress"),
        ended(5, "ann", "T", 1, "released"),
        Event { recorded: 5, ..moved(6, "ann", "T", 1, "in_progress", "pending") },
        event(7, "lease.acquired", "runner", "T", 2),
        moved(8, "runner", "T", 2, "pending", "in_progress"),
        attempt(9, "attempt.started", "runner", "T", 2),
        attempt(13, "attempt.ended", "runner", "T", 2),
        ended(14, "runner", "T", 2, "completed"),
        Event { recorded: 14, ..moved(15, "runner", "T", 2, "in_progress", "completed") },
        event(16, "lease.acquired", "bob", "U", 3),
        moved(17, "bob", "U", 3, "pending", "in_progress"),
        ended(20, "ann", "U", 3, "holder_died"),
        Event { recorded: 20, ..moved(21, "ann", "U", 3, "in_progress", "pending") },
        event(22, "lease.acquired", "ann", "U", 4),
        moved(23, "ann", "U", 4, "pending", "in_progress"),
        ended(24, "ann", "U", 4, "completed"),
        Event { recorded: 24, ..moved(25, "ann", "U", 4, "in_progress", "completed") },
    ];
    let calls = vec![
        Call { granted: Some(1), ..call("ann", 10, "claim", "T", 3, 4) },
        call("ann", 11, "release", "T", 5, 6),
        Call { granted: Some(3), ..call("bob", 12, "claim", "U", 16, 17) },
        Call { code: Some(6), refused_by: Some(3), ..call("eve", 13, "claim", "U", 18, 18) },
        Call { granted: Some(4), ..call("ann", 14, "claim", "U", 20, 23) },
        Call { finished: true, presented: Some(4), ..call("ann", 15, "done", "U", 24, 25) },
        Call { error: Some("NOTHING_READY".into()), code: Some(10), ..call("eve", 16, "next", "", 26, 26) },
    ];
    let waiting = || vec![ticket(1, "ready:", 40), ticket(2, "task:U", 41)];
    let snapshots = [(2, Vec::new()), (6, waiting()), (8, vec![ticket(2, "task:U", 41)]), (15, Vec::new())];
    History {
        feed,
        leases: [
            (1, lease("T", "ann", None, "released")),
            (2, lease("T", "runner", Some(40), "completed")),
            (3, lease("U", "bob", Some(50), "holder_died")),
            (4, lease("U", "ann", None, "completed")),
        ]
        .into(),
        attempts: [("x2".to_owned(), AttemptRow { resource: "task:T".into(), fence: 2, ended: true })].into(),
        tasks: ["T", "U"]
            .map(|task| (task.into(), TaskRow { status: "completed".into(), ..TaskRow::default() }))
            .into(),
        calls,
        snapshots: snapshots.map(|(seq, tickets)| Snapshot { at: seq * 100, seq, tickets }).into(),
        beats: [(1, vec![at(3)]), (2, vec![at(7)]), (3, vec![at(16)]), (4, vec![at(22)])].into(),
        journal: vec![line(10, 2, "begin"), line(11, 2, "said 0"), line(12, 2, "ok")],
        kills: vec![Kill { pid: 50, at: 1840, dead_by: Some(1850), attempt: None, command: String::new() }],
        exclusive: ["a begin", "a end", "b begin", "c begin", "c end"].map(str::to_owned).into(),
        kept: [2, 3, 4].into(),
        retention: 1200,
        end: 2600,
        ticket_life: 3000,
        overriders: vec!["boss".to_owned()],
        ..History::default()
    }
}

fn event_of(history: &mut History, seq: i64) -> &mut Event {
    history.feed.iter_mut().find(|event| event.seq == seq).unwrap()
}

#[test]
fn a_correct_history_has_no_faults() {
    assert_eq!(faults(&correct_history()), Vec::<String>::new());
}

#[test]
fn every_tampered_history_is_detected() {
    type Tamper = fn(&mut History);
    let cases: [(&str, Tamper); 34] = [
        ("T1: the feed does not rise", |h| event_of(h, 4).seq = 3),
        ("T1: the task was", |h| h.feed.retain(|e| e.seq != 6)),
        ("T1: a completed task was moved", |h| h.feed.push(moved(30, "eve", "T", 0, "completed", "pending"))),
        ("which is not in the feed", |h| h.tasks.get_mut("T").unwrap().status = "skipped".into()),
        ("progress: task T ended up pending", |h| h.tasks.get_mut("T").unwrap().status = "pending".into()),
        ("L1: fence 1 holds it already", |h| h.feed.retain(|e| e.seq != 5)),
        ("L1: it was not held under this fence", |h| event_of(h, 14).fence = Some(1)),
        ("L2: the fence does not rise", |h| event_of(h, 22).fence = Some(2)),
        ("L2: the fence was granted before", |h| event_of(h, 16).fence = Some(2)),
        ("L3: expired before its ttl", |h| event_of(h, 20).reason = Some("expired".into())),
        ("L3: refused by a lease that had expired", |h| {
            h.calls[3].begun = 6000;
            h.leases.get_mut(&3).unwrap().pid = None;
        }),
        ("L5: the holder of fence 3 was alive", |h| h.alive.push(3)),
        ("L5: refused by a dead holder", |h| h.calls[3].begun = 1900),
        ("L6: the lease was given back under another fence", |h| {
            h.calls.push(Call {
                granted: Some(4),
                reacquired: true,
                reacquired_from: Some(1),
                ..call("ann", 17, "claim", "U", 23, 23)
            });
        }),
        ("L7: it renewed the lease of another holder", |h| {
            h.calls.push(Call { renewed: Some(3), ..call("ann", 17, "renew", "U", 17, 17) });
        }),
        ("L7: revived after another grant", |h| h.feed.push(event(30, "lease.revived", "ann", "T", 1))),
        ("L8: a change under a lost lease", |h| event_of(h, 15).fence = Some(1)),
        ("L8: a change under a lease that has ended", |h| event_of(h, 15).recorded = 15),
        ("L9: its section is held by None", |h| {
            let row = h.tasks.get_mut("T").unwrap();
            (row.section, row.serial) = (Some("S".into()), true);
        }),
        ("L10: no row had this lease", |h| drop(h.leases.remove(&1))),
        ("L10: the last lease of task:T was removed", |h| h.kept.retain(|fence| *fence != 2)),
        ("L10: a lease was removed too early", |h| h.kept.retain(|fence| *fence != 4)),
        ("progress: fence 4 is still open", |h| h.leases.get_mut(&4).unwrap().reason = None),
        ("R2: the attempt x1 has not ended", |h| {
            h.feed.insert(
                3,
                Event { attempt: Some("x1".into()), ..event(4, "attempt.started", "ann", "T", 1) },
            );
        }),
        ("R2: the attempt x2 has never ended", |h| h.attempts.get_mut("x2").unwrap().ended = false),
        ("R2: after the end of its attempt", |h| h.journal.push(line(14, 2, "tick"))),
        ("R2: after the next attempt began", |h| {
            h.attempts.insert("x1".into(), AttemptRow { resource: "task:T".into(), fence: 1, ended: true });
            h.journal.insert(0, line(4, 1, "begin"));
            h.journal.insert(2, line(10, 1, "tick"));
        }),
        ("R4: a runner holds several tasks", |h| {
            for fence in [1, 3] {
                let row = h.leases.get_mut(&fence).unwrap();
                (row.of_runner, row.holder) = (true, "runner".into());
            }
            h.feed.retain(|e| e.seq != 5 && e.seq != 14);
        }),
        ("a finish was lost", |h| h.feed.retain(|e| e.seq != 15 && e.seq != 14)),
        ("no process reports this grant", |h| h.calls[2].granted = None),
        ("reported as granted, but the feed has", |h| h.calls[1].granted = Some(9)),
        ("reported as finished, which is not in the feed", |h| h.calls[5].presented = Some(3)),
        ("two commands ran under the exclusive lock", |h| {
            h.exclusive = ["a begin", "b begin", "b end", "a end"].map(str::to_owned).into();
        }),
        ("unexpected answer", |h| h.calls[1].code = Some(101)),
    ];
    for (expected, tamper) in cases {
        let mut history = correct_history();
        tamper(&mut history);
        let found = faults(&history);
        assert!(found.iter().any(|fault| fault.contains(expected)), "{expected:?} not in {found:#?}");
    }
}

#[test]
fn only_a_runner_that_was_paused_meanwhile_may_fail_to_stop_in_time() {
    let unexpected = |pauses: &[Pause]| {
        let mut history = correct_history();
        history.calls.push(Call { code: Some(1), ..call("boss", 17, "stop", "", 10, 20) });
        history.pauses = pauses.to_vec();
        faults(&history).iter().any(|fault| fault.contains("unexpected answer"))
    };
    let pause = |is_runner, from, to| Pause { pid: 40, from, to, is_runner };
    assert!(unexpected(&[]));
    assert!(!unexpected(&[pause(true, 900, 1200)]));
    assert!(!unexpected(&[pause(true, 1500, 1600)]));
    assert!(unexpected(&[pause(true, 300, 900)]), "it went on before");
    assert!(unexpected(&[pause(true, 2100, 2200)]), "it was paused later");
    assert!(unexpected(&[pause(false, 900, 2200)]), "it is not a runner");
}

/// The number of faults if a later process takes T although these tickets for it were there before.
fn passed(tickets: &[Ticket], change: fn(&mut History)) -> usize {
    let mut history = correct_history();
    for snapshot in &mut history.snapshots[1..3] {
        snapshot.tickets = tickets.to_vec();
    }
    change(&mut history);
    faults(&history).iter().filter(|fault| fault.contains("Q1")).count()
}

#[test]
fn a_waiter_is_passed_only_if_too_little_work_is_left_for_it() {
    let ready = |number| ticket(number, "ready:", 60 + u32::try_from(number).unwrap());
    assert_eq!(passed(&[ready(1)], |_| {}), 0, "U is left for it");
    assert_eq!(passed(&[ready(1), ready(2)], |_| {}), 1, "only U is left");
    assert_eq!(passed(&[ticket(1, "ready:S", 61)], |_| {}), 0, "T is not in its section");
    let in_section = |h: &mut History| h.tasks.get_mut("T").unwrap().section = Some("S".into());
    assert_eq!(passed(&[ticket(1, "ready:S", 61)], in_section), 1, "U is not in its section");
    assert_eq!(passed(&[ticket(1, "ready:S", 61), ready(2)], in_section), 1);
    let blocked = |h: &mut History| h.tasks.get_mut("U").unwrap().depends_on = vec!["T".into()];
    assert_eq!(passed(&[ready(1)], blocked), 1, "U is not ready");
    assert_eq!(passed(&[ticket(1, "task:T", 61)], |_| {}), 1);
    assert_eq!(passed(&[ticket(5, "ready:", 40), ticket(6, "task:T", 61)], |_| {}), 0, "it came later");
    let other = [ticket(1, "task:U", 61)];
    assert_eq!(passed(&other, |_| {}), 0, "it waits for another task");
    assert_eq!(passed(&other, in_serial_section), 1, "the grant takes the whole section");
}

#[test]
fn a_task_whose_lease_had_lapsed_is_left_for_a_waiter_even_if_the_lease_was_revived_later() {
    fn held(h: &mut History, ttl: i64) {
        h.feed.insert(6, event(6, "lease.acquired", "carl", "U", 9));
        h.leases.insert(9, LeaseRow { ttl, ..lease("U", "carl", None, "completed") });
        h.beats.insert(9, vec![at(6)]);
    }
    let ready = [ticket(1, "ready:", 61)];
    assert_eq!(passed(&ready, |h| held(h, 3000)), 1, "no work is left");
    assert_eq!(passed(&ready, |h| held(h, 50)), 0, "U is left");
}

#[test]
fn an_earlier_process_with_the_pid_of_a_holder_may_have_been_killed() {
    let refused = |killed: i64| {
        let mut history = correct_history();
        history.calls[3].begun = 1900;
        (history.kills[0].at, history.kills[0].dead_by) = (killed, Some(killed + 10));
        faults(&history).iter().any(|fault| fault.contains("L5: refused by a dead holder"))
    };
    assert!(refused(1840));
    assert!(!refused(1500), "it was killed before the grant");
}

#[test]
fn a_claim_by_name_passes_those_who_wait_for_any_task() {
    let by_name = |h: &mut History| {
        let row = h.leases.get_mut(&2).unwrap();
        row.of_runner = false;
        h.calls.push(Call { granted: Some(2), ..call("runner", 40, "claim", "T", 7, 8) });
    };
    let ready = |number| ticket(number, "ready:", 60 + u32::try_from(number).unwrap());
    assert_eq!(passed(&[ready(1)], by_name), 0, "U is left for it");
    assert_eq!(passed(&[ready(1), ready(2)], by_name), 1, "only U is left");
}

/// Both tasks are in one serial section, of which no lease is recorded.
fn in_serial_section(history: &mut History) {
    for row in history.tasks.values_mut() {
        (row.section, row.serial) = (Some("S".into()), true);
    }
}

#[test]
fn a_dead_or_silent_waiter_is_not_passed() {
    let tickets = [ticket(1, "task:T", 61)];
    assert_eq!(passed(&tickets, |_| {}), 1);
    assert_eq!(passed(&tickets, |h| h.ticket_life = 200), 0);
    assert_eq!(passed(&tickets, |h| h.kills[0].pid = 61), 1, "it was killed later");
    assert_eq!(
        passed(&tickets, |h| {
            let kill = Kill { pid: 61, at: 600, dead_by: Some(610), attempt: None, command: String::new() };
            h.kills.push(kill);
        }),
        0
    );
}

#[test]
fn nothing_is_ready_only_if_the_ready_work_is_reserved() {
    let starved = |tickets: Vec<Ticket>, section: Option<&str>| {
        let mut history = correct_history();
        // From 200 to 1590 U is pending.
        history.calls[6] = Call {
            section: section.map(str::to_owned),
            ..Call { begun: 900, ended: 1200, ..history.calls[6].clone() }
        };
        for snapshot in &mut history.snapshots {
            snapshot.tickets.clone_from(&tickets);
        }
        faults(&history).iter().filter(|fault| fault.contains("waited")).count()
    };
    assert_eq!(starved(Vec::new(), None), 1);
    assert_eq!(starved(Vec::new(), Some("S")), 0, "U is in no section");
    assert_eq!(starved(vec![ticket(1, "ready:S", 61)], None), 1, "its ticket is for another section");
    assert_eq!(starved(vec![ticket(1, "ready:", 61)], None), 0);
    assert_eq!(starved(vec![ticket(1, "task:U", 61)], None), 0);
}

#[test]
fn a_finish_may_be_lost_with_the_lease_and_not_otherwise() {
    let lost = |change: fn(&mut History)| {
        let mut history = correct_history();
        history.journal.retain(|line| line.text != "said 0");
        history.feed.retain(|e| e.seq != 15);
        event_of(&mut history, 14).reason = Some("released".into());
        history.leases.get_mut(&2).unwrap().reason = Some("released".into());
        change(&mut history);
        faults(&history).iter().any(|fault| fault.contains("a finish was lost"))
    };
    assert!(lost(|_| {}));
    assert!(!lost(|h| h.leases.get_mut(&2).unwrap().reason = Some("forced".into())));
    assert!(
        lost(|h| h.leases.get_mut(&2).unwrap().reason = Some("holder_died".into())),
        "no signal killed it"
    );
    assert!(!lost(|h| {
        h.leases.get_mut(&2).unwrap().reason = Some("holder_died".into());
        h.kills[0].pid = 40;
    }));
    assert!(!lost(|h| h.kills[0].attempt = Some("x2".into())), "its process was killed");
    assert!(
        lost(|h| {
            h.leases.get_mut(&2).unwrap().reason = Some("forced".into());
            h.journal.push(line(12, 2, "said 0"));
        }),
        "an acknowledged report is never lost"
    );
}
