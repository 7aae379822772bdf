//! `tenure locks cleanup`.

use serde_json::json;
use tenure_core::kernel;
use tenure_core::lease::LeaseState;
use tenure_core::wire;
use tenure_runner::Scope;

use crate::answer::Answer;
use crate::app::App;
use crate::clearing;
use crate::commands::lease_view;
use crate::hooks;
use crate::identity::IdentityArgs;
use crate::report::CommandResult;
use crate::text::Text;

/// Close every lock that expired or whose holder is dead, and return its task
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
    let ears = hooks::ears(app, &open);
    let (closed, names, news) = open.write(|tx| {
        let closed = kernel::close_all_lapsed(tx, &ctx, &actor)?;
        let mut news = Vec::new();
        for (lease, _) in &closed {
            news.extend(ears.abandoned(tx, lease)?);
        }
        let names = closed
            .iter()
            .map(|(l, _)| lease_view::resource_name(tx, &l.resource))
            .collect::<tenure_core::Result<Vec<_>>>()?;
        Ok((closed, names, news))
    })?;
    clearing::after(app, &open, Scope::Abandoned, &actor)?;
    hooks::tell(app, &open, &news);
    let now = app.env.clock.now();
    let judge = app.env.judge.as_ref();
    let mut text = Text::new();
    if closed.is_empty() {
        text.line("Nothing to clean up.");
    }
    for ((lease, state), name) in closed.iter().zip(&names) {
        let why = if *state == LeaseState::HolderDead { "its holder is dead" } else { "expired" };
        text.line(format!("{} {name} ({why}), held by {}", app.past("Closed", "Would close"), lease.holder));
    }
    let rows: Vec<_> = closed.iter().map(|(lease, _)| wire::lease(lease, now, judge)).collect();
    Ok(Answer::new(json!({"locks": rows, "total": rows.len()}), text))
}
