//! Explores the real kernel functions over the in-memory store, state by state.
//!
//! Two or three holders, two of which share a name, acquire, wait, renew, revive, finish, repeat requests, crash and
//! are evicted, while the clock moves forward and back and clean-ups run at any time. In other scenes they wait for
//! different things: one task, any task, any task of a section, and as a runner does. Every interleaving is explored,
//! without a limit on the number of steps; `canonical` explains why the state space is finite.

mod actions;
mod canonical;
mod checks;
mod snapshot;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model, Property};

use actions::Action;
use snapshot::{Role, Scene, Snapshot};

use crate::full;

/// Which faults and actions the model explores.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) crashes: usize,
    pub(crate) waiting: bool,
    pub(crate) renewing: bool,
    pub(crate) back_steps: bool,
    pub(crate) lost_replies: bool,
    pub(crate) force: bool,
}

/// Counts that the interesting cases occurred, outside of the states so as not to multiply them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen(Arc<[AtomicUsize; 3]>);

impl Seen {
    pub(crate) fn served(&self) {
        self.0[0].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn revived(&self) {
        self.0[1].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn late(&self) {
        self.0[2].fetch_add(1, Ordering::Relaxed);
    }

    fn counts(&self) -> [usize; 3] {
        [0, 1, 2].map(|at: usize| self.0[at].load(Ordering::Relaxed))
    }
}

/// A kernel with a defect, which the checks must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// A finish is accepted under any fence.
    Unfenced,
    /// The first ticket keeps all later callers from any task, no matter what it is for.
    OneQueue,
    /// Like `OneQueue`, and a runner finds out what blocks it by trying to acquire.
    AskingAcquires,
}

#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    pub(crate) scene: Scene,
    pub(crate) bounds: Bounds,
    pub(crate) mutant: Option<Mutant>,
    pub(crate) seen: Seen,
}

impl Kernel {
    fn new(scene: Scene, bounds: Bounds) -> Self {
        Self { scene, bounds, mutant: None, seen: Seen::default() }
    }
}

impl Model for Kernel {
    type State = Snapshot;
    type Action = Action;

    fn init_states(&self) -> Vec<Snapshot> {
        vec![Snapshot::first(&self.scene)]
    }

    fn actions(&self, state: &Snapshot, actions: &mut Vec<Action>) {
        // A faulty state is not explored further.
        if state.fault.is_none() {
            actions::possible(self, state, actions);
        }
    }

    fn next_state(&self, last: &Snapshot, action: Action) -> Option<Snapshot> {
        let next = actions::perform(self, last, action).canonical();
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("L1: one holder", |_, s: &Snapshot| s.fault != Some("L1")),
            Property::always("L2: fences rise", |_, s: &Snapshot| s.fault != Some("L2")),
            Property::always("L4: one winner", |_, s: &Snapshot| s.fault != Some("L4")),
            Property::always("L6: the same holder gets the same lease", |_, s: &Snapshot| {
                s.fault != Some("L6")
            }),
            Property::always("L7: only the holder renews, from now", |_, s: &Snapshot| s.fault != Some("L7")),
            Property::always("L8: only the latest grant writes, once", |_, s: &Snapshot| {
                s.fault != Some("L8")
            }),
            Property::always("L9: one holder in a serial section", |_, s: &Snapshot| s.fault != Some("L9")),
            Property::always("Q1: no reserved task is taken", |_, s: &Snapshot| s.fault != Some("overtaken")),
            Property::always("Q1: a waiter that gets a task is woken", |_, s: &Snapshot| {
                s.fault != Some("not woken")
            }),
            Property::always("Q1: no other waiter is woken", |_, s: &Snapshot| {
                s.fault != Some("woken needlessly")
            }),
            Property::always("Q1: a waiter is granted what is reserved for it", checks::no_waiter_is_lost),
            Property::always("Q1: what is not reserved is free", checks::no_waiter_starves_others),
            Property::always("R4: asking acquires nothing", |_, s: &Snapshot| s.fault != Some("R4")),
            Property::always("T1: in progress is leased", checks::in_progress_is_leased),
            Property::always("the store never refuses", |_, s: &Snapshot| s.fault != Some("store")),
            Property::sometimes("a task gets done", |_, s: &Snapshot| checks::anything_done(s)),
        ]
    }
}

