//! `tenure hooks list`.

use serde_json::{Value, json};
use tenure_core::Timestamp;
use tenure_core::config::{Hook, HookAction};
use tenure_core::hints;
use tenure_runner::hooks::LogEntry;

use crate::answer::Answer;
use crate::app::App;
use crate::hooks::HookProject;
use crate::local_time::LocalTime;
use crate::report::CommandResult;
use crate::table::{Table, cut, keep};
use crate::text::{Style, Text};

/// List your hooks and the project's, with the result of each one's last run
///
/// Example: tenure hooks list
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {}

pub(super) fn run(app: &mut App<'_>, _: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let hooks = &open.config.hooks;
    let entries = HookProject::of(&open).log.last_entries();
    let last = |hook: &Hook| entries.iter().find(|entry| entry.hook == hook.name);
    let rows: Vec<Value> = hooks.iter().map(|hook| object(hook, last(hook))).collect();
    let mut text = Text::new();
    if hooks.is_empty() {
        text.line("No hooks.");
    } else {
        let mut table = Table::new([keep("NAME"), keep("EVENT"), keep("TYPE"), cut("WHAT"), cut("LAST")]);
        let time = app.local_time();
        for hook in hooks {
            table.styled_row(vec![
                (Style::Bold, hook.name.clone()),
                (Style::Plain, hook.event.to_string()),
                (Style::Plain, kind(hook)),
                (Style::Plain, what(hook)),
                outcome(last(hook), &time),
            ]);
        }
        text.table(&table, app.printer.render_options());
    }
    let ignored: Vec<&str> = open.config.ignored_hooks.iter().map(|hook| hook.name.as_str()).collect();
    let mut answer = Answer::new(json!({"hooks": rows, "total": hooks.len(), "ignored": ignored}), text);
    if !ignored.is_empty() {
        let line =
            format!("The project is not trusted, so these of its hooks do not run: {}", ignored.join(", "));
        answer.text.styled(Style::Warn, line);
        answer = answer.hint(hints::trust_settings());
    }
    Ok(answer)
}

fn kind(hook: &Hook) -> String {
    format!("{}{}", hook.action.kind(), if hook.run_async { ", async" } else { "" })
}

/// The action as configured, without expanding variables.
fn what(hook: &Hook) -> String {
    match &hook.action {
        HookAction::Script { command, args } => {
            let words: Vec<&str> = std::iter::once(command).chain(args).map(String::as_str).collect();
            words.join(" ")
        }
        HookAction::Webhook { method, url, .. } => format!("{method} {url}"),
        _ => String::new(),
    }
}

fn outcome(last: Option<&LogEntry>, time: &LocalTime) -> (Style, String) {
    match last {
        None => (Style::Dim, "never ran".to_owned()),
        Some(entry) => {
            let style = if entry.error.is_some() { Style::Bad } else { Style::Good };
            let error = entry.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            let at = Timestamp::parse(&entry.at).map_or_else(|| entry.at.clone(), |at| time.seconds(at));
            (style, format!("{at} {}{error}", entry.outcome))
        }
    }
}

/// Without headers and body, which may contain secrets.
fn object(hook: &Hook, last: Option<&LogEntry>) -> Value {
    let mut object = hook.to_json();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("headers");
        fields.remove("body");
        fields.remove("timeout");
        fields.insert("timeoutMs".into(), json!(tenure_core::wire::millis(hook.timeout)));
        let last = last.map(|entry| {
            json!({
                "at": entry.at, "event": entry.event, "task": entry.task, "outcome": entry.outcome, "error": entry.error,
            })
        });
        fields.insert("last".into(), json!(last));
    }
    object
}
