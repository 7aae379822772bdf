//! What agents have used.

use std::time::Duration;

use tenure_core::kernel::{self, Outcome};
use tenure_core::lease::AgentRun;
use tenure_core::rules::{UsageBy, sum_usage};
use tenure_core::{Clock, Ending, Timestamp, Usage};

use crate::fixture::Fixture;

fn tokens(input_tokens: u64, micro_usd: Option<u64>) -> Usage {
    Usage { input_tokens, output_tokens: 1, cached_tokens: 2, cache_write_tokens: 3, micro_usd }
}

/// An agent's attempt at a task, which ends and returns the task.
fn attempt(f: &Fixture, task: &str, agent: &str, usage: Option<Usage>) {
    let runner = f.worker("runner", 7);
    let lease = f.claim(&runner, task).unwrap().lease;
    let owner = runner.process.clone().unwrap();
    let (conversation, final_message) = (None, None);
    let run = Some(AgentRun { ending: Ending::Stopped, conversation, final_message, usage });
    let outcome = Outcome { run, ..Outcome::default() };
    f.write(|tx| {
        let attempt = kernel::begin_attempt(tx, &f.context(), &lease, &owner, None, Some(agent), None)?;
        kernel::end_attempt(tx, &f.context(), &attempt, &outcome, "runner")
    })
    .unwrap();
    f.release(&runner, task).unwrap();
}

pub(super) fn usage_is_summed_by_task_agent_and_day(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    for task in ["A", "B"] {
        f.add_task(task);
    }
    let first = f.clock.now();
    attempt(&f, "A", "claude", Some(tokens(10, Some(5))));
    attempt(&f, "B", "codex", Some(tokens(20, None)));
    attempt(&f, "B", "codex", None);
    f.clock.advance(Duration::from_hours(24));
    let second = f.clock.now();
    attempt(&f, "A", "claude", Some(tokens(40, Some(7))));
    let sums = |by, since| {
        let sums = f.read(|view| sum_usage(view, by, since));
        let figures = |usage: Usage| (usage.input_tokens, usage.cache_write_tokens, usage.micro_usd);
        sums.into_iter().map(|sum| (sum.name, sum.attempts, figures(sum.usage))).collect::<Vec<_>>()
    };
    let sum = |name: &str, attempts, figures| (name.to_owned(), attempts, figures);
    let always = Timestamp::from_millis(0);
    assert_eq!(sums(UsageBy::Task, always), [sum("A", 2, (50, 6, Some(12))), sum("B", 1, (20, 3, None))]);
    assert_eq!(
        sums(UsageBy::Agent, always),
        [sum("claude", 2, (50, 6, Some(12))), sum("codex", 1, (20, 3, None))]
    );
    let day = |at: Timestamp| at.to_seconds()[..10].to_owned();
    assert_eq!(
        sums(UsageBy::Day, always),
        [sum(&day(first), 2, (30, 6, Some(5))), sum(&day(second), 1, (40, 3, Some(7)))]
    );
    assert_eq!(sums(UsageBy::Task, second), [sum("A", 1, (40, 3, Some(7)))]);
}
