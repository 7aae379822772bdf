//! `tenure locks release`.

use serde_json::json;
use tenure_core::id::TaskId;
use tenure_core::rules::{find_lock, release_lock};
use tenure_core::wire;
use tenure_runner::Scope;

use crate::answer::Answer;
use crate::app::{App, Open};
use crate::commands::lease_view;
use crate::hooks;
use crate::identity::{Identity, IdentityArgs};
use crate::reap;
use crate::report::CommandResult;
use crate::text::{Style, Text};

/// Release your lock, or one that has expired or whose holder is dead
///
/// Example: tenure locks release F001
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A task, `section:NAME`, or a lease id
    #[arg(value_name = "REF")]
    reference: String,
    /// Also release the lock of another live holder
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let identity = app.identity(&args.identity)?;
    release(app, &open, &identity, &args.reference, args.force)
}

/// Releases the lock, ends what runs under it, and delivers the hooks.
pub(crate) fn release(
    app: &mut App<'_>,
    open: &Open<'_>,
    identity: &Identity,
    reference: &str,
    force: bool,
) -> CommandResult<Answer> {
    let ctx = open.context();
    let hook_filter = hooks::filter(app, open);
    let (released, name, others, hook_contexts) = open.write(|tx| {
        let found = find_lock(tx, reference)?;
        let task = found.resource.task_id();
        let caller = identity.actor(task.as_ref().map(TaskId::as_str));
        let released = release_lock(tx, &ctx, &caller, reference, force)?;
        let others = released.ended.iter().filter(|lease| lease.id != released.lease.id);
        let others = others
            .map(|lease| lease_view::resource_name(tx, &lease.resource))
            .collect::<tenure_core::Result<Vec<_>>>()?;
        let name = lease_view::resource_name(tx, &found.resource)?;
        let mut hook_contexts = Vec::new();
        for lease in released.ended.iter().filter(|_| released.forced) {
            hook_contexts.extend(hook_filter.abandoned(tx, lease)?);
        }
        Ok((released, name, others, hook_contexts))
    })?;
    for lease in &released.ended {
        reap::after(app, open, Scope::Of(&lease.resource), &identity.holder.id)?;
    }
    hooks::deliver(app, open, &hook_contexts);
    let now = app.env.clock.now();
    let judge = app.env.judge.as_ref();
    let mut text = Text::new();
    let word = app.past("Released", "Would release");
    text.line(format!("{word} {name}, held by {}", lease_view::holder(&released.lease)));
    for other in others {
        text.styled(Style::Warn, format!("  also released {other}"));
    }
    let data = json!({
        "lock": wire::lease(&released.lease, now, judge),
        "forced": released.forced,
        "ended": released.ended.iter().map(|l| wire::lease(l, now, judge)).collect::<Vec<_>>(),
    });
    Ok(Answer::new(data, text))
}
