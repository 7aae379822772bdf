//! Which task is ready, in which order, and that `next` and the listing agree.

use tenure_core::ErrorCode;
use tenure_core::holder::Caller;
use tenure_core::id::{SectionId, TaskId};
use tenure_core::kernel::{self, Terms, Verdict};
use tenure_core::lease::{Resource, ResourceKind};
use tenure_core::section::SectionMode;
use tenure_core::store::{ClaimHint, ClaimTarget, SectionEdit, TaskEdit, TaskFilter};
use tenure_core::task::TaskStatus;

use crate::fixture::{Fixture, TICKET_LIFE, TTL, refused};

/// The keys of the listing of ready tasks, in order, as seen by `name`.
pub(super) fn ready_for(f: &Fixture, name: Option<&str>) -> Vec<String> {
    let me = name.map(|name| f.bare(name));
    let filter = TaskFilter { ready: true, limit: u64::from(u32::MAX), ..TaskFilter::default() };
    f.read(|view| {
        let viewer = f.viewer(view, me.as_ref());
        let (tasks, total) = view.list_tasks(&filter, &viewer)?;
        assert_eq!(total, tasks.len() as u64);
        let keys: Vec<_> = tasks.iter().map(|task| task.key.clone()).collect();
        // The listing, the single task and `next` must agree.
        for task in &tasks {
            assert!(task.ready && view.task(&task.id, &viewer)?.is_some_and(|t| t.ready), "{}", task.key);
        }
        assert_eq!(view.next_ready(None, &viewer)?, tasks.first().map(|task| task.id.clone()));
        for section in view.sections()? {
            let inside = |id: &TaskId| tasks.iter().any(|t| t.id == *id);
            let first = tasks.iter().find(|t| t.section.as_ref().is_some_and(|s| s.id == section.id));
            let next = view.next_ready(Some(&section.id), &viewer)?;
            assert!(next.as_ref().is_none_or(inside));
            assert_eq!(next, first.map(|task| task.id.clone()), "in {}", section.name);
        }
        Ok(keys)
    })
}

pub(super) fn pending_tasks_with_finished_dependencies_are_ready(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    for key in ["A", "B", "C"] {
        f.add_task(key);
    }
    f.depend("C", "A");
    f.depend("C", "B");
    assert_eq!(ready_for(&f, None), ["A", "B"]);
    assert_eq!(f.task("C").blocked_by, ["A", "B"]);
    assert_eq!(refused(f.claim(&f.bare("ann"), "C")), ErrorCode::NotReady);
    let ann = f.bare("ann");
    f.override_status(&ann, "A", TaskStatus::Completed, false).unwrap();
    assert_eq!(f.task("C").blocked_by, ["B"]);
    for (to, ready) in [
        (TaskStatus::Failed, false),
        (TaskStatus::Review, false),
        (TaskStatus::Skipped, true),
        (TaskStatus::Pending, false),
        (TaskStatus::Completed, true),
    ] {
        f.override_status(&ann, "B", to, false).unwrap();
        assert_eq!(f.task("C").ready, ready, "B is {to}");
    }
    assert_eq!(f.task("C").depends_on, ["A", "B"]);
}

pub(super) fn only_pending_and_lapsed_tasks_are_ready(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    for to in [TaskStatus::Review, TaskStatus::Completed, TaskStatus::Failed, TaskStatus::Skipped] {
        f.override_status(&f.bare("ann"), "A", to, false).unwrap();
        assert!(ready_for(&f, None).is_empty(), "{to}");
    }
    f.override_status(&f.bare("ann"), "A", TaskStatus::Pending, false).unwrap();
    f.claim(&f.bare("ann"), "A").unwrap();
    assert!(ready_for(&f, Some("ann")).is_empty(), "not even for its holder");
    f.clock.advance(TTL);
    assert_eq!(ready_for(&f, None), ["A"]);
}

