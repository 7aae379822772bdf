//! The arguments of each tool. Their doc comments are the descriptions that the model reads.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use tenure_core::duration;
use tenure_core::rules::AddTask;

/// Seconds that `claim_next` waits by default.
pub(crate) const DEFAULT_WAIT: u32 = 20;
/// The most seconds that one call may wait; clients give up on longer calls.
pub(crate) const LONGEST_WAIT: u32 = 600;

/// One call of a tool that needs no waiting.
#[derive(Debug, Clone)]
pub enum Call {
    GetStatus(GetStatus),
    ListTasks(ListTasks),
    GetTask(GetTask),
    AddTask(AddTask),
    RenewLease(RenewLease),
    ReleaseTask(ReleaseTask),
    FinishTask(FinishTask),
    SendMessage(SendMessage),
    ReadInbox(ReadInbox),
    Explain(Explain),
}

impl Call {
    /// The command that does the same, as in [`tenure_core::supervised::VERBS`].
    pub fn verb(&self) -> &'static str {
        match self {
            Self::GetStatus(_) => "status",
            Self::ListTasks(_) => "tasks list",
            Self::GetTask(_) => "tasks show",
            Self::AddTask(_) => "tasks add",
            Self::RenewLease(_) => "tasks renew",
            Self::ReleaseTask(_) => "tasks release",
            Self::FinishTask(args) if args.outcome == FinishOutcome::Fail => "tasks fail",
            Self::FinishTask(_) => "tasks done",
            Self::SendMessage(_) => "msg send",
            Self::ReadInbox(args) if !args.acknowledge.is_empty() => "msg ack",
            Self::ReadInbox(_) => "msg list",
            Self::Explain(_) => "why",
        }
    }
}

/// A call that claims a task and may wait for it.
#[derive(Debug, Clone)]
pub struct Claim {
    /// None: the next ready task.
    pub task: Option<String>,
    pub section: Option<String>,
    pub ttl: Option<Duration>,
    pub wait: Duration,
}

