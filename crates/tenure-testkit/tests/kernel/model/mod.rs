//! Explores the real kernel functions over the in-memory store, state by state.
//!
//! Two or three holders, two of which share a name, acquire, wait, renew, revive, finish, repeat requests, crash and
//! are evicted, while the clock moves forward and back and clean-ups run at any time. Every interleaving is explored,
//! without a limit on the number of steps; `canonical` explains why the state space is finite.

mod actions;
mod canonical;
mod checks;
mod snapshot;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use stateright::{Checker, Model, Property};

use actions::Action;
use snapshot::{Scene, Snapshot};

use crate::full;

/// Limits on the disturbances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) crashes: usize,
    pub(crate) waiting: bool,
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

#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    pub(crate) scene: Scene,
    pub(crate) bounds: Bounds,
    /// False for the mutant, whose finish is accepted under any fence.
    pub(crate) fenced: bool,
    pub(crate) seen: Seen,
}

impl Kernel {
    fn new(scene: Scene, bounds: Bounds) -> Self {
        Self { scene, bounds, fenced: true, seen: Seen::default() }
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
            Property::always("the queue is served in order", |_, s: &Snapshot| s.fault != Some("overtaken")),
            Property::always("the next waiter is woken", |_, s: &Snapshot| s.fault != Some("not woken")),
            Property::always("no waiter is lost", checks::no_waiter_is_lost),
            Property::always("T1: in progress is leased", checks::in_progress_is_leased),
            Property::always("the store never refuses", |_, s: &Snapshot| s.fault != Some("store")),
            Property::sometimes("a task gets done", |_, s: &Snapshot| checks::anything_done(s)),
        ]
    }
}

/// Explores the whole state space.
fn explore(name: &str, kernel: Kernel) {
    let seen = kernel.seen.clone();
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
    assert!(served > 0 && revived > 0 && late > 0, "no interesting case occurred");
}

#[test]
fn every_interleaving_of_two_holders_keeps_the_rules() {
    let bounds = Bounds { crashes: 1, waiting: true, back_steps: true, lost_replies: true, force: true };
    explore("one task, two holders", Kernel::new(Scene::one_task(2), bounds));
}

#[test]
fn every_interleaving_of_three_holders_keeps_the_rules() {
    let more = full();
    let bounds = Bounds { crashes: 1, waiting: true, back_steps: more, lost_replies: more, force: true };
    explore("one task, three holders", Kernel::new(Scene::one_task(3), bounds));
}

#[test]
fn every_interleaving_in_a_serial_section_keeps_the_rules() {
    let more = full();
    let bounds = Bounds {
        crashes: usize::from(more),
        waiting: true,
        back_steps: more,
        lost_replies: false,
        force: more,
    };
    explore("serial section, two holders", Kernel::new(Scene::serial_section(2), bounds));
}

#[test]
fn a_kernel_without_the_fence_check_is_detected() {
    let bounds = Bounds { crashes: 0, waiting: false, back_steps: false, lost_replies: false, force: false };
    let kernel = Kernel { fenced: false, ..Kernel::new(Scene::one_task(2), bounds) };
    let checker = kernel.checker().threads(2).spawn_bfs().join();
    let path = checker.assert_any_discovery("L8: only the latest grant writes, once");
    println!("the mutant is detected by {:?}", path.into_actions());
}
