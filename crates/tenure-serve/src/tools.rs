//! The tools: names, descriptions, and the schemas of their arguments and answers.
//!
//! All schemas are derived: those of arguments from the types that they are parsed into, those of answers from the types
//! that are serialized.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};
use tenure_core::rules::AddTask;
use tenure_core::wire::{
    ExplanationJson, FinishAnswer, GrantAnswer, LeaseAnswer, MessageAnswer, StatusJson, TaskAnswer,
    TaskDetailsAnswer, TasksAnswer,
};

use crate::answer::{ErrorJson, ExplainAnswer, InboxAnswer, LostLeaseJson, StatusAnswer};
use crate::call::{
    ClaimNext, ClaimTask, Explain, FinishTask, GetStatus, GetTask, ListTasks, ReadInbox, ReleaseTask,
    RenewLease, SendMessage,
};

/// The annotations of a tool. No tool is annotated as destructive: unattended clients refuse to call such a tool, and
/// `finish_task` only ends the caller's lease.
#[derive(Debug, Clone, Copy)]
enum ToolKind {
    ReadOnly,
    /// Repeating a call changes nothing more.
    Idempotent,
    /// Each call has a new effect.
    Additive,
}

pub(crate) fn all() -> Vec<Tool> {
    vec![
        tool::<GetStatus, StatusAnswer<StatusJson<'_>>>(
            "get_status",
            "The project at a glance",
            "Counts of tasks by status, what is ready next, who is at work, and who you are.",
            ToolKind::ReadOnly,
        ),
        tool::<ListTasks, TasksAnswer<'_>>(
            "list_tasks",
            "List tasks",
            "Tasks in working order (default: everything but completed), with their holders. Long descriptions are cut; \
             get_task shows them in full.",
            ToolKind::ReadOnly,
        ),
        tool::<GetTask, TaskDetailsAnswer<'_>>(
            "get_task",
            "Show a task",
            "Everything about a task: description, status, holder and expiry, who waits, messages left on it.",
            ToolKind::ReadOnly,
        ),
        tool::<AddTask, TaskAnswer<'_>>(
            "add_task",
            "Add a task",
            "Add a task to the backlog. Nobody holds it until it is claimed.",
            ToolKind::Additive,
        ),
        tool::<ClaimNext, GrantAnswer<'_>>(
            "claim_next",
            "Claim the next ready task",
            "Take the next ready task: it is yours until you finish or release it. If nothing is ready it waits a while. \
             Remember lease.fence: finish_task needs it.",
            ToolKind::Additive,
        ),
        tool::<ClaimTask, GrantAnswer<'_>>(
            "claim_task",
            "Claim a task",
            "Take this task. If somebody else holds it, the error says who and until when; with waitSeconds you wait in \
             the queue. Claiming a task that you already hold is allowed. Remember lease.fence: finish_task needs it.",
            ToolKind::Idempotent,
        ),
        tool::<RenewLease, LeaseAnswer<'_>>(
            "renew_lease",
            "Renew your lease",
            "Restart the lease's ttl from now, or set another ttl. Rarely needed: the server renews while you are \
             connected.",
            ToolKind::Idempotent,
        ),
        tool::<ReleaseTask, FinishAnswer<'_>>(
            "release_task",
            "Give a task back",
            "Release an unfinished task, so that another agent can claim it.",
            ToolKind::Idempotent,
        ),
        tool::<FinishTask, FinishAnswer<'_>>(
            "finish_task",
            "Finish a task",
            "End your work on a task that you hold: done, fail (with a message) or review. Needs the fence of your claim, \
             and is refused if you have lost it. Repeating the same call changes nothing.",
            ToolKind::Idempotent,
        ),
        tool::<SendMessage, MessageAnswer<'_>>(
            "send_message",
            "Leave a message",
            "Leave a message on a task for its next holder, or for an agent by its id.",
            ToolKind::Additive,
        ),
        tool::<ReadInbox, InboxAnswer<'_>>(
            "read_inbox",
            "Read messages",
            "Messages for you and on the tasks that you hold. They stay until you acknowledge them by number.",
            ToolKind::Idempotent,
        ),
        tool::<Explain, ExplainAnswer<ExplanationJson<'_>>>(
            "explain",
            "Explain why nothing moves",
            "Why a task, or the whole project, is not moving: holder, queue, dependency, review, exclusive lock.",
            ToolKind::ReadOnly,
        ),
    ]
}

fn tool<Arguments: JsonSchema, Answer: JsonSchema>(
    name: &'static str,
    title: &str,
    about: &'static str,
    kind: ToolKind,
) -> Tool {
    let annotations = ToolAnnotations::with_title(title)
        .read_only(matches!(kind, ToolKind::ReadOnly))
        .idempotent(!matches!(kind, ToolKind::Additive))
        .destructive(false)
        .open_world(false);
    Tool::new(name, about, arguments_schema::<Arguments>())
        .with_title(title)
        .with_raw_output_schema(Arc::new(answer_schema::<Answer>()))
        .with_annotations(annotations)
}

