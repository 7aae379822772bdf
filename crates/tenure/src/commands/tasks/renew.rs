//! `tenure tasks renew`.

use std::time::Duration;

use serde_json::json;
use tenure_core::duration::format_rounded;
use tenure_core::error::TaskName;
use tenure_core::kernel::{self, Beat};
use tenure_core::lease::Lease;
use tenure_core::store::Durability;
use tenure_core::wire;

use super::several::TasksArg;
use crate::answer::Answer;
use crate::app::{App, Open, parse_ttl};
use crate::identity::IdentityArgs;
use crate::report::CommandResult;
use crate::text::Text;

/// Renew your lease, starting now
///
/// Example: tenure tasks renew F001 --agent A1234ABCD
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    tasks: TasksArg,
    /// How long the lease lasts from now (default: as before)
    #[arg(long, value_name = "DUR", value_parser = parse_ttl)]
    ttl: Option<Duration>,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    args.tasks.each(app, ("lease", "leases"), |app, open, task| {
        let name = open.resolve(task)?;
        let lease = renew(app, open, &name, &args.identity, args.ttl)?;
        Ok(answer(app, &name, &lease))
    })
}

pub(crate) fn renew(
    app: &App<'_>,
    open: &Open<'_>,
    name: &TaskName,
    identity_args: &IdentityArgs,
    ttl: Option<Duration>,
) -> CommandResult<Lease> {
    let caller = app.identity(identity_args)?.for_task(name, "renew")?;
    let ctx = open.context();
    let beat = Beat { ttl, ..Beat::default() };
    let renewed = open.store.write(Durability::Process, |tx| kernel::renew(tx, &ctx, &caller, name, beat));
    Ok(kernel::recording_rejection(&*open.store, renewed)?)
}

pub(crate) fn answer(app: &App<'_>, name: &TaskName, lease: &Lease) -> Answer {
    let now = app.env.clock.now();
    let mut text = Text::new();
    text.line(format!("{} lease for {}", app.past("Renewed", "Would renew"), name.key));
    text.line(format!("  Expires in: {}", format_rounded(lease.expires_at.since(now))));
    let lease = wire::lease(lease, now, app.env.judge.as_ref());
    Answer::new(json!(wire::LeaseAnswer { lease }), text)
}
