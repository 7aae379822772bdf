//! Why a whole project makes no progress.

use super::task::held;
use super::{Asking, Reason};
use crate::clock::Timestamp;
use crate::duration::format_rounded;
use crate::error::{Result, SectionInUse};
use crate::hints;
use crate::kernel;
use crate::lease::{LeaseState, ResourceKind};
use crate::reference;
use crate::row_names::RowNames;
use crate::shell_quote::quote;
use crate::store::{LeaseFilter, TaskFilter, View};
use crate::task::TaskStatus;

/// At most this many held tasks are explained.
const MOST_HELD: usize = 20;
/// At most this many blocked tasks are explained.
const MOST_BLOCKED: u64 = 10;

/// The reasons in the order of their weight; never empty.
pub fn about_project(view: &dyn View, asking: &Asking<'_>) -> Result<Vec<Reason>> {
    let (viewer, ctx, now) = (asking.viewer(view)?, asking.ctx, view.now());
    let counts = view.count_tasks()?;
    let count = |status: TaskStatus| counts.iter().find(|(s, _)| *s == status).map_or(0, |(_, n)| *n);
    let open_tasks = count(TaskStatus::Pending) + count(TaskStatus::InProgress);
    let mut reasons = Vec::new();
    if let Some(id) = kernel::next_for_newcomer(view, ctx, &viewer, None)? {
        let name = reference::task(view, id.as_str())?;
        reasons.push(
            Reason::new("ready", format!("{} is ready: {}", name.key, name.title)).hint(hints::claim_next()),
        );
    }
    if let Some(work) = kernel::reserved_work(view, ctx, None, None)? {
        let sentence = format!("{work}; first in the queue: {}.", work.first);
        reasons.push(Reason { first: Some(work.first), ..Reason::new("reserved", sentence) });
    }
    let leases =
        view.leases(&LeaseFilter { kinds: Some(vec![ResourceKind::Task]), ..LeaseFilter::default() })?;
    if reasons.is_empty() && open_tasks > 0 {
        let held = leases.iter().filter(|l| l.state(now, ctx.judge) == LeaseState::Live);
        reasons.push(nothing_ready(open_tasks, u64::try_from(held.count()).unwrap_or(0)));
    }
    let in_use = kernel::sections_in_use(view, ctx, None, &viewer)?;
    reasons.extend(in_use.iter().map(|section| serial_section(section, now)));
    let mut names = RowNames::default();
    names.learn_resources(view, leases.iter().take(MOST_HELD).map(|lease| &lease.resource))?;
    for lease in leases.iter().take(MOST_HELD) {
        let key = names.resource(&lease.resource);
        let waiting = kernel::count_before(view, &viewer, &lease.resource, None)?;
        reasons.push(held(asking, lease, &key, now, waiting, &key));
    }
    if leases.is_empty() && reasons.iter().any(|r| r.kind == "nothing_ready") {
        let filter = TaskFilter {
            statuses: Some(vec![TaskStatus::Pending]),
            limit: MOST_BLOCKED,
            ..TaskFilter::default()
        };
        let pending = view.list_tasks(&filter, &viewer)?.0;
        for task in pending.into_iter().filter(|task| !task.blocked_by.is_empty()) {
            let sentence = format!("{} is blocked by {}.", task.key, task.blocked_by.join(", "));
            reasons.push(Reason::new("blocked", sentence).hint(hints::why_task(task.key)));
        }
    }
    for status in [TaskStatus::Review, TaskStatus::Failed] {
        if count(status) > 0 {
            let filter = TaskFilter { statuses: Some(vec![status]), limit: 1, ..TaskFilter::default() };
            let first = view.list_tasks(&filter, &viewer)?.0.into_iter().next();
            let kind = if status == TaskStatus::Review { "review" } else { "failed" };
            let sentence = match (status, count(status)) {
                (TaskStatus::Review, 1) => "1 task is waiting for review.".to_owned(),
                (TaskStatus::Review, n) => format!("{n} tasks are waiting for review."),
                (_, 1) => "1 task has failed.".to_owned(),
                (_, n) => format!("{n} tasks have failed."),
            };
            let reason = Reason::new(kind, sentence);
            reasons.push(match first {
                Some(task) if status == TaskStatus::Review => reason.hint(hints::approve(task.key)),
                Some(task) => reason.hint(hints::retry(task.key)),
                None => reason,
            });
        }
    }
    if reasons.is_empty() {
        let all: u64 = counts.iter().map(|(_, n)| n).sum();
        reasons.push(if all == 0 {
            Reason::new("empty", "There are no tasks.").hint(hints::add_task())
        } else {
            Reason::new("finished", "Everything is finished.")
        });
    }
    asking.complete(view, reasons)
}

/// The summary if nothing is ready: every open task is held or blocked.
fn nothing_ready(open: u64, held: u64) -> Reason {
    let count = |n: u64, one: &str, many: &str| {
        if n == 1 { format!("1 task {one}") } else { format!("{n} tasks {many}") }
    };
    let sentence = match (held, open.saturating_sub(held)) {
        (held, 0) => format!("Nothing is ready: {}.", count(held, "is held", "are held")),
        (0, blocked) => {
            format!("Nothing is ready: {}.", count(blocked, "is blocked", "are blocked"))
        }
        (held, blocked) => format!(
            "Nothing is ready: {}, {}.",
            count(held, "is held", "are held"),
            count(blocked, "is blocked", "are blocked")
        ),
    };
    Reason::new("nothing_ready", sentence)
}

fn serial_section(section: &SectionInUse, now: Timestamp) -> Reason {
    let waits = match section.pending {
        1 => "1 pending task waits".to_owned(),
        tasks => format!("{tasks} pending tasks wait"),
    };
    let sentence = format!(
        "Section {} is serial: while {} works in it, for at most another {}, its {waits}.",
        section.name,
        section.holder,
        format_rounded(section.expires_at.since(now)),
    );
    Reason::new("section_held", sentence).hint(hints::make_parallel(quote(&section.name)))
}
