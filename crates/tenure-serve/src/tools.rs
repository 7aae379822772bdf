//! The tools: names, what they are for, and the schemas of what goes in and comes out.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde_json::Value;

use crate::call::{
    AddTask, ClaimNext, ClaimTask, Explain, FinishTask, GetStatus, GetTask, ListTasks, ReadInbox,
    ReleaseTask, RenewLease, SendMessage,
};
use crate::schema;

/// How a tool treats the world.
#[derive(Debug, Clone, Copy)]
enum Manner {
    Reads,
    /// Repeating it changes nothing more.
    Settles,
    /// Each call does something new.
    Adds,
    /// It cannot be taken back here.
    Ends,
}

pub(crate) fn all() -> Vec<Tool> {
    vec![
        tool::<GetStatus>(
            "get_status",
            "The project at a glance",
            "Counts of tasks by status, what is ready next, who is at work, and who you are.",
            Manner::Reads,
            schema::status(),
        ),
        tool::<ListTasks>(
            "list_tasks",
            "List tasks",
            "Tasks in working order (default: everything but completed), with their holders. Long descriptions are cut; \
             get_task has them whole.",
            Manner::Reads,
            schema::tasks(),
        ),
        tool::<GetTask>(
            "get_task",
            "Show a task",
            "Everything about a task: description, status, holder and expiry, who waits, messages left on it.",
            Manner::Reads,
            schema::task_shown(),
        ),
        tool::<AddTask>(
            "add_task",
            "Add a task",
            "Add a task to the backlog. It is nobody's until it is claimed.",
            Manner::Adds,
            schema::task_only(),
        ),
        tool::<ClaimNext>(
            "claim_next",
            "Claim the next ready task",
            "Take the next ready task: it is yours until you finish or release it. If nothing is ready it waits a while. \
             Remember lease.fence: finish_task needs it.",
            Manner::Adds,
            schema::grant(),
        ),
        tool::<ClaimTask>(
            "claim_task",
            "Claim a task",
            "Take this task. If somebody else holds it, you are told who and until when; with waitSeconds you stand in \
             line. Claiming what you hold already is fine. Remember lease.fence: finish_task needs it.",
            Manner::Settles,
            schema::grant(),
        ),
        tool::<RenewLease>(
            "renew_lease",
            "Renew your lease",
            "Make a lease last from now again, or for another ttl. Seldom needed: the server renews while you are \
             connected.",
            Manner::Settles,
            schema::lease_only(),
        ),
        tool::<ReleaseTask>(
            "release_task",
            "Give a task back",
            "Give a task back unfinished, for somebody else to take.",
            Manner::Settles,
            schema::finished(),
        ),
        tool::<FinishTask>(
            "finish_task",
            "Finish a task",
            "Your last word on a task that you hold: done, fail (with a message) or review. Needs the fence of your claim, \
             and is refused if you have lost it. Saying the same again is fine.",
            Manner::Ends,
            schema::finished(),
        ),
        tool::<SendMessage>(
            "send_message",
            "Leave a message",
            "Leave a message on a task for its next holder, or for an agent by its id.",
            Manner::Adds,
            schema::message_only(),
        ),
        tool::<ReadInbox>(
            "read_inbox",
            "Read messages",
            "Messages for you and on the tasks that you hold. They stay until you acknowledge them by number.",
            Manner::Settles,
            schema::inbox(),
        ),
        tool::<Explain>(
            "explain",
            "Explain why nothing moves",
            "Why a task, or the whole project, is not moving: holder, queue, dependency, review, exclusive lock.",
            Manner::Reads,
            schema::reasons(),
        ),
    ]
}

fn tool<T: JsonSchema>(
    name: &'static str,
    title: &str,
    about: &'static str,
    manner: Manner,
    output: Value,
) -> Tool {
    let annotations = ToolAnnotations::with_title(title)
        .read_only(matches!(manner, Manner::Reads))
        .idempotent(!matches!(manner, Manner::Adds))
        .destructive(matches!(manner, Manner::Ends))
        .open_world(false);
    Tool::new(name, about, input::<T>())
        .with_title(title)
        .with_raw_output_schema(Arc::new(object(output)))
        .with_annotations(annotations)
}

fn input<T: JsonSchema>() -> JsonObject {
    // Written out in place: some clients do not follow references.
    let settings =
        schemars::generate::SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = object(settings.into_generator().into_root_schema_for::<T>().to_value());
    for noise in ["$schema", "title"] {
        schema.remove(noise);
    }
    schema.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
    schema
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
    fn every_argument_says_what_it_is() {
        for tool in all() {
            for (name, argument) in tool.input_schema["properties"].as_object().unwrap() {
                let told =
                    argument.get("description").is_some() || matches!(name.as_str(), "labels" | "outcome");
                assert!(told, "{} {name}: {argument}", tool.name);
            }
        }
    }
}