fn arguments_schema<T: JsonSchema>() -> JsonObject {
    let mut schema = schema::<T>(SchemaSettings::draft2020_12());
    schema.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
    schema
}

/// An answer has either the fields of `T` or an `error`, and may report leases that the client has `lost`.
fn answer_schema<T: JsonSchema>() -> JsonObject {
    let settings = || SchemaSettings::draft2020_12().for_serialize();
    let mut schema = schema::<T>(settings());
    let required = schema.remove("required").unwrap_or_else(|| json!([]));
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.insert("error".into(), Value::Object(self::schema::<ErrorJson<'_>>(settings())));
        properties.insert("lost".into(), Value::Object(self::schema::<Vec<LostLeaseJson<'_>>>(settings())));
    }
    schema.insert("anyOf".into(), json!([{"required": required}, {"required": ["error"]}]));
    schema
}

fn schema<T: JsonSchema>(settings: SchemaSettings) -> JsonObject {
    let settings = settings.with(|settings| {
        // Some clients do not follow references.
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.with_transform(simplify).into_generator().into_root_schema_for::<T>();
    // These are the name and the doc comment of the Rust type.
    schema.remove("title");
    schema.remove("description");
    object(schema.to_value())
}

/// Removes the formats of numbers: some clients know only some of them and reject or report the others.
fn simplify(schema: &mut Schema) {
    schema.remove("format");
    schemars::transform::transform_subschemas(&mut simplify, schema);
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(fields) => fields,
        _ => JsonObject::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_twelve_tools_and_each_one_is_answered() {
        let tools = all();
        assert_eq!(tools.len(), 12);
        for tool in tools {
            assert!(crate::call::read(&tool.name, None).is_some(), "{}", tool.name);
        }
    }

    #[test]
    fn every_schema_is_rooted_at_an_object_and_refers_to_nothing_outside() {
        for tool in all() {
            let (input, output) = (&tool.input_schema, tool.output_schema.as_ref().unwrap());
            assert_eq!(input["type"], "object", "{}", tool.name);
            assert_eq!(input["additionalProperties"], false, "{}", tool.name);
            assert_eq!(output["type"], "object", "{}", tool.name);
            let written = serde_json::to_string(&tool).unwrap();
            assert!(!written.contains("$ref"), "{}: {written}", tool.name);
        }
    }

    #[test]
    fn schemas_use_nothing_that_some_clients_reject() {
        for tool in all() {
            let written = serde_json::to_string(&tool).unwrap();
            for rejected in ["\"format\":", "\"const\":", "\"oneOf\":"] {
                assert!(!written.contains(rejected), "{} has {rejected}: {written}", tool.name);
            }
            // No field may have a schema that is just `true`.
            let output = serde_json::to_string(&tool.output_schema).unwrap();
            assert!(!output.contains(":true"), "{}: {output}", tool.name);
        }
        let finish = all().into_iter().find(|tool| tool.name == "finish_task").unwrap();
        assert_eq!(finish.input_schema["properties"]["outcome"]["enum"], json!(["done", "fail", "review"]));
    }

    #[test]
    fn no_tool_is_annotated_as_destructive() {
        for tool in all() {
            let annotations = tool.annotations.unwrap();
            assert_eq!(annotations.destructive_hint, Some(false), "{}", tool.name);
        }
    }

    #[test]
    fn an_answer_has_all_its_fields_or_an_error() {
        let claim = all().into_iter().find(|tool| tool.name == "claim_next").unwrap();
        let output = claim.output_schema.unwrap();
        assert_eq!(
            output["anyOf"],
            json!([
                {"required": ["task", "lease", "takenOver", "messages", "moreMessages", "lastRemark"]},
                {"required": ["error"]}
            ])
        );
        for field in ["task", "lease", "takenOver", "messages", "moreMessages", "lastRemark", "error", "lost"]
        {
            assert!(output["properties"].get(field).is_some(), "{field}");
        }
        let lease = &output["properties"]["lease"];
        assert_eq!(lease["properties"]["fence"]["type"], "integer");
        let required = lease["required"].as_array().unwrap();
        assert!(
            required.contains(&json!("reacquired")) && !required.contains(&json!("endReason")),
            "{lease}"
        );
    }

    #[test]
    fn every_argument_says_what_it_is() {
        for tool in all() {
            for (name, argument) in tool.input_schema["properties"].as_object().unwrap() {
                let described = argument.get("description").is_some() || name == "labels";
                assert!(described, "{} {name}: {argument}", tool.name);
            }
        }
    }
}
