//! JSON: an object with `sections` and `tasks`, in the field names of the command line's own output.

use serde_json::{Value, json};

use crate::section::{Section, SectionMode};
use crate::task::Task;

pub fn document(sections: &[Section], tasks: &[Task]) -> Value {
    let sections: Vec<Value> = sections
        .iter()
        .map(|section| {
            let serial = section.mode == SectionMode::Serial;
            json!({"name": section.name, "serial": serial, "priority": section.priority})
        })
        .collect();
    let tasks: Vec<Value> = tasks.iter().map(task_object).collect();
    json!({"sections": sections, "tasks": tasks})
}

fn task_object(task: &Task) -> Value {
    json!({
        "key": task.key,
        "title": task.title,
        "description": task.description,
        "status": task.status.as_str(),
        "section": task.section.as_ref().map(|section| &section.name),
        "sourceFile": task.source_file,
        "priority": task.priority,
        "dependsOn": task.depends_on,
        "labels": task.labels,
    })
}