/// The parsed arguments of a tool.
#[derive(Debug, Clone)]
pub(crate) enum ToolRequest {
    Call(Call),
    Claim(Claim),
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetStatus {}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListTasks {
    /// Only these statuses: pending, in_progress, review, completed, failed, skipped, active (in_progress and review), all; or blocked, ready, lapsed.
    /// Default: everything but completed.
    #[serde(default)]
    pub status: Vec<String>,
    /// Only tasks in this section.
    pub section: Option<String>,
    /// Only tasks with this text in the key, the title or the description.
    pub search: Option<String>,
    /// Only tasks with this label.
    pub label: Option<String>,
    /// Only tasks that can be claimed now.
    #[serde(default)]
    pub ready: bool,
    /// Only tasks that you hold.
    #[serde(default)]
    pub mine: bool,
    /// Maximum number of tasks (default 50, at most 200).
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<u64>,
    /// Number of tasks to skip first.
    #[serde(default)]
    pub offset: u64,
    /// With search or label: also count all that match, which reads every task. Otherwise `total` is null.
    #[serde(default)]
    pub total: bool,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetTask {
    /// The task: its key (T1), its id or a prefix of it, its title or a unique part of that.
    pub task: String,
    /// Also everything that happened to it.
    #[serde(default)]
    pub history: bool,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ClaimNext {
    /// Only from this section.
    pub section: Option<String>,
    /// How long you keep the lease after the connection is lost or silent, such as 30s, 15m or 1h. The server renews it
    /// while you are connected.
    pub ttl: Option<String>,
    /// If nothing is ready, wait at most this long (default 20, at most 600; 0 answers at once).
    #[schemars(range(max = 600))]
    pub wait_seconds: Option<u32>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ClaimTask {
    /// The task: its key (T1), its id or a prefix of it, its title or a unique part of that.
    pub task: String,
    /// How long you keep the lease after the connection is lost or silent, such as 30s, 15m or 1h. The server renews it
    /// while you are connected.
    pub ttl: Option<String>,
    /// If somebody else holds it, wait in the queue for at most this long (default 0, at most 600).
    #[schemars(range(max = 600))]
    pub wait_seconds: Option<u32>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenewLease {
    /// The task that you hold.
    pub task: String,
    /// How long you keep the lease from now on (default: as before), such as 30m.
    pub ttl: Option<String>,
    /// The fence of your claim (default: that of this connection's latest claim of the task).
    pub fence: Option<i64>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReleaseTask {
    /// The task that you hold.
    pub task: String,
    /// Why you stop; it is kept in the task's history. What the next holder must know belongs in send_message.
    pub message: Option<String>,
    /// The fence of your claim (default: that of this connection's latest claim of the task).
    pub fence: Option<i64>,
}

// The variants have no doc comments: with them the schema would be a `oneOf` of `const`, which some clients reject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FinishOutcome {
    Done,
    Fail,
    Review,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FinishTask {
    /// The task that you hold.
    pub task: String,
    /// The fence of your claim, as claim_next or claim_task answered it (`lease.fence`). An agent that a runner has started
    /// may leave it out for its task.
    pub fence: Option<i64>,
    /// done: it is done. fail: it cannot be done; say why in `message`. review: it is done and somebody should look at it.
    pub outcome: FinishOutcome,
    /// Why it failed. Needed for `fail`, and only there.
    pub message: Option<String>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendMessage {
    /// Leave it on this task, for its next holder.
    pub task: Option<String>,
    /// The receiving agent.
    pub to: Option<String>,
    /// The text, at most 256 KiB.
    pub message: String,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadInbox {
    /// Only messages on this task. Default: messages for you and on tasks that you hold.
    pub task: Option<String>,
    /// Numbers of messages that you have dealt with; they are acknowledged first and not shown again.
    #[serde(default)]
    pub acknowledge: Vec<i64>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Explain {
    /// The task (default: the whole project).
    pub task: Option<String>,
}

/// Parses the optional `ttl` of a tool.
pub fn ttl(text: Option<&str>) -> Result<Option<Duration>, String> {
    text.map(|text| duration::parse_ttl(text).map_err(|e| format!("ttl: {e}"))).transpose()
}

fn seconds(asked: Option<u32>, default: u32) -> Result<Duration, String> {
    match asked.unwrap_or(default) {
        seconds if seconds <= LONGEST_WAIT => Ok(Duration::from_secs(seconds.into())),
        _ => Err(format!("waitSeconds: at most {LONGEST_WAIT}; call again to keep waiting")),
    }
}

/// Parses a tool's arguments. `None` if there is no such tool; the error says what is wrong with the arguments.
pub(crate) fn read(tool: &str, arguments: Option<Map<String, Value>>) -> Option<Result<ToolRequest, String>> {
    fn of<T: serde::de::DeserializeOwned>(
        arguments: Option<Map<String, Value>>,
        wrap: impl FnOnce(T) -> Result<ToolRequest, String>,
    ) -> Result<ToolRequest, String> {
        let given = Value::Object(arguments.unwrap_or_default());
        serde_json::from_value(given).map_err(|e| e.to_string()).and_then(wrap)
    }
    fn call<T>(wrap: impl FnOnce(T) -> Call) -> impl FnOnce(T) -> Result<ToolRequest, String> {
        |arguments| Ok(ToolRequest::Call(wrap(arguments)))
    }
    Some(match tool {
        "get_status" => of(arguments, call(Call::GetStatus)),
        "list_tasks" => of(arguments, call(Call::ListTasks)),
        "get_task" => of(arguments, call(Call::GetTask)),
        "add_task" => of(arguments, call(Call::AddTask)),
        "claim_next" => of(arguments, |args: ClaimNext| {
            Ok(ToolRequest::Claim(Claim {
                task: None,
                section: args.section,
                ttl: ttl(args.ttl.as_deref())?,
                wait: seconds(args.wait_seconds, DEFAULT_WAIT)?,
            }))
        }),
        "claim_task" => of(arguments, |args: ClaimTask| {
            Ok(ToolRequest::Claim(Claim {
                task: Some(args.task),
                section: None,
                ttl: ttl(args.ttl.as_deref())?,
                wait: seconds(args.wait_seconds, 0)?,
            }))
        }),
        "renew_lease" => of(arguments, call(Call::RenewLease)),
        "release_task" => of(arguments, call(Call::ReleaseTask)),
        "finish_task" => of(arguments, call(Call::FinishTask)),
        "send_message" => of(arguments, call(Call::SendMessage)),
        "read_inbox" => of(arguments, call(Call::ReadInbox)),
        "explain" => of(arguments, call(Call::Explain)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_value(tool: &str, arguments: &Value) -> Option<Result<ToolRequest, String>> {
        read(tool, arguments.as_object().cloned())
    }

    #[test]
    fn a_claim_waits_a_bounded_time_and_only_where_that_is_the_default() {
        let Some(Ok(ToolRequest::Claim(next))) = read("claim_next", None) else { panic!("claim_next") };
        assert_eq!(next.wait, Duration::from_secs(20));
        let Some(Ok(ToolRequest::Claim(one))) = read_value("claim_task", &json!({"task": "T1"})) else {
            panic!()
        };
        assert_eq!(one.wait, Duration::ZERO);
        assert!(read_value("claim_next", &json!({"waitSeconds": 601})).unwrap().is_err());
        assert!(read_value("claim_next", &json!({"waitSeconds": -1})).unwrap().is_err());
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (tool, arguments, named) in [
            ("claim_task", json!({}), "task"),
            ("claim_task", json!({"task": 3}), "integer"),
            ("claim_task", json!({"task": "T1", "force": true}), "force"),
            ("claim_task", json!({"task": "T1", "ttl": "soon"}), "ttl"),
            ("finish_task", json!({"task": "T1", "fence": 1, "outcome": "perfect"}), "perfect"),
            ("finish_task", json!({"fence": 1, "outcome": "done"}), "task"),
        ] {
            let error = read_value(tool, &arguments).unwrap().unwrap_err();
            assert!(error.contains(named), "{tool}: {error}");
        }
        assert!(read("drop_everything", None).is_none());
    }
}