/// Explores the whole state space.
fn explore(name: &str, kernel: Kernel) {
    let (seen, renewing) = (kernel.seen.clone(), kernel.bounds.renewing);
    let limit = if full() { Duration::from_hours(2) } else { Duration::from_mins(4) };
    let start = Instant::now();
    let checker = kernel.checker().threads(2).timeout(limit).spawn_bfs().join();
    let [served, revived, late] = seen.counts();
    println!(
        "{name}: {} states, {} transitions, depth {}, {:.1} s; {served} waiters served, {revived} leases revived, \
         {late} late words refused",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        start.elapsed().as_secs_f64()
    );
    assert!(start.elapsed() < limit, "the state space was not explored completely");
    checker.assert_properties();
    assert!(served > 0 && (revived > 0 || !renewing) && late > 0, "no interesting case occurred");
}

/// Two waiters with different wishes and a caller without a ticket; `inside` of two tasks are in a serial section.
fn explore_queues(name: &str, first: Role, second: Role, inside: usize) {
    let more = full();
    let bounds = Bounds {
        crashes: usize::from(more),
        waiting: true,
        renewing: false,
        back_steps: false,
        lost_replies: false,
        force: more,
    };
    explore(name, Kernel::new(Scene::queues(&[first, second, Role::Newcomer], inside), bounds));
}

#[test]
fn waiters_for_a_task_and_for_a_section_keep_the_rules() {
    explore_queues("a task, a section", Role::Named(1), Role::InSection, 1);
}

#[test]
fn waiters_for_a_task_and_for_any_task_keep_the_rules() {
    explore_queues("a task, any task", Role::Named(0), Role::Any, 1);
}

#[test]
fn a_waiter_for_an_empty_section_and_a_runner_keep_the_rules() {
    explore_queues("an empty section, a runner", Role::InEmptySection, Role::Runner, 2);
}

#[test]
fn a_waiter_for_a_task_and_a_runner_keep_the_rules() {
    explore_queues("a task, a runner", Role::Named(1), Role::Runner, 1);
}

fn find_mutant(mutant: Mutant, roles: &[Role], property: &'static str) {
    let bounds = Bounds {
        crashes: 0,
        waiting: true,
        renewing: false,
        back_steps: false,
        lost_replies: false,
        force: false,
    };
    let kernel = Kernel { mutant: Some(mutant), ..Kernel::new(Scene::queues(roles, 1), bounds) };
    let found = HasDiscoveries::AnyOf([property].into());
    let checker = kernel.checker().threads(2).finish_when(found).spawn_bfs().join();
    let path = checker.assert_any_discovery(property);
    println!("{mutant:?} is detected by {:?}", path.into_actions());
}

#[test]
fn a_runner_that_asks_by_acquiring_is_detected() {
    let roles = [Role::InEmptySection, Role::Runner, Role::Newcomer];
    find_mutant(Mutant::AskingAcquires, &roles, "R4: asking acquires nothing");
}

#[test]
fn one_queue_for_all_wishes_is_detected() {
    let roles = [Role::InEmptySection, Role::Any, Role::Newcomer];
    find_mutant(Mutant::OneQueue, &roles, "Q1: what is not reserved is free");
}

#[test]
fn every_interleaving_of_two_holders_keeps_the_rules() {
    let bounds = Bounds {
        crashes: 1,
        waiting: true,
        renewing: true,
        back_steps: true,
        lost_replies: true,
        force: true,
    };
    explore("one task, two holders", Kernel::new(Scene::one_task(2), bounds));
}

#[test]
fn every_interleaving_of_three_holders_keeps_the_rules() {
    let more = full();
    let bounds = Bounds {
        crashes: 1,
        waiting: true,
        renewing: true,
        back_steps: more,
        lost_replies: more,
        force: true,
    };
    explore("one task, three holders", Kernel::new(Scene::one_task(3), bounds));
}

#[test]
fn every_interleaving_in_a_serial_section_keeps_the_rules() {
    let more = full();
    let bounds = Bounds {
        crashes: usize::from(more),
        waiting: true,
        renewing: true,
        back_steps: more,
        lost_replies: false,
        force: more,
    };
    explore("serial section, two holders", Kernel::new(Scene::serial_section(2), bounds));
}

#[test]
fn a_kernel_without_the_fence_check_is_detected() {
    let bounds = Bounds {
        crashes: 0,
        waiting: false,
        renewing: true,
        back_steps: false,
        lost_replies: false,
        force: false,
    };
    let kernel = Kernel { mutant: Some(Mutant::Unfenced), ..Kernel::new(Scene::one_task(2), bounds) };
    let checker = kernel.checker().threads(2).spawn_bfs().join();
    let path = checker.assert_any_discovery("L8: only the latest grant writes, once");
    println!("the mutant is detected by {:?}", path.into_actions());
}
