//! What can be asked for.

use proptest::prelude::*;
use tenure_core::task::TaskStatus;

/// Tasks 0, 1 and 2 start in the serial section 0, task 3 in the parallel section 1, tasks 4 and 5 in none.
pub(crate) const TASKS: usize = 6;
pub(crate) const SECTIONS: usize = 2;

/// Somebody with a name; those with a process get a new one when theirs was killed.
pub(crate) const CALLERS: [(&str, bool); 5] =
    [("ann", false), ("bob", true), ("bob", true), ("cid", true), ("dan", false)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    Done,
    Fail,
    Release,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Command {
    Claim {
        who: usize,
        task: usize,
    },
    Next {
        who: usize,
    },
    /// `shown`: with the last fence that it was given for this task, rather than by name.
    Renew {
        who: usize,
        task: usize,
        shown: bool,
        revive: bool,
    },
    Finish {
        who: usize,
        task: usize,
        shown: bool,
        word: Word,
    },
    Check {
        who: usize,
        task: usize,
        shown: bool,
    },
    /// Approve, reject, skip, retry, `update --status`.
    Settle {
        who: usize,
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
        who: usize,
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
    let who = || 0..CALLERS.len();
    let task = || 0..TASKS;
    let word = prop_oneof![Just(Word::Done), Just(Word::Fail), Just(Word::Release)];
    let to = prop_oneof![
        3 => Just(TaskStatus::Pending),
        1 => Just(TaskStatus::Completed),
        1 => Just(TaskStatus::Skipped),
        1 => Just(TaskStatus::Failed),
        1 => Just(TaskStatus::Review),
    ];
    // Around the expiry of a lease (60 s), at it, and far beyond.
    let seconds = prop_oneof![3 => 1..40_u64, 2 => Just(60), 1 => Just(3600)];
    prop_oneof![
        8 => (who(), task()).prop_map(|(who, task)| Command::Claim { who, task }),
        4 => who().prop_map(|who| Command::Next { who }),
        5 => (who(), task(), any::<bool>(), any::<bool>())
            .prop_map(|(who, task, shown, revive)| Command::Renew { who, task, shown, revive }),
        7 => (who(), task(), any::<bool>(), word)
            .prop_map(|(who, task, shown, word)| Command::Finish { who, task, shown, word }),
        1 => (who(), task(), any::<bool>())
            .prop_map(|(who, task, shown)| Command::Check { who, task, shown }),
        3 => (who(), task(), to, any::<bool>())
            .prop_map(|(who, task, to, force)| Command::Settle { who, task, to, force }),
        1 => task().prop_map(|task| Command::Force { task }),
        1 => (0..SECTIONS).prop_map(|section| Command::ForceSection { section }),
        2 => Just(Command::Cleanup),
        1 => (task(), task()).prop_map(|(task, on)| Command::Depend { task, on }),
        1 => (task(), task()).prop_map(|(task, on)| Command::Undepend { task, on }),
        1 => (task(), proptest::option::of(0..SECTIONS))
            .prop_map(|(task, section)| Command::Move { task, section }),
        2 => who().prop_map(|who| Command::Kill { who }),
        5 => seconds.clone().prop_map(|seconds| Command::Advance { seconds }),
        2 => seconds.prop_map(|seconds| Command::StepBack { seconds }),
    ]
}
