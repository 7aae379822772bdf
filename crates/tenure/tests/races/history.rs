//! What happened, as three witnesses have it: the feed, the processes themselves, and who looked at the lines.

use std::collections::BTreeMap;

use serde_json::Value;

/// One event of the feed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Event {
    pub(crate) seq: i64,
    /// Milliseconds, as every time here.
    pub(crate) at: i64,
    pub(crate) kind: String,
    pub(crate) actor: String,
    pub(crate) task: Option<String>,
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) fence: Option<i64>,
    /// `task:ID` or `section:ID`, of events that speak of a lease.
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

/// What one process did, as it said itself and as its parent saw it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deed {
    pub(crate) worker: String,
    pub(crate) pid: u32,
    pub(crate) verb: &'static str,
    pub(crate) task: Option<String>,
    pub(crate) begun: i64,
    pub(crate) ended: i64,
    /// Just before it was killed. What it had done by then, nobody heard.
    pub(crate) killed: Option<i64>,
    pub(crate) code: Option<i32>,
    /// The fence of a lease that it was given anew.
    pub(crate) granted: Option<i64>,
    /// The fence under which it finished the task, if it was told that this changed something.
    pub(crate) finished: Option<i64>,
}

impl Deed {
    /// It may have done things that it could not, or does not, tell.
    pub(crate) fn is_silent(&self) -> bool {
        let lost_at_once = matches!(self.verb, "claim" | "next") && self.code == Some(8);
        // A server that went away in the middle leaves even the one who asked without an answer.
        let unanswered = self.code == Some(1);
        self.killed.is_some() || self.verb == "run" || lost_at_once || unanswered
    }

    pub(crate) fn covers(&self, at: i64) -> bool {
        self.begun <= at && at <= self.ended
    }
}

/// A place in line, as seen in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) number: i64,
    pub(crate) resource: String,
    pub(crate) holder: String,
    pub(crate) pid: u32,
    pub(crate) refreshed: i64,
}

/// One look at all lines, in one transaction with the number of the latest event.
#[derive(Debug, Clone, Default)]
pub(crate) struct Look {
    /// When the look was over.
    pub(crate) at: i64,
    pub(crate) seq: i64,
    pub(crate) places: Vec<Place>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    pub(crate) feed: Vec<Event>,
    pub(crate) deeds: Vec<Deed>,
    pub(crate) looks: Vec<Look>,
    /// A place that was not refreshed for this long is lost.
    pub(crate) ticket_life: i64,
    /// The serial section of each task that is in one, as `section:ID`.
    pub(crate) sections: BTreeMap<String, String>,
    /// How the tasks ended up.
    pub(crate) statuses: BTreeMap<String, String>,
}
