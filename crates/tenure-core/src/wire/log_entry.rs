//! The JSON of an entry of an agent's log.

use schemars::JsonSchema;
use serde::Serialize;

use super::UsageJson;
use crate::clock::Timestamp;

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogEntryJson<'a> {
    /// The task's key
    pub task: &'a str,
    pub at: Option<Timestamp>,
    pub kind: &'a str,
    /// The tool that is called
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<&'a str>,
    pub text: &'a str,
    /// What the attempt has used; only at its end
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageJson>,
}
