//! `tenure tasks renew`.

use std::time::Duration;

use serde_json::json;
use tenure_core::duration::format_rounded;
use tenure_core::kernel::{self, Beat};
use tenure_core::store::Durability;
use tenure_core::wire;

use crate::answer::Answer;
use crate::app::{App, parse_ttl};
use crate::identity::Who;
use crate::report::Outcome;
use crate::text::Text;

/// Renew your lease: it runs from now again
///
/// Example: tenure tasks renew F001 --agent A1234ABCD
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The task
    task: String,
    /// How long it is yours from now (default: as before)
    #[arg(long, value_name = "DUR", value_parser = parse_ttl)]
    ttl: Option<Duration>,
    #[command(flatten)]
    who: Who,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    let open = app.open()?;
    let name = open.resolve(&args.task)?;
    let caller = app.identity(&args.who)?.for_task(&name.id, &name.key, "renew")?;
    let world = open.world();
    let beat = Beat { ttl: args.ttl, ..Beat::default() };
    let lease =
        open.store.write(Durability::Process, |tx| kernel::renew(tx, &world, &caller, &name, beat))?;
    let now = app.env.clock.now();
    let mut text = Text::new();
    text.line(format!("{} lease for {}", app.past("Renewed", "Would renew"), name.key));
    text.line(format!("  Expires in: {}", format_rounded(lease.expires_at.since(now))));
    Ok(Answer::new(json!({"lease": wire::lease(&lease, now, app.env.judge.as_ref())}), text))
}
