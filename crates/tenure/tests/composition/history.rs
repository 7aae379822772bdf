//! What is known about a storm, from three sources: the store, the answers of the processes, and the agents' journal.
//!
//! Every time is in milliseconds of the boot-time clock, which is the same for all processes, even for those with a wrong
//! wall clock.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;
use tenure_lock::BootTime;

pub(crate) fn now() -> i64 {
    i64::try_from(BootTime::now().since_boot().as_millis()).unwrap()
}

/// The interval in which an event happened, as seen from outside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Between {
    pub(crate) after: i64,
    pub(crate) by: i64,
}

/// One event of the feed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Event {
    pub(crate) seq: i64,
    pub(crate) committed: Between,
    /// The time that the store recorded. It is the same for all events of a transaction, and otherwise not used.
    pub(crate) recorded: i64,
    pub(crate) kind: String,
    pub(crate) actor: String,
    pub(crate) task: Option<String>,
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) fence: Option<i64>,
    /// `task:ID`, `section:ID` and so on, if the event is about a lease or an attempt.
    pub(crate) resource: Option<String>,
    /// Why a lease ended.
    pub(crate) reason: Option<String>,
    pub(crate) attempt: Option<String>,
}

impl Event {
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind == kind
    }

    /// Events of one transaction have this in common.
    pub(crate) fn transaction(&self) -> (i64, &str) {
        (self.recorded, &self.actor)
    }
}

/// A lease as it was stored when it was seen last.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeaseRow {
    pub(crate) resource: String,
    pub(crate) of_runner: bool,
    pub(crate) holder: String,
    pub(crate) pid: Option<u32>,
    pub(crate) ttl: i64,
    pub(crate) reason: Option<String>,
}

/// An attempt, as the events have it.
#[derive(Debug, Clone, Default)]
pub(crate) struct AttemptRow {
    pub(crate) resource: String,
    pub(crate) fence: i64,
    pub(crate) ended: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct TaskRow {
    pub(crate) status: String,
    pub(crate) section: Option<String>,
    pub(crate) section_name: Option<String>,
    /// One holder at a time works in its section.
    pub(crate) serial: bool,
    pub(crate) depends_on: Vec<String>,
}

/// One call of the program or of an MCP tool: what was asked, what was answered, and what its parent saw.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    pub(crate) actor: String,
    pub(crate) pid: u32,
    pub(crate) verb: &'static str,
    /// The arguments, for people.
    pub(crate) words: String,
    /// The name of the section to which a call for the next task is limited.
    pub(crate) section: Option<String>,
    pub(crate) begun: i64,
    pub(crate) ended: i64,
    /// A signal ended it. What it had done by then is unknown.
    pub(crate) killed: bool,
    /// The exit code; for MCP, the one that the command line would have.
    pub(crate) code: Option<i32>,
    pub(crate) error: Option<String>,
    /// The fence that a refusal names.
    pub(crate) refused_by: Option<i64>,
    /// The task's id, if the answer has one.
    pub(crate) task: Option<String>,
    /// The fence of a lease that it was granted.
    pub(crate) granted: Option<i64>,
    pub(crate) reacquired: bool,
    /// The fence of the lease that it renewed.
    pub(crate) renewed: Option<i64>,
    /// The fence under which it believed it already held the task that it claimed again.
    pub(crate) reacquired_from: Option<i64>,
    /// Its answer says that the task was completed by this call.
    pub(crate) finished: bool,
    /// The fence that it presented. Without one, its name is enough.
    pub(crate) presented: Option<i64>,
    /// What it wrote to standard error, if it was not expected to fail.
    pub(crate) said: String,
}

impl Call {
    /// Takes over what the answer says: `data` or `error` of the JSON object.
    pub(crate) fn read(&mut self, data: &Value, error: &Value) {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        self.error = text(&error["code"]);
        self.refused_by = error["details"]["fence"].as_i64();
        self.task = text(&data["task"]["id"]);
        let fence = data["lease"]["fence"].as_i64();
        match self.verb {
            "claim" | "next" => self.granted = fence,
            "renew" => self.renewed = fence,
            _ => {}
        }
        self.reacquired = data["lease"]["reacquired"] == true;
    }

    /// Whether it may have made changes that it did not report.
    pub(crate) fn may_be_incomplete(&self) -> bool {
        let lost_at_once = matches!(self.verb, "claim" | "next") && self.code == Some(8);
        self.killed || self.verb == "run" || lost_at_once || self.code == Some(1)
    }