pub(super) fn ready_tasks_are_ordered_by_section_then_priority_then_position(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (s, t) = (f.add_section("S", SectionMode::Parallel), f.add_section("T", SectionMode::Serial));
    f.add_task_in("S1", Some(&s));
    f.add_task_in("S2", Some(&s));
    f.add_task_in("T1", Some(&t));
    f.add_task_in("T2", Some(&t));
    f.add_task("X");
    let order = |expected: [&str; 5]| {
        assert_eq!(ready_for(&f, None), expected);
    };
    order(["X", "S1", "S2", "T1", "T2"]);
    let prioritise = |id, priority| {
        let edit = SectionEdit { priority: Some(priority), ..SectionEdit::default() };
        let event = || tenure_core::event::NewEvent::new(tenure_core::event::EventKind::SectionUpdated, "t");
        f.write(|tx| tx.edit_section(id, &edit, event())).unwrap();
    };
    prioritise(&t, 1);
    order(["T1", "T2", "X", "S1", "S2"]);
    f.edit("S2", &TaskEdit { priority: Some(1), ..TaskEdit::default() });
    order(["T1", "T2", "X", "S2", "S1"]);
    f.edit("T1", &TaskEdit { position: Some(99), ..TaskEdit::default() });
    order(["T2", "T1", "X", "S2", "S1"]);
    let move_to = |id, position| {
        let edit = SectionEdit { position: Some(position), priority: Some(100), ..SectionEdit::default() };
        let event = || tenure_core::event::NewEvent::new(tenure_core::event::EventKind::SectionUpdated, "t");
        f.write(|tx| tx.edit_section(id, &edit, event())).unwrap();
    };
    move_to(&t, -1);
    order(["T2", "T1", "X", "S2", "S1"]);
    let mut taken = Vec::new();
    while let Some(grant) = f.next(&f.bare("ann")) {
        taken.push(grant.task.key);
    }
    assert_eq!(taken, ["T2", "T1", "X", "S2", "S1"], "next takes them in that order");
}

pub(super) fn a_lapsed_task_keeps_its_position_in_the_order(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    for key in ["A", "B", "C"] {
        f.add_task(key);
    }
    f.claim(&f.bare("ann"), "B").unwrap();
    f.clock.advance(TTL);
    assert_eq!(ready_for(&f, None), ["A", "B", "C"]);
    assert_eq!(f.next(&f.bare("bob")).unwrap().task.key, "A");
    assert_eq!(f.next(&f.bare("bob")).unwrap().task.key, "B");
    assert_eq!(f.next(&f.bare("bob")).unwrap().task.key, "C");
    assert!(f.next(&f.bare("bob")).is_none());
}

pub(super) fn a_serial_section_is_ready_only_for_its_holder(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let s = f.add_section("S", SectionMode::Serial);
    f.add_task_in("A", Some(&s));
    f.add_task_in("B", Some(&s));
    f.claim(&f.bare("ann"), "A").unwrap();
    assert_eq!(ready_for(&f, Some("ann")), ["B"]);
    assert!(ready_for(&f, Some("bob")).is_empty() && ready_for(&f, None).is_empty());
    f.clock.advance(TTL);
    assert_eq!(ready_for(&f, Some("bob")), ["A", "B"]);
}

pub(super) fn a_section_with_a_longer_ttl_ends_with_its_tasks(fresh: &dyn Fn() -> Fixture) {
    for how in ["next", "claim A", "claim B"] {
        let f = fresh();
        let s = f.add_section("S", SectionMode::Serial);
        f.add_task_in("A", Some(&s));
        f.add_task_in("B", Some(&s));
        let far = f.bare("far").with_process(f.world.remote_process(1));
        let terms = Terms { section_ttl: TTL * 10, ..Terms::new(TTL) };
        f.claim_on(&far, "A", &terms).unwrap();
        assert!(ready_for(&f, Some("bob")).is_empty());
        f.clock.advance(TTL);
        assert_eq!(ready_for(&f, Some("bob")), ["A", "B"], "no clean-up is needed (L3)");
        let bob = f.bare("bob");
        let key = match how {
            "next" => f.next(&bob).unwrap().task.key,
            "claim A" => f.claim(&bob, "A").unwrap().task.key,
            _ => f.claim(&bob, "B").unwrap().task.key,
        };
        assert_eq!(f.section("S").lease.unwrap().holder, bob.holder, "{how}");
        assert_eq!(refused(f.revive(&far, "A")).exit_code(), 8, "{how}");
        f.done(&bob, &key).unwrap();
    }
}

