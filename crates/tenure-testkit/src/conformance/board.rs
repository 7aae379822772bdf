//! The board: what it shows of a project's rows, and in which pages.

use std::time::Duration;

use tenure_core::board::{
    AttentionKind, Board, Group, GroupBy, GroupId, Query, Surroundings, read, read_task, recent_events,
};
use tenure_core::event::EventKind;
use tenure_core::holder::{Caller, Holder};
use tenure_core::id::Fence;
use tenure_core::kernel::{self, Finish, Outcome};
use tenure_core::lease::{AgentRun, LeaseState, Resource};
use tenure_core::parking::ParkingScope;
use tenure_core::rules::{EndedAttempt, note_ending, send_message};
use tenure_core::section::SectionMode;
use tenure_core::task::TaskStatus;
use tenure_core::why::Asking;
use tenure_core::{Ending, Usage};

use crate::fixture::Fixture;

fn asking<T>(f: &Fixture, me: Option<&Holder>, ask: impl FnOnce(&Asking<'_>) -> T) -> T {
    let ctx = f.context();
    ask(&Asking {
        ctx: &ctx,
        me,
        claimant: &|_| Caller::new(Holder::agent("newcomer")),
        time: &|at| at.to_seconds(),
        exclusive: None,
        remedy: &|_| None,
        no_runner: &|| None,
    })
}

fn board_of(f: &Fixture, me: Option<&Holder>, query: &Query) -> Board {
    let around = Surroundings { untrusted: Some("not trusted".to_owned()), ..Surroundings::default() };
    asking(f, me, |asking| f.read(|view| read(view, asking, query))).board(&f.world, &around)
}

fn keys(group: &Group) -> String {
    let Some(page) = &group.tasks else { return "closed".to_owned() };
    page.rows.iter().map(|task| task.key.as_str()).collect::<Vec<_>>().join(" ")
}

pub(super) fn a_board_shows_holders_waiters_and_what_waits_for_a_person(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    for key in ["HELD", "LAPSED", "REVIEW", "SILENT", "FAILED", "FREE"] {
        f.add_task(key);
    }
    let (ann, bob) = (f.worker("ann", 7), f.worker("bob", 8));
    f.claim(&f.bare("gone"), "LAPSED").unwrap();
    f.clock.advance(Duration::from_hours(1));
    let lease = f.claim(&ann, "HELD").unwrap().lease;
    f.begin_attempt(&lease, &ann);
    f.wait_for(&bob, &Resource::task(&f.id("HELD")), &f.bell("bob"));
    f.wait_for(&f.worker("late", 9), &Resource::ready(None), &f.bell("late"));
    f.world.kill(9);
    for (key, to) in [("REVIEW", TaskStatus::Review), ("FAILED", TaskStatus::Failed)] {
        f.override_status(&f.bare("eve"), key, to, false).unwrap();
    }
    end_silently(&f, "SILENT");
    let scope = ParkingScope {
        preset: "mine".to_owned(),
        account: "claude".to_owned(),
        host: "h1".to_owned(),
        fingerprint: "f1".to_owned(),
    };
    let (task, fence) = (f.id("FREE"), Fence::new(1));
    let ended = EndedAttempt {
        ending: Ending::NotLoggedIn,
        reason: "log in first",
        resets_at: None,
        task: &task,
        fence,
        cost: tenure_core::parking::Cost::Nothing,
    };
    f.write(|tx| note_ending(tx, &f.context(), &scope, &f.bare("runner"), &ended)).unwrap();
    let me = Holder::person("me@here");
    f.write(|tx| send_message(tx, None, "ann", Some("me@here"), "which colour?").map(drop)).unwrap();

    let board = board_of(&f, Some(&me), &Query::default());
    let held: Vec<_> =
        board.held.rows.iter().map(|h| (h.task.key.as_str(), h.lease.state, h.waiting)).collect();
    assert_eq!(held, [("HELD", LeaseState::Live, 1), ("LAPSED", LeaseState::Expired, 0)]);
    assert_eq!(board.held.rows[0].lease.fence, lease.fence);
    assert!(board.held.rows[0].attempt.is_some());
    assert_eq!(board.held.rows[0].last_event.as_ref().map(|e| e.kind), Some(EventKind::AttemptStarted));
    let waiting: Vec<_> = board.queue.rows.iter().map(|w| (w.holder.id.as_str(), w.wish.as_str())).collect();
    assert_eq!(waiting, [("bob", "task HELD")], "the ticket of a dead process does not count");
    let attention: Vec<_> = board
        .attention
        .rows
        .iter()
        .map(|a| (a.kind, a.task.as_ref().map_or("", |task| task.key.as_str()), a.hints.len()))
        .collect();
    assert_eq!(
        attention,
        [
            (AttentionKind::Untrusted, "", 1),
            (AttentionKind::NotLoggedIn, "", 1),
            (AttentionKind::Message, "", 1),
            (AttentionKind::Unreported, "SILENT", 2),
            (AttentionKind::Review, "REVIEW", 2),
            (AttentionKind::Failed, "FAILED", 2),
        ]
    );
    let said: Vec<_> = board.attention.rows[3..].iter().map(|a| a.sentence.as_str()).collect();
    assert_eq!(said, ["ended without a report", "it is waiting for review", "it has failed"]);
    assert!(board.parked[0].until.is_some());
    assert_eq!(board.project.count(TaskStatus::InProgress), 2);
    assert_eq!(board.project.used_today.map(|used| used.output_tokens), Some(5));
    let kinds: Vec<_> = board.reasons.iter().map(|reason| reason.kind).collect();
    assert_eq!(kinds, ["ready", "lapsed", "held", "review", "failed", "parked"]);
    assert!(!board.moving);

    let few = board_of(&f, None, &Query { list_rows: 1, ..Query::default() });
    assert_eq!((few.held.rows.len(), few.held.total, few.held.more()), (1, 2, 1));
    assert_eq!((few.attention.rows.len(), few.attention.total), (4, 5), "one of two in review is shown");

    let detail = asking(&f, None, |asking| f.read(|view| read_task(view, asking, "SILENT", 2)));
    assert_eq!(detail.history.len(), 2);
    assert_eq!(detail.history[0].to, Some(TaskStatus::Review), "the newest event is first");
    assert_eq!((detail.attempts.len(), detail.used.map(|used| used.output_tokens)), (1, Some(5)));
    assert_eq!(detail.reasons[0].kind, "review");
    let events = f.read(|view| recent_events(view, 3));
    assert_eq!((events.len(), events[0].kind), (3, EventKind::MessageSent));

    // A person's change comes after the attempt, so how that has ended does not count.
    f.override_status(&f.bare("ann"), "SILENT", TaskStatus::Failed, false).unwrap();
    let board = board_of(&f, Some(&me), &Query::default());
    let failed = board.attention.rows.iter().find(|a| a.task.as_ref().is_some_and(|t| t.key == "SILENT"));
    assert_eq!(failed.map(|a| (a.kind, a.sentence.as_str())), Some((AttentionKind::Failed, "it has failed")));
}

/// An attempt that ended without a report, whose task is in review.
fn end_silently(f: &Fixture, key: &str) {
    let runner = f.worker("runner", 10);
    let lease = f.claim(&runner, key).unwrap().lease;
    let owner = runner.process.clone().unwrap();
    let usage = Some(Usage { output_tokens: 5, ..Usage::default() });
    let run = AgentRun { ending: Ending::Unreported, conversation: None, final_message: None, usage };
    let outcome = Outcome { run: Some(run), ..Outcome::default() };
    f.write(|tx| {
        let attempt = kernel::begin_attempt(tx, &f.context(), &lease, &owner, None, Some("claude"), None)?;
        kernel::end_attempt(tx, &f.context(), &attempt, &outcome, "runner")
    })
    .unwrap();
    f.finish(&runner, key, Finish::Unreported("ended without a report")).unwrap();
}

pub(super) fn the_groups_of_a_board_are_sections_or_statuses_in_pages(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let late = f.add_section("Late", SectionMode::Serial);
    let early = f.add_section("Early", SectionMode::Parallel);
    f.write(|tx| tx.add_section_dependency(&late, &early).map(drop)).unwrap();
    for key in ["N1", "N2"] {
        f.add_task(key);
    }
    for key in ["L1", "L2", "L3"] {
        f.add_task_in(key, Some(&late));
    }
    f.add_task_in("E1", Some(&early));
    f.override_status(&f.bare("ann"), "L2", TaskStatus::Completed, false).unwrap();

    let shown = |query: &Query| {
        let groups = board_of(&f, None, query).groups;
        groups.iter().map(|g| format!("{} {}/{}: {}", g.name, g.open, g.total, keys(g))).collect::<Vec<_>>()
    };
    let all = Query::default();
    assert_eq!(shown(&all), ["No section 2/2: N1 N2", "Late 2/3: L1 L3", "Early 1/1: E1"]);
    let finished = Query { finished: true, ..Query::default() };
    assert_eq!(shown(&finished)[1], "Late 2/3: L1 L2 L3");
    let closed = Query { closed: [GroupId::Section(late.clone())].into(), ..Query::default() };
    assert_eq!(shown(&closed)[1], "Late 2/3: closed");
    let found = Query { search: Some("l3".to_owned()), ..Query::default() };
    assert_eq!(shown(&found), ["Late 2/3: L3"], "sections in which nothing was found are left out");
    let none = Query { search: Some("no such task".to_owned()), ..Query::default() };
    assert!(shown(&none).is_empty());
    let found = Query { group_by: GroupBy::Status, ..found };
    assert_eq!(shown(&found)[..2], ["Pending 5/5: L3", "In progress 0/0: "], "statuses have fixed places");
    let statuses = Query { group_by: GroupBy::Status, ..Query::default() };
    assert_eq!(shown(&statuses)[0], "Pending 5/5: N1 N2 L1 L3 E1");
    assert_eq!(shown(&statuses)[3], "Completed 0/1: closed");

    let page = Query { rows: 1, ..Query::default() };
    let group = |query: &Query, at: usize| board_of(&f, None, query).groups.remove(at);
    assert_eq!((keys(&group(&page, 0)).as_str(), group(&page, 0).tasks.unwrap().more()), ("N1", 1));
    let second = Query { offsets: [(GroupId::NoSection, 1)].into(), ..page };
    assert_eq!((keys(&group(&second, 0)).as_str(), group(&second, 0).tasks.unwrap().more()), ("N2", 0));
    assert_eq!(keys(&group(&second, 1)), "L1", "the other groups begin with their first task");
    let matches = |offset| {
        let search = Some("n".to_owned());
        let query =
            Query { rows: 1, search, offsets: [(GroupId::NoSection, offset)].into(), ..Query::default() };
        let group = group(&query, 0);
        let tasks = group.tasks.clone().unwrap();
        (keys(&group), tasks.more(), tasks.is_uncounted)
    };
    assert_eq!(matches(0), ("N1".to_owned(), 1, true), "what comes after the next match is not counted");
    assert_eq!(matches(1), ("N2".to_owned(), 0, false));
    let section = group(&all, 1);
    assert_eq!((section.serial, section.blocked_by), (true, vec!["Early".to_owned()]));
}
