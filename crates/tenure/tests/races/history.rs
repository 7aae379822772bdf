//! A history as three sources have it: the feed, the processes' own reports, and observations of the queues.

use std::collections::BTreeMap;

use serde_json::Value;

/// One event of the feed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Event {
    pub(crate) seq: i64,
    /// In milliseconds, like every time in this file.
    pub(crate) at: i64,
    pub(crate) kind: String,
    pub(crate) actor: String,
    pub(crate) task: Option<String>,
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) fence: Option<i64>,
    /// `task:ID` or `section:ID`, if the event is about a lease.
    pub(crate) resource: Option<String>,
}

impl Event {
    pub(crate) fn read(json: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            seq: json["seq"].as_i64().unwrap(),
            at: tenure_core::Timestamp::parse(json["at"].as_str().unwrap()).unwrap().as_millis(),
            kind: text(&json["kind"]).unwrap(),
            actor: text(&json["actor"]).unwrap(),
            task: text(&json["taskId"]),
            from: text(&json["from"]),
            to: text(&json["to"]),
            fence: json["fence"].as_i64(),
            resource: text(&json["detail"]["resource"]),
        }
    }
}

/// One call of the program: what the process reported, and what its parent saw.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    pub(crate) worker: String,
    pub(crate) pid: u32,
    pub(crate) verb: &'static str,
    pub(crate) task: Option<String>,
    pub(crate) begun: i64,
    pub(crate) ended: i64,
    /// The time just before it was killed. It is unknown what it had done by then.
    pub(crate) killed: Option<i64>,
    pub(crate) code: Option<i32>,
    /// The fence of a new lease that it was granted.
    pub(crate) granted: Option<i64>,
    /// The fence under which it finished the task, if its answer says that this changed something.
    pub(crate) finished: Option<i64>,
}

impl Call {
    /// Whether it may have made changes that it did not report.
    pub(crate) fn may_be_incomplete(&self) -> bool {
        let lost_at_once = matches!(self.verb, "claim" | "next") && self.code == Some(8);
        // If the server goes away in the middle of a request, the caller gets no answer.
        let unanswered = self.code == Some(1);
        self.killed.is_some() || self.verb == "run" || lost_at_once || unanswered
    }

    pub(crate) fn covers(&self, at: i64) -> bool {
        self.begun <= at && at <= self.ended
    }
}

/// A ticket, as seen in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) number: i64,
    pub(crate) resource: String,
    pub(crate) holder: String,
    pub(crate) pid: u32,
    pub(crate) refreshed: i64,
}

/// All queues, read in one transaction with the number of the latest event.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    /// When the read had finished.
    pub(crate) at: i64,
    pub(crate) seq: i64,
    pub(crate) tickets: Vec<Ticket>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    pub(crate) feed: Vec<Event>,
    pub(crate) calls: Vec<Call>,
    pub(crate) snapshots: Vec<Snapshot>,
    /// A ticket that was not refreshed for this long has expired.
    pub(crate) ticket_life: i64,
    /// The serial section of each task that is in one, as `section:ID`.
    pub(crate) sections: BTreeMap<String, String>,
    /// The tasks' final statuses.
    pub(crate) statuses: BTreeMap<String, String>,
}