pub(super) fn work_that_is_reserved_for_a_waiter_is_ready(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let s = f.add_section("S", SectionMode::Serial);
    let task = Resource::task(&f.add_task("A"));
    f.add_task_in("B", Some(&s));
    f.wait_for(&f.worker("bob", 2), &task, "no-bell");
    f.wait_for(&f.worker("cid", 3), &Resource::ready(Some(&s)), "no-bell");
    assert_eq!(ready_for(&f, None), ["A", "B"]);
    assert!(f.next(&f.bare("dan")).is_none());
    let next = || f.read(|view| kernel::next_for_newcomer(view, &f.context(), &f.viewer(view, None), None));
    assert_eq!(next(), None);
    f.world.kill(2);
    assert_eq!(next(), Some(f.id("A")));
    f.clock.advance(TICKET_LIFE);
    f.claim(&f.bare("dan"), "A").unwrap();
    assert_eq!(next(), Some(f.id("B")));
}

pub(super) fn dead_holders_block_nothing_and_unknown_ones_do(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.add_task("B");
    f.claim(&f.worker("ann", 1), "A").unwrap();
    f.claim(&f.bare("far").with_process(f.world.remote_process(1)), "B").unwrap();
    assert!(ready_for(&f, None).is_empty());
    f.world.kill(1);
    assert_eq!(ready_for(&f, None), ["A"]);
}

pub(super) fn next_hands_out_every_task_once(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let s = f.add_section("S", SectionMode::Serial);
    let p = f.add_section("P", SectionMode::Parallel);
    for n in 0..4 {
        f.add_task_in(&format!("S{n}"), Some(&s));
        f.add_task_in(&format!("P{n}"), Some(&p));
        f.add_task(&format!("X{n}"));
    }
    f.depend("X0", "S3");
    f.depend("P1", "X2");
    let mut done = Vec::new();
    for round in 0.. {
        let caller = f.bare(&format!("agent{}", round % 3));
        let Some(grant) = f.next(&caller) else { break };
        assert!(!done.contains(&grant.task.key), "{} twice", grant.task.key);
        f.done(&caller, &grant.task.key).unwrap();
        done.push(grant.task.key);
    }
    assert_eq!(done.len(), 12);
}

pub(super) fn a_lapsed_task_returns_to_pending_when_its_new_holder_releases_it(fresh: &dyn Fn() -> Fixture) {
    // Another program may have left a task in progress without a lease. After a claim and a release it is pending.
    let f = fresh();
    let id = f.add_task("A");
    f.write(|tx| {
        let event = tenure_core::event::NewEvent::new(tenure_core::event::EventKind::TaskStatus, "import");
        let event = event.task(&id).status(TaskStatus::Pending, TaskStatus::InProgress);
        tx.set_status(&id, TaskStatus::InProgress, event)
    })
    .unwrap();
    f.claim(&f.bare("ann"), "A").unwrap();
    f.release(&f.bare("ann"), "A").unwrap();
    assert_eq!(f.status("A"), TaskStatus::Pending);
}

