//! Answers and errors as a client gets them: an object for programs, and a text for the model.

use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tenure_core::ErrorCode;
use tenure_core::id::Fence;
use tenure_core::wire::MessageJson;

use crate::request_handler::{Refusal, Reply};
use crate::session::Lost;

/// The answer of `get_status`: what `tenure status` prints, and the caller's agent id.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StatusAnswer<T> {
    #[serde(flatten)]
    pub status: T,
    /// Your agent id
    pub you: Option<String>,
}

/// The answer of `explain`: what `tenure why` prints, with its hints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExplainAnswer<T> {
    #[serde(flatten)]
    pub explanation: T,
    pub hints: Vec<HintJson>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct HintJson {
    pub why: String,
    /// For a shell
    pub command: String,
}

/// The answer of `read_inbox`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InboxAnswer<'a> {
    pub messages: Vec<MessageJson<'a>>,
    pub total: usize,
    pub acknowledged: Vec<i64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorJson<'a> {
    /// A stable name, such as TASK_LOCKED
    code: &'a str,
    message: String,
    /// Holder, fence, expiry and position in the queue, as far as they apply
    details: &'a Value,
    next: Option<&'a str>,
}

/// A lease that the client no longer holds.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LostLeaseJson<'a> {
    #[schemars(extend("enum" = ["LEASE_LOST"]))]
    pub(crate) code: &'a str,
    pub(crate) task: &'a str,
    pub(crate) task_id: &'a str,
    pub(crate) fence: Fence,
    pub(crate) message: &'a str,
}

/// The longest message, in characters. A message may quote an argument of a megabyte.
const LONGEST_MESSAGE: usize = 2000;

pub(crate) fn result(outcome: Result<Reply, Refusal>, mut lost: Vec<Lost>) -> CallToolResult {
    let (mut object, mut text, is_error) = match outcome {
        Ok(reply) => match reply.data {
            Value::Object(fields) => (fields, reply.text.trim_end().to_owned(), false),
            other => (Map::from_iter([("value".to_owned(), other)]), reply.text, false),
        },
        Err(refusal) => {
            // The error already reports this loss.
            if refusal.code == ErrorCode::LeaseLost
                && let Some(task) = refusal.details["taskId"].as_str()
            {
                lost.retain(|loss| !loss.is_of(task));
            }
            let (object, text) = refused(&refusal);
            (object, text, true)
        }
    };
    if !lost.is_empty() {
        let losses: Vec<String> = lost.iter().map(Lost::sentence).collect();
        text = format!("{}\n\n{text}", losses.join("\n"));
        let lost: Vec<_> = lost.iter().map(Lost::object).collect();
        object.insert("lost".to_owned(), json!(lost));
    }
    let content = vec![ContentBlock::text(text)];
    let mut result = if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = Some(Value::Object(object));
    result
}

fn refused(refusal: &Refusal) -> (Map<String, Value>, String) {
    let code = refusal.code.as_str();
    let message = shortened(&refusal.message);
    let next = next_step(refusal.code);
    let mut lines = vec![format!("{code}: {message}")];
    lines.extend(refusal.context.iter().map(|line| shortened(line)));
    lines.extend(next.map(|next| format!("What to do: {next}")));
    let error = ErrorJson { code, message, details: &refusal.details, next };
    (Map::from_iter([("error".to_owned(), json!(error))]), lines.join("\n"))
}

pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The next step, in terms of the tools. It never suggests taking work from another holder, because models follow such
/// hints.
fn next_step(code: ErrorCode) -> Option<&'static str> {
    Some(match code {
        ErrorCode::TaskLocked | ErrorCode::SectionLocked => {
            "take other work with claim_next, or call claim_task with waitSeconds to wait in the queue."
        }
        ErrorCode::LeaseLost => {
            "stop working on it and discard what you would have written. get_task shows its status; claim_next takes \
             other work."
        }
        ErrorCode::NotHolder => "claim_task takes it if it is free; get_task shows who holds it.",
        ErrorCode::NothingReady => "explain shows what blocks the work; add_task adds work.",
        ErrorCode::WaitTimeout => "call again to keep waiting; explain shows what blocks the work.",
        ErrorCode::NotReady => "claim_next takes something that is ready; explain says what it waits for.",
        ErrorCode::TaskNotFound => "list_tasks lists the tasks.",
        ErrorCode::Ambiguous => "name one of the candidates by its key.",
        ErrorCode::InvalidTransition => "get_task shows its status.",
        ErrorCode::SectionNotFound => "get_status and list_tasks show what there is.",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_advice_takes_anything_from_anybody() {
        for code in ErrorCode::ALL {
            let advice = next_step(*code).unwrap_or_default();
            assert!(!advice.contains("force") && !advice.contains("release"), "{advice}");
        }
    }

    #[test]
    fn a_refusal_has_code_message_details_and_what_to_do_for_programs_and_for_people() {
        let refusal = Refusal {
            details: Box::new(json!({"taskId": "x", "expiresAt": "2026-01-15T11:30:00.000Z"})),
            context: vec!["Lock expires at: 2026-01-15T11:30:00Z".into()],
            ..Refusal::new(ErrorCode::TaskLocked, "Task \"A\" is locked by agent bob")
        };
        let result = result(Err(refusal), Vec::new());
        assert_eq!(result.is_error, Some(true));
        let object = result.structured_content.unwrap();
        assert_eq!(object["error"]["code"], "TASK_LOCKED");
        assert_eq!(object["error"]["details"]["taskId"], "x");
        let text = serde_json::to_value(&result.content).unwrap()[0]["text"].as_str().unwrap().to_owned();
        for word in ["TASK_LOCKED", "agent bob", "11:30", "waitSeconds"] {
            assert!(text.contains(word), "{text}");
        }
    }

    #[test]
    fn a_message_that_quotes_a_megabyte_is_cut() {
        let text = refused(&Refusal::invalid("x".repeat(1 << 20))).1;
        assert!(text.len() < 3000);
    }
}
