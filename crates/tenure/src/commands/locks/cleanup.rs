//! `tenure locks cleanup`.

use serde_json::json;
use tenure_core::kernel;
use tenure_core::lease::LeaseState;
use tenure_core::wire;
use tenure_runner::Scope;

use crate::answer::Answer;
use crate::app::App;
use crate::commands::lease_view;
use crate::hooks;
use crate::identity::IdentityArgs;
use crate::reap;
use crate::report::CommandResult;
use crate::text::Text;

/// Close every lock that expired or whose holder is dead, and return its task
///
/// Also closes the records of runners whose process is gone.
///
/// Example: tenure locks cleanup --dry-run
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let actor = app.identity(&args.identity)?.holder.id;
    let ctx = open.context();
    let hook_filter = hooks::filter(app, &open);
    let (closed, names, runners, hook_contexts) = open.write(|tx| {
        let closed = kernel::close_all_lapsed(tx, &ctx, &actor)?;
        let runners = kernel::close_dead_runners(tx, &ctx, &actor)?;
        let mut hook_contexts = Vec::new();
        for (lease, _) in &closed {
            hook_contexts.extend(hook_filter.abandoned(tx, lease)?);
        }
        let names = closed
            .iter()
            .map(|(l, _)| lease_view::resource_name(tx, &l.resource))
            .collect::<tenure_core::Result<Vec<_>>>()?;
        Ok((closed, names, runners, hook_contexts))
    })?;
    reap::after(app, &open, Scope::Abandoned, &actor)?;
    hooks::deliver(app, &open, &hook_contexts);
    let now = app.env.clock.now();
    let judge = app.env.judge.as_ref();
    let mut text = Text::new();
    if closed.is_empty() && runners.is_empty() {
        text.line("Nothing to clean up.");
    }
    for ((lease, state), name) in closed.iter().zip(&names) {
        let why = if *state == LeaseState::HolderDead { "its holder is dead" } else { "expired" };
        let (closed, holder) = (app.past("Closed", "Would close"), lease_view::holder_name(lease));
        text.line(format!("{closed} {name} ({why}), held by {holder}"));
    }
    for runner in &runners {
        let (short, pid) = (runner.id.chars().take(8).collect::<String>(), runner.process.process.pid);
        text.line(format!(
            "{} runner {short} (its process {pid} is gone)",
            app.past("Closed", "Would close")
        ));
    }
    let rows: Vec<_> = closed.iter().map(|(lease, _)| wire::lease(lease, now, judge)).collect();
    let runners: Vec<_> = runners.iter().map(|runner| &runner.id).collect();
    Ok(Answer::new(json!({"locks": rows, "total": rows.len(), "closedRunners": runners}), text))
}
