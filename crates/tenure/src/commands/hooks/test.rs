//! `tenure hooks test`.

use serde_json::json;
use tenure_core::config::{Hook, HookEvent};
use tenure_core::hints;
use tenure_core::{Error, ErrorCode};
use tenure_runner::hooks::{HookContext, preview, run as run_hook};

use super::{describe, each, parse_event, refuse_if_off, would_run};
use crate::answer::Answer;
use crate::app::{App, Open};
use crate::report::{CommandResult, Report};
use crate::text::Text;

/// Run one hook with sample data now, and show the result
///
/// Waits for an async hook too. Exits 1 if the hook fails.
///
/// Example: tenure hooks test notify --event task.failed
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The hook
    #[arg(value_name = "NAME")]
    name: String,
    /// The event to simulate (default: the hook's event)
    #[arg(long, value_name = "E", value_parser = parse_event)]
    event: Option<HookEvent>,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    refuse_if_off(app)?;
    let open = app.open()?;
    let hook = open.config.hooks.iter().find(|hook| hook.name == args.name);
    let Some(hook) = hook else { return Err(not_usable(&args.name, &open)) };
    let context = HookContext::sample(args.event.unwrap_or(hook.event), app.env.clock.now());
    let mut text = Text::new();
    if app.global.dry_run {
        let shown = each(app, &open, &[hook], &context, preview).into_iter().next();
        let shown =
            shown.transpose().map_err(|failure| Report::new(ErrorCode::HookFailed, failure.to_string()))?;
        text.line(shown.as_ref().map(would_run).unwrap_or_default());
        return Ok(Answer::new(json!({"result": shown}), text));
    }
    let Some(outcome) = each(app, &open, &[hook], &context, run_hook).into_iter().next() else {
        return Err(Report::usage("no hook was run"));
    };
    if let Some(warning) = outcome.warning() {
        let mut report = Report::new(ErrorCode::HookFailed, warning);
        *report.details = json!({"result": outcome.to_json()});
        return Err(report);
    }
    describe(&mut text, &outcome);
    Ok(Answer::new(json!({"result": outcome.to_json()}), text))
}

fn not_usable(name: &str, open: &Open<'_>) -> Report {
    if !open.config.ignored_hooks.iter().any(|hook| hook.name == name) {
        return unknown(name, &open.config.hooks);
    }
    let message = format!("the hook {name:?} is defined by the project, which is not trusted");
    Error::Untrusted { message, root: open.paths.root.clone() }.into()
}

fn unknown(name: &str, hooks: &[Hook]) -> Report {
    let names: Vec<&str> = hooks.iter().map(|hook| hook.name.as_str()).collect();
    let known = if names.is_empty() {
        "none are configured".to_owned()
    } else {
        format!("the hooks are {}", names.join(", "))
    };
    Report::usage(format!("there is no hook {name:?}; {known}")).hint(hints::list_hooks())
}