pub(super) fn next_claims_the_first_task_of_the_listing_in_any_situation(fresh: &dyn Fn() -> Fixture) {
    type Scene = fn(&Fixture);
    let scenes: [(&str, Scene); 7] = [
        ("quiet", |_| ()),
        ("a lapsed lease", |f| {
            f.claim(&f.bare("ann"), "A").unwrap();
            f.clock.advance(TTL);
        }),
        ("a dead holder", |f| {
            f.claim(&f.worker("ann", 7), "A").unwrap();
            f.world.kill(7);
        }),
        ("a queue for something else", |f| {
            drop(f.wait_for(&f.worker("ann", 7), &Resource::new(ResourceKind::Session, "s"), "no"));
        }),
        ("a held section", |f| {
            f.edit("A", &TaskEdit { section: Some(Some(f.section("S").id)), ..TaskEdit::default() });
            f.edit("B", &TaskEdit { section: Some(Some(f.section("T").id)), ..TaskEdit::default() });
            f.claim(&f.bare("ann"), "X").unwrap();
        }),
        ("a section after another", |f| {
            f.edit("A", &TaskEdit { section: Some(Some(f.section("S").id)), ..TaskEdit::default() });
            f.edit("B", &TaskEdit { section: Some(Some(f.section("T").id)), ..TaskEdit::default() });
            let (later, sooner) = (f.section("S").id, f.section("T").id);
            f.write(|tx| tx.add_section_dependency(&later, &sooner)).unwrap();
        }),
        ("a task after others", |f| {
            f.depend("A", "B");
            f.claim(&f.bare("ann"), "B").unwrap();
            f.done(&f.bare("ann"), "B").unwrap();
        }),
    ];
    // A store may have cached state from the first request.
    for ((scene, make), asks) in scenes.into_iter().flat_map(|scene| [(scene, true), (scene, false)]) {
        let f = fresh();
        let s = f.add_section("S", SectionMode::Serial);
        f.add_section("T", SectionMode::Serial);
        for key in ["A", "B"] {
            f.add_task(key);
        }
        f.add_task_in("X", Some(&s));
        let bob = f.bare("bob");
        // A repeated request may use a faster path.
        f.add_task("first");
        f.edit("first", &TaskEdit { priority: Some(1), ..TaskEdit::default() });
        assert_eq!(f.next(&bob).unwrap().task.key, "first");
        f.done(&bob, "first").unwrap();
        make(&f);
        for _ in 0..2 {
            let listed = ready_for(&f, Some("bob")).into_iter().next();
            if asks {
                let hint = ClaimHint { holder: &bob.holder, wants: ClaimTarget::Next(None) };
                let found = f
                    .store
                    .claim(hint, |tx| tx.next_ready(None, &f.context().viewer(tx, Some(&bob.holder))?));
                assert_eq!(found.unwrap(), listed.as_deref().map(|key| f.id(key)), "{scene}");
            }
            let taken = f.next(&bob).map(|grant| grant.task);
            assert_eq!(taken.as_ref().map(|task| task.key.clone()), listed, "{scene}");
            if let Some(task) = taken {
                assert_eq!(task.depends_on, f.task(&task.key).depends_on, "{scene}");
                f.done(&bob, &task.key).unwrap();
            }
        }
    }
}

/// Pseudo-random numbers that are the same in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// A project that changes at random: tasks in serial and parallel sections, claimed, abandoned, finished and queued for.
struct RandomProject {
    f: Fixture,
    draw: Draw,
    keys: Vec<&'static str>,
    sections: Vec<SectionId>,
    /// The pid of ann's current process. Her earlier ones are dead.
    ann: u32,
}

impl RandomProject {
    fn new(mut f: Fixture, seed: u64) -> Self {
        // A task that will fail when its lapsed lease is closed is listed as ready until then, so the limit must not be
        // reached.
        f.policy.max_attempts = 1000;
        let modes = [("S", SectionMode::Serial), ("T", SectionMode::Serial), ("P", SectionMode::Parallel)];
        let sections: Vec<SectionId> = modes.map(|(name, mode)| f.add_section(name, mode)).into();
        let keys = vec!["A", "B", "C", "D", "E", "F", "G"];
        let mut project = Self { f, draw: Draw(seed), keys, sections, ann: 100 };
        for at in 0..project.keys.len() {
            let section = project.sections.get(project.draw.below(4)).cloned();
            project.f.add_task_in(project.keys[at], section.as_ref());
            if at > 0 && project.draw.below(3) == 0 {
                let on = project.draw.below(at);
                project.f.depend(project.keys[at], project.keys[on]);
            }
        }
        if project.draw.below(2) == 0 {
            let [first, second] =
                [project.sections[0].clone(), project.sections[1 + project.draw.below(2)].clone()];
            project.f.write(|tx| tx.add_section_dependency(&second, &first)).unwrap();
        }
        project
    }

    /// Ann has a process, Bob has none, and Cid holds nothing yet.
    fn callers(&self) -> [Caller; 3] {
        [self.f.worker("ann", self.ann), self.f.bare("bob"), self.f.worker("cid", 300)]
    }

