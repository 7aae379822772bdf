//! `tenure hooks`: what runs when something happens. One file per verb.

use serde_json::Value;
use tenure_core::config::{Hook, HookEvent};
use tenure_runner::hooks::{Happening, Outcome as HookOutcome, Setting};

use crate::answer::Answer;
use crate::app::{App, Open};
use crate::hooks::Around;
use crate::interrupt::Interrupts;
use crate::report::{Outcome, Report};
use crate::text::{Style, Text};

mod deliver;
mod list;
mod run;
mod test;

/// Hooks: list, try, run
///
/// A hook is a script to run or a webhook to call when something happens. They are configured under `hooks` in
/// config.yaml; --no-hooks leaves them out.
///
/// Example: tenure hooks test notify
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    List(list::Args),
    Test(test::Args),
    Run(run::Args),
    #[command(hide = true)]
    Deliver(deliver::Args),
}

impl Args {
    pub(crate) fn subcommand(&self) -> &'static str {
        match self.verb {
            None | Some(Verb::List(_)) => "list",
            Some(Verb::Test(_)) => "test",
            Some(Verb::Run(_)) => "run",
            Some(Verb::Deliver(_)) => "deliver",
        }
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Option<Answer>> {
    match args.verb.unwrap_or(Verb::List(list::Args {})) {
        Verb::List(args) => list::run(app, args).map(Some),
        Verb::Test(args) => test::run(app, args).map(Some),
        Verb::Run(args) => run::run(app, args).map(Some),
        Verb::Deliver(args) => deliver::run(app, args).map(|()| None),
    }
}

fn parse_event(text: &str) -> Result<HookEvent, String> {
    HookEvent::parse(text).ok_or_else(|| match HookEvent::nearest(text) {
        Some(event) => format!("did you mean {event}?"),
        None => format!("there are {}", HookEvent::list()),
    })
}

fn refuse_if_off(app: &App<'_>) -> Outcome<()> {
    if app.global.no_hooks {
        return Err(Report::usage("hooks are switched off by --no-hooks or TENURE_NO_HOOKS"));
    }
    Ok(())
}

/// Does something with each hook, in order, until Ctrl+C.
fn each<T>(
    app: &App<'_>,
    open: &Open<'_>,
    hooks: &[&Hook],
    happening: &Happening,
    mut body: impl FnMut(&Hook, &Happening, &Setting<'_>) -> T,
) -> Vec<T> {
    let interrupts = Interrupts::listen().ok();
    let around = Around::of(open);
    let setting = around.setting(app, open, interrupts.as_ref());
    hooks.iter().map(|hook| body(hook, happening, &setting)).collect()
}

/// What would run, from its preview.
fn would_run(shown: &Value) -> String {
    let text = |field: &str| shown[field].as_str().unwrap_or_default().to_owned();
    let what = match shown["type"].as_str() {
        Some("webhook") => format!("{} {}", text("method"), text("url")),
        _ => {
            let args = shown["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let words: Vec<String> = args.map(crate::shell::quote).collect();
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
}
