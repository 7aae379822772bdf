//! The violations that a check finds, before and after a reconcile.

use tenure_core::event::{EventKind, NewEvent};
use tenure_core::holder::{Caller, Holder};
use tenure_core::kernel::{self, Terms, Violation};
use tenure_core::lease::{Resource, ResourceKind};
use tenure_core::runner::{Runner, RunnerStatus};
use tenure_core::section::SectionMode;
use tenure_core::task::TaskStatus;
use tenure_core::{Clock, Context};

use crate::fixture::{Fixture, TTL};

fn found(f: &Fixture) -> Vec<Violation> {
    let ctx: Context<'_> = f.context();
    f.read(|view| kernel::check_invariants(view, &ctx))
}

fn names(f: &Fixture) -> Vec<&'static str> {
    let mut names: Vec<_> = found(f)
        .iter()
        .map(|violation| match violation {
            Violation::Shared(_) => "shared",
            Violation::MissingEvent { .. } => "missing event",
            Violation::Unheld(_) => "unheld",
            Violation::DanglingLease(_) => "dangling lease",
            Violation::Lapsed(..) => "lapsed",
            Violation::DeadRunner(_) => "dead runner",
            Violation::Abandoned(_) => "abandoned",
            Violation::DeadTickets(_) => "dead tickets",
            Violation::NotWorkedOn(_) => "not worked on",
        })
        .collect();
    names.sort_unstable();
    names
}

fn runner_of(f: &Fixture, caller: &Caller) -> Runner {
    Runner {
        id: caller.holder.id.clone(),
        status: RunnerStatus::Running,
        process: caller.process.clone().unwrap(),
        project_path: "/srv/shop".to_owned(),
        section: None,
        preset: "claude".to_owned(),
        current_task: None,
        log_path: None,
        started_at: f.clock.now(),
        heartbeat_at: f.clock.now(),
        completed_at: None,
        error: None,
    }
}

pub(super) fn the_rules_keep_every_invariant_at_every_step(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    assert!(names(&f).is_empty());
    let section = f.add_section("S", SectionMode::Serial);
    f.add_task_in("A", Some(&section));
    f.add_task("B");
    f.depend("B", "A");
    let ann = f.worker("ann", 7);
    let grant = f.claim(&ann, "A").unwrap();
    assert!(names(&f).is_empty());
    f.begin_attempt(&grant.lease, &ann);
    assert!(names(&f).is_empty());
    f.done(&ann, "A").unwrap();
    f.override_status(&f.bare("bob"), "B", TaskStatus::Skipped, false).unwrap();
    // The supervisor ends an attempt after the finish; until then it has no open lease.
    assert_eq!(names(&f), Vec::<&str>::new());
}

pub(super) fn what_a_crash_leaves_is_found_and_repaired_by_one_reconcile(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    for key in ["A", "B", "C"] {
        f.add_task(key);
    }
    let (ann, bob, eve) = (f.worker("ann", 7), f.worker("bob", 8), f.worker("eve", 9));
    let slot = Resource::new(ResourceKind::Runner, "0");
    f.take(&ann, &slot, &Terms::new(TTL)).unwrap();
    f.write(|tx| tx.save_runner(&runner_of(&f, &ann))).unwrap();
    let grant = f.claim(&ann, "A").unwrap();
    f.begin_attempt(&grant.lease, &ann);
    f.claim(&f.bare("forgetful"), "B").unwrap();
    f.claim(&bob, "C").unwrap();
    f.wait_for(&eve, &Resource::task(&f.id("C")), "bell");
    assert!(names(&f).is_empty());
    f.world.kill(7);
    f.world.kill(9);
    assert_eq!(names(&f), ["abandoned", "dead runner", "dead tickets", "lapsed", "lapsed"]);
    f.clock.advance(TTL);
    assert_eq!(
        names(&f),
        ["abandoned", "dead runner", "dead tickets", "lapsed", "lapsed", "lapsed", "lapsed"]
    );
    f.write(|tx| kernel::reconcile(tx, &f.context(), "doctor")).unwrap();
    // The caller has to reap the attempt's processes; until then the attempt is reported.
    assert_eq!(names(&f), ["abandoned"]);
    let outcome = kernel::Outcome { reason: "gone".to_owned(), ..kernel::Outcome::default() };
    f.write(|tx| {
        for attempt in tx.open_attempts()? {
            kernel::end_attempt(tx, &f.context(), &attempt, &outcome, "doctor")?;
        }
        Ok(())
    })
    .unwrap();
    assert!(names(&f).is_empty());
}

pub(super) fn a_lease_that_its_runner_does_not_work_on_is_found_and_returned(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    for key in ["A", "B"] {
        f.add_task(key);
    }
    let runner = Caller::new(Holder::runner("R")).with_process(f.world.process(7));
    let row =
        |task: Option<&str>| Runner { current_task: task.map(|key| f.id(key)), ..runner_of(&f, &runner) };
    let (starting, idle) = (row(Some("A")), row(None));
    f.write(|tx| tx.save_runner(&starting)).unwrap();
    let grant = f.claim(&runner, "A").unwrap();
    assert!(names(&f).is_empty(), "it is about to start A");
    f.begin_attempt(&grant.lease, &runner);
    f.write(|tx| tx.save_runner(&idle)).unwrap();
    assert!(names(&f).is_empty(), "it works on A");
    f.claim(&runner, "B").unwrap();
    assert_eq!(names(&f), ["not worked on"]);
    for violation in found(&f) {
        f.write(|tx| kernel::repair(tx, &f.context(), &violation, "doctor")).unwrap();
    }
    assert!(names(&f).is_empty());
    assert_eq!((f.status("A"), f.status("B")), (TaskStatus::InProgress, TaskStatus::Pending));
}

pub(super) fn rows_that_no_rule_writes_are_found_and_repaired(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let id = f.add_task("A");
    f.add_task("B");
    f.write(|tx| {
        let lie = NewEvent::new(EventKind::TaskStatus, "liar")
            .task(&id)
            .status(TaskStatus::Pending, TaskStatus::Failed);
        tx.set_status(&id, TaskStatus::InProgress, lie)
    })
    .unwrap();
    let ghost = Resource::new(ResourceKind::Task, "no-such-task");
    f.take(&f.bare("ann"), &ghost, &Terms::new(TTL)).unwrap();
    assert_eq!(names(&f), ["dangling lease", "missing event", "unheld"]);
    f.write(|tx| kernel::reconcile(tx, &f.context(), "doctor")).unwrap();
    for violation in f.read(|view| kernel::check_invariants(view, &f.context())) {
        // The second time there is nothing left to repair.
        for _ in 0..2 {
            f.write(|tx| kernel::repair(tx, &f.context(), &violation, "doctor")).unwrap();
        }
    }
    assert!(names(&f).is_empty(), "{:?}", found(&f));
    assert_eq!(f.status("A"), TaskStatus::Pending);
}
