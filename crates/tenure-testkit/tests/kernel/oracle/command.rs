//! The commands that the oracle tests apply.

use proptest::prelude::*;
use tenure_core::task::TaskStatus;

/// Tasks 0, 1 and 2 start in the serial section 0, task 3 in the parallel section 1, tasks 4 and 5 in none.
pub(crate) const TASKS: usize = 6;
pub(crate) const SECTIONS: usize = 2;

/// Name, and whether the caller has a process; a killed process is replaced by a new one.
pub(crate) const CALLERS: [(&str, bool); 5] =
    [("ann", false), ("bob", true), ("bob", true), ("cid", true), ("dan", false)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinishKind {
    Done,
    Fail,
    Release,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Command {
    Claim {
        actor: usize,
        task: usize,
    },
    Next {
        actor: usize,
    },
    /// `shown`: presents the last fence granted for this task, instead of relying on the name.
    Renew {
        actor: usize,
        task: usize,
        shown: bool,
        revive: bool,
    },
    Finish {
        actor: usize,
        task: usize,
        shown: bool,
        finish: FinishKind,
    },
    Check {
        actor: usize,
        task: usize,
        shown: bool,
    },
    /// Approve, reject, skip, retry, `update --status`.
    OverrideStatus {
        actor: usize,
        task: usize,
        to: TaskStatus,
        force: bool,
    },
    Force {
        task: usize,
    },
    ForceSection {
        section: usize,
    },
    Cleanup,
    Depend {
        task: usize,
        on: usize,
    },
    Undepend {
        task: usize,
        on: usize,
    },
    Move {
        task: usize,
        section: Option<usize>,
    },
    Kill {
        actor: usize,
    },
    Advance {
        seconds: u64,
    },
    StepBack {
        seconds: u64,
    },
}

pub(crate) fn sequences() -> impl Strategy<Value = Vec<Command>> {
    proptest::collection::vec(command(), 1..30)
}

fn command() -> impl Strategy<Value = Command> {
    let actor = || 0..CALLERS.len();
    let task = || 0..TASKS;
    let finish = prop_oneof![Just(FinishKind::Done), Just(FinishKind::Fail), Just(FinishKind::Release)];
    let to = prop_oneof![
        3 => Just(TaskStatus::Pending),
        1 => Just(TaskStatus::Completed),
        1 => Just(TaskStatus::Skipped),
        1 => Just(TaskStatus::Failed),
        1 => Just(TaskStatus::Review),
    ];
    // Shortly before and after the expiry of a lease (60 s), exactly at it, and much later.
    let seconds = prop_oneof![3 => 1..40_u64, 2 => Just(60), 1 => Just(3600)];
    prop_oneof![
        8 => (actor(), task()).prop_map(|(actor, task)| Command::Claim { actor, task }),
        4 => actor().prop_map(|actor| Command::Next { actor }),
        5 => (actor(), task(), any::<bool>(), any::<bool>())
            .prop_map(|(actor, task, shown, revive)| Command::Renew { actor, task, shown, revive }),
        7 => (actor(), task(), any::<bool>(), finish)
            .prop_map(|(actor, task, shown, finish)| Command::Finish { actor, task, shown, finish }),
        1 => (actor(), task(), any::<bool>())
            .prop_map(|(actor, task, shown)| Command::Check { actor, task, shown }),
        3 => (actor(), task(), to, any::<bool>())
            .prop_map(|(actor, task, to, force)| Command::OverrideStatus { actor, task, to, force }),
        1 => task().prop_map(|task| Command::Force { task }),
        1 => (0..SECTIONS).prop_map(|section| Command::ForceSection { section }),
        2 => Just(Command::Cleanup),
        1 => (task(), task()).prop_map(|(task, on)| Command::Depend { task, on }),
        1 => (task(), task()).prop_map(|(task, on)| Command::Undepend { task, on }),
        1 => (task(), proptest::option::of(0..SECTIONS))
            .prop_map(|(task, section)| Command::Move { task, section }),
        2 => actor().prop_map(|actor| Command::Kill { actor }),
        5 => seconds.clone().prop_map(|seconds| Command::Advance { seconds }),
        2 => seconds.prop_map(|seconds| Command::StepBack { seconds }),
    ]
}