    pub(crate) fn overlaps(&self, when: Between) -> bool {
        self.begun <= when.by && when.after <= self.ended
    }
}

/// A ticket, as seen in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) number: i64,
    pub(crate) resource: String,
    pub(crate) pid: u32,
    /// The last refresh was after this.
    pub(crate) refreshed_after: i64,
}

/// All queues, read in one transaction with the number of the latest event.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) at: i64,
    pub(crate) seq: i64,
    pub(crate) tickets: Vec<Ticket>,
}

/// A line that an agent or the command of an item has written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    pub(crate) at: i64,
    pub(crate) attempt: String,
    pub(crate) text: String,
}

impl Line {
    /// `SECONDS ATTEMPT TEXT`, where the seconds are those of `/proc/uptime`.
    pub(crate) fn parse(text: &str) -> Self {
        let mut words = text.splitn(3, ' ');
        let mut word = || words.next().unwrap_or_default().to_owned();
        let (seconds, attempt, text) = (word(), word(), word());
        let at = seconds.replace('.', "").parse::<i64>().unwrap_or_else(|e| panic!("{e}: {seconds:?}")) * 10;
        Self { at, attempt, text }
    }
}

/// A process that was killed or asked to stop.
#[derive(Debug, Clone)]
pub(crate) struct Kill {
    pub(crate) pid: u32,
    /// Just before the signal.
    pub(crate) at: i64,
    /// From this time on it is known to be dead; `None` if it was only asked to stop.
    pub(crate) dead_by: Option<i64>,
    /// The attempt that it belonged to.
    pub(crate) attempt: Option<String>,
    pub(crate) command: String,
}

/// A process that was paused.
#[derive(Debug, Clone)]
pub(crate) struct Pause {
    pub(crate) pid: u32,
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// It runs agents.
    pub(crate) is_runner: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    pub(crate) feed: Vec<Event>,
    pub(crate) leases: BTreeMap<i64, LeaseRow>,
    pub(crate) attempts: BTreeMap<String, AttemptRow>,
    /// The fences of the leases that the store still has at the end.
    pub(crate) kept: BTreeSet<i64>,
    /// `store.retention`.
    pub(crate) retention: i64,
    pub(crate) end: i64,
    pub(crate) tasks: BTreeMap<String, TaskRow>,
    pub(crate) calls: Vec<Call>,
    pub(crate) snapshots: Vec<Snapshot>,
    /// The grant and each renewal of a lease that was seen.
    pub(crate) beats: BTreeMap<i64, Vec<Between>>,
    /// Leases that were closed as those of a dead process, while the process was alive.
    pub(crate) alive: Vec<i64>,
    pub(crate) journal: Vec<Line>,
    /// The lines `NAME begin` and `NAME end` of the commands that ran under the exclusive lock.
    pub(crate) exclusive: Vec<String>,
    pub(crate) kills: Vec<Kill>,
    pub(crate) pauses: Vec<Pause>,
    /// A ticket that was not refreshed for this long has expired.
    pub(crate) ticket_life: i64,
    /// The actors that may change the status of a task that they do not hold.
    pub(crate) overriders: Vec<String>,
}

/// The whole history, one line per entry.
impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.feed {
            writeln!(f, "{event:?}")?;
        }
        for (fence, lease) in &self.leases {
            writeln!(f, "{fence} {lease:?} {:?}", self.beats.get(fence))?;
        }
        for (id, attempt) in &self.attempts {
            writeln!(f, "{id} {attempt:?}")?;
        }
        for (id, task) in &self.tasks {
            writeln!(f, "{id} {task:?}")?;
        }
        for call in &self.calls {
            writeln!(f, "{call:?}")?;
        }
        for snapshot in &self.snapshots {
            writeln!(f, "{snapshot:?}")?;
        }
        for line in &self.journal {
            writeln!(f, "{line:?}")?;
        }
        for Kill { pid, at, dead_by, attempt, command } in &self.kills {
            writeln!(f, "Kill {pid} at {at}, dead by {dead_by:?}, attempt {attempt:?}: {command}")?;
        }
        for Pause { pid, from, to, is_runner } in &self.pauses {
            let what = if *is_runner { " of a runner" } else { "" };
            writeln!(f, "Pause{what} {pid} from {from} to {to}")?;
        }
        Ok(())
    }
}