    fn step(&mut self) {
        let key = self.draw.one_of(&self.keys);
        let caller = self.callers()[self.draw.below(2)].clone();
        match self.draw.below(10) {
            // Section leases last longer than task leases, so that a section's lease outlives its holder's
            // last task.
            0..=3 => {
                let terms = Terms { section_ttl: TTL * 5, ..Terms::new(TTL) };
                drop(self.f.claim_on(&caller, key, &terms));
            }
            4 => drop(self.f.done(&caller, key)),
            5 => {
                let all =
                    [TaskStatus::Pending, TaskStatus::Completed, TaskStatus::Skipped, TaskStatus::Review];
                drop(self.f.override_status(&caller, key, self.draw.one_of(&all), self.draw.below(2) == 0));
            }
            6 => {
                let resource = match self.sections.get(self.draw.below(5)) {
                    Some(section) => Resource::ready(Some(section)),
                    None => Resource::task(&self.f.id(key)),
                };
                let waiter = self.f.worker("wil", 200 + u32::try_from(self.draw.below(2)).unwrap());
                self.f.wait_for(&waiter, &resource, "nowhere");
            }
            7 => self.f.clock.advance(self.draw.one_of(&[TICKET_LIFE, TTL / 2, TTL])),
            8 => self.f.world.kill(200),
            _ => {
                self.f.world.kill(self.ann);
                self.ann += 1;
            }
        }
    }

    /// The keys of the ready tasks that the kernel would grant if nothing was queued, without granting them. A task in
    /// progress counts only if it was claimed from `pending`: one without a lease can be claimed by name but is not ready.
    fn grantable(&self, caller: &Caller) -> Vec<String> {
        let would_grant = |key: &str| {
            let task = self.f.task(key);
            let claimed_from = task.lease.and_then(|lease| lease.claimed_from);
            let is_open = match task.status {
                TaskStatus::Pending => true,
                TaskStatus::InProgress => claimed_from == Some(TaskStatus::Pending),
                _ => false,
            };
            let mut granted = false;
            let undone = self.f.write(|tx| -> tenure_core::Result<()> {
                for ticket in tx.all_tickets()? {
                    tx.delete_ticket(ticket.number)?;
                }
                let verdict =
                    kernel::acquire_task(tx, &self.f.context(), caller, &task.id, &Terms::new(TTL))?;
                granted = matches!(verdict, Verdict::Granted(grant) if !grant.reacquired);
                Err(tenure_core::Error::store("undone"))
            });
            assert!(undone.is_err());
            is_open && granted
        };
        self.keys.iter().filter(|key| would_grant(key)).map(|key| (*key).to_owned()).collect()
    }

    /// Whether a ready task is granted with the queue as it is, and whether `in_the_way` finds no obstacle to the
    /// grant.
    fn granted_and_unhindered(&self, caller: &Caller, key: &str) -> (bool, bool) {
        let (ctx, terms) = (self.f.context(), Terms::new(TTL));
        let task = self.f.task(key);
        let hindered = self.f.read(|view| kernel::in_the_way(view, &ctx, caller, &task, &terms));
        let mut granted = false;
        let undone = self.f.write(|tx| -> tenure_core::Result<()> {
            let verdict = kernel::acquire_task(tx, &ctx, caller, &task.id, &terms)?;
            granted = matches!(verdict, Verdict::Granted(_));
            Err(tenure_core::Error::store("undone"))
        });
        assert!(undone.is_err());
        (granted, hindered.is_none())
    }
}

pub(super) fn a_task_is_ready_exactly_when_the_kernel_would_grant_it(fresh: &dyn Fn() -> Fixture) {
    let (mut ready_seen, mut blocked_seen, mut reserved_seen) = (0, 0, 0);
    for seed in 1..=8_u64 {
        let mut project = RandomProject::new(fresh(), seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for step in 1..=20 {
            project.step();
            if step % 4 != 0 {
                continue;
            }
            for caller in project.callers() {
                let mut ready = ready_for(&project.f, Some(&caller.holder.id));
                ready.sort();
                let grantable = project.grantable(&caller);
                let place = format!("for {} after step {step} of project {seed}", caller.holder.id);
                assert_eq!(ready, grantable, "{place}");
                for key in &ready {
                    let (granted, unhindered) = project.granted_and_unhindered(&caller, key);
                    assert_eq!(granted, unhindered, "{key} {place}");
                    reserved_seen += usize::from(!granted);
                }
                ready_seen += ready.len();
                blocked_seen += project.keys.len() - ready.len();
            }
        }
    }
    assert!(ready_seen > 50 && blocked_seen > 50, "{ready_seen} ready, {blocked_seen} not");
    assert!(reserved_seen > 10, "{reserved_seen} reserved");
}
