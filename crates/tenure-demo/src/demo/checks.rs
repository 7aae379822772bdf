//! Conditions that hold for every event feed, whichever processes were killed while it was written.

use std::collections::BTreeMap;

use tenure_core::event::{Event, EventKind};
use tenure_core::task::TaskStatus;

use crate::Check;

pub(super) fn check_feed(feed: &[Event]) -> Vec<Check> {
    let tasks = feed.iter().filter(|e| e.kind == EventKind::TaskCreated).count();
    vec![
        Check::new(format!("all {tasks} tasks are completed, each exactly once"), not_completed_once(feed)),
        Check::new("no two attempts of one task overlap", overlap(feed, "task:", ATTEMPTS)),
        Check::new("a serial section has one holder at a time", overlap(feed, "section:", LEASES)),
        Check::new("fences only rise", falling_fence(feed)),
    ]
}

/// The kinds of event that begin and end an interval.
type Bounds = (EventKind, EventKind);
const ATTEMPTS: Bounds = (EventKind::AttemptStarted, EventKind::AttemptEnded);
const LEASES: Bounds = (EventKind::LeaseAcquired, EventKind::LeaseEnded);

fn resource(event: &Event) -> &str {
    event.detail["resource"].as_str().unwrap_or_default()
}

fn not_completed_once(feed: &[Event]) -> Option<String> {
    feed.iter().filter(|e| e.kind == EventKind::TaskCreated).find_map(|created| {
        let times =
            feed.iter().filter(|e| e.task == created.task && e.to == Some(TaskStatus::Completed)).count();
        let key = created.detail["key"].as_str().unwrap_or("a task");
        (times != 1).then(|| format!("{key} was completed {times} times"))
    })
}

/// Finds a resource with this prefix whose intervals overlap or do not end.
fn overlap(feed: &[Event], prefix: &str, (begins, ends): Bounds) -> Option<String> {
    let mut open: BTreeMap<&str, i64> = BTreeMap::new();
    for event in feed.iter().filter(|e| resource(e).starts_with(prefix)) {
        if event.kind == begins {
            if let Some(before) = open.insert(resource(event), event.seq) {
                return Some(format!("events {before} and {} began it twice", event.seq));
            }
        } else if event.kind == ends {
            open.remove(resource(event));
        }
    }
    open.into_values().next().map(|seq| format!("the interval that event {seq} began has no end"))
}

fn falling_fence(feed: &[Event]) -> Option<String> {
    let mut last: BTreeMap<&str, _> = BTreeMap::new();
    for event in feed.iter().filter(|e| e.kind == EventKind::LeaseAcquired) {
        if let Some(before) = last.insert(resource(event), event.fence)
            && before >= event.fence
        {
            return Some(format!("event {} has no higher fence than the one before", event.seq));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenure_core::Timestamp;
    use tenure_core::id::{Fence, TaskId};

    use super::*;

    fn event(seq: i64, kind: EventKind, resource: &str, fence: i64) -> Event {
        Event {
            seq,
            at: Timestamp::from_millis(seq),
            kind,
            actor: "a".to_owned(),
            task: Some(TaskId::new("t")),
            from: None,
            to: (kind == EventKind::TaskStatus).then_some(TaskStatus::Completed),
            fence: Some(Fence::new(fence)),
            detail: json!({"resource": resource, "key": "T1"}),
        }
    }

    fn outcomes(kinds: &[(EventKind, &str, i64)]) -> Vec<bool> {
        let numbered = (1..).zip(kinds);
        let feed: Vec<Event> =
            numbered.map(|(seq, (kind, of, fence))| event(seq, *kind, of, *fence)).collect();
        check_feed(&feed).iter().map(Check::holds).collect()
    }

    #[test]
    fn each_check_detects_its_kind_of_fault() {
        use EventKind::{AttemptEnded, AttemptStarted, LeaseAcquired, LeaseEnded, TaskCreated, TaskStatus};
        let good = [
            (TaskCreated, "", 0),
            (LeaseAcquired, "section:s", 1),
            (AttemptStarted, "task:t", 2),
            (AttemptEnded, "task:t", 2),
            (TaskStatus, "", 2),
            (LeaseEnded, "section:s", 1),
            (LeaseAcquired, "section:s", 3),
            (LeaseEnded, "section:s", 3),
        ];
        assert_eq!(outcomes(&good), [true, true, true, true]);
        let with = |index: usize, what: (EventKind, &'static str, i64)| {
            let mut feed = good.to_vec();
            feed.insert(index, what);
            outcomes(&feed)
        };
        assert_eq!(with(5, (TaskStatus, "", 2)), [false, true, true, true], "completed twice");
        assert_eq!(with(3, (AttemptStarted, "task:t", 2)), [true, false, true, true], "two at once");
        assert_eq!(with(2, (LeaseAcquired, "section:s", 2)), [true, true, false, true], "two holders");
        assert_eq!(
            with(8, (LeaseAcquired, "section:s", 2)),
            [true, true, false, false],
            "an old fence, and open"
        );
    }
}
