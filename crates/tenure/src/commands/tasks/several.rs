//! Verbs that take several tasks.
//!
//! Each task is changed in its own transaction, in the given order. A refusal does not prevent the other changes; the first
//! refusal determines the error code and the exit code.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::app::{App, Open};
use crate::report::{CommandResult, Report};
use crate::text::Text;

#[derive(Debug, clap::Args)]
pub(super) struct TasksArg {
    /// The task; several are changed one after the other
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<String>,
}

impl TasksArg {
    /// Applies `change` to each task. The answer for one task is that of `change`; the answer for several has a list of what
    /// `change` calls `singular`, under the name `plural`.
    pub(super) fn each<'a>(
        &self,
        app: &mut App<'a>,
        (singular, plural): (&str, &str),
        mut change: impl FnMut(&mut App<'a>, &Open<'a>, &str) -> CommandResult<Answer>,
    ) -> CommandResult<Answer> {
        let open = app.open()?;
        if let [task] = &self.tasks[..] {
            return change(app, &open, task);
        }
        let mut text = Text::new();
        let (mut changed, mut refused): (Vec<Value>, Vec<Report>) = (Vec::new(), Vec::new());
        for task in &self.tasks {
            match change(app, &open, task) {
                Ok(mut answer) => {
                    text.append(answer.text);
                    changed.push(answer.data[singular].take());
                }
                Err(report) => refused.push(report),
            }
        }
        let Some(first) = refused.first() else {
            return Ok(Answer::new(json!({plural: changed, "total": changed.len()}), text));
        };
        app.printer.show(&text);
        Err(Report {
            details: Box::new(details(first, &refused, plural, &changed)),
            ..summary(&refused, first)
        })
    }
}

/// The details of the first refusal, with what was changed and everything that was refused.
fn details(first: &Report, refused: &[Report], plural: &str, changed: &[Value]) -> Value {
    let mut details = first.details.as_ref().clone();
    if !details.is_object() {
        details = json!({});
    }
    details[plural] = json!(changed);
    let one = |report: &Report| json!({"code": report.code.as_str(), "message": report.message, "details": report.details});
    details["refused"] = refused.iter().map(one).collect();
    details
}

fn summary(refused: &[Report], first: &Report) -> Report {
    let mut report = first.clone();
    for other in refused.iter().skip(1) {
        report.context.push(format!("Error: {}", other.message));
        report.context.extend(other.context.iter().cloned());
        for hint in &other.hints {
            if !report.hints.contains(hint) {
                report.hints.push(hint.clone());
            }
        }
    }
    report
}
