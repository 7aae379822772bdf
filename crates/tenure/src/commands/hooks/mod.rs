//! `tenure hooks`: scripts and webhooks that run on events.

use serde_json::Value;
use tenure_core::config::{Hook, HookEvent};
use tenure_runner::hooks::{HookContext, HookEnvironment, Outcome as HookOutcome};

use crate::app::{App, Open};
use crate::hooks::HookProject;
use crate::interrupt::Interrupts;
use crate::report::{CommandResult, Report};
use crate::text::{Style, Text};
use crate::verbs::verbs;

mod deliver;
mod list;
mod run;
mod test;

/// List, test and run hooks
///
/// A hook is a script or a webhook that runs on an event. Hooks are configured under `hooks` in config.yaml; --no-hooks
/// disables them.
///
/// Example: tenure hooks test notify
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

verbs! {
    enum Verb, default List;
    "list" => List(list),
    "test" => Test(test),
    "run" => Run(run),
    #[command(hide = true)]
    "deliver" => Deliver(deliver),
}

fn parse_event(text: &str) -> Result<HookEvent, String> {
    HookEvent::parse(text).ok_or_else(|| match HookEvent::nearest(text) {
        Some(event) => format!("did you mean {event}?"),
        None => format!("the events are {}", HookEvent::list()),
    })
}

fn refuse_if_off(app: &App<'_>) -> CommandResult<()> {
    if app.global.no_hooks {
        return Err(Report::usage("hooks are disabled by --no-hooks or TENURE_NO_HOOKS"));
    }
    Ok(())
}

/// Calls `body` with each hook, in order, and an environment in which Ctrl+C stops it.
fn each<T>(
    app: &App<'_>,
    open: &Open<'_>,
    hooks: &[&Hook],
    context: &HookContext,
    mut body: impl FnMut(&Hook, &HookContext, &HookEnvironment<'_>) -> T,
) -> Vec<T> {
    let interrupts = Interrupts::listen().ok();
    let project = HookProject::of(open);
    let environment = project.environment(app, open, interrupts.as_ref());
    hooks.iter().map(|hook| body(hook, context, &environment)).collect()
}

/// The line for `--dry-run`, from a hook's preview.
fn would_run(shown: &Value) -> String {
    let text = |field: &str| shown[field].as_str().unwrap_or_default().to_owned();
    let what = match shown["type"].as_str() {
        Some("webhook") => format!("{} {}", text("method"), text("url")),
        _ => {
            let args = shown["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let words: Vec<String> = args.map(crate::shell_quote::quote).collect();
            format!("{} {}", text("command"), words.join(" ")).trim_end().to_owned()
        }
    };
    format!("Would run {}: {what}", text("hook"))
}

fn describe(text: &mut Text, outcome: &HookOutcome) {
    let took = tenure_core::duration::format_short(std::time::Duration::from_millis(
        u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX),
    ));
    match outcome.warning() {
        None => {
            text.styled(Style::Good, "Succeeded").and(Style::Plain, format!(": {} ({took})", outcome.hook))
        }
        Some(warning) => text.styled(Style::Bad, "Failed").and(Style::Plain, format!(": {warning}")),
    };
    if let Some(said) = outcome.said.as_ref().filter(|_| outcome.failure().is_none()) {
        text.line(format!("  it said: {said}"));
    }
}
