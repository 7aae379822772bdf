//! `tenure tasks next`.

use std::time::Duration;

use tenure_core::error::TaskName;
use tenure_core::hints;
use tenure_core::kernel::{self, Terms};
use tenure_core::{Error, reference};

use super::{claim, grant, view};
use crate::answer::Answer;
use crate::app::{App, parse_duration, parse_ttl};
use crate::hooks;
use crate::identity::IdentityArgs;
use crate::report::{CommandResult, Report};
use crate::supervised;
use crate::text::{Style, Text};
use crate::waiting::{self, Claim, ClaimRequest, nothing_for_newcomer};

/// Show the next ready task, or claim it in the same step
///
/// Example: tenure tasks next --claim --wait 10m
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Claim it
    #[arg(long)]
    claim: bool,
    /// Only a task of this section
    #[arg(long, value_name = "S")]
    section: Option<String>,
    /// How long the lease lasts without renewal (default: locking.leaseTtl)
    #[arg(long, value_name = "DUR", requires = "claim", value_parser = parse_ttl)]
    ttl: Option<Duration>,
    /// If nothing is ready, wait at most this long (default: locking.waitTimeout)
    #[arg(long, value_name = "DUR", num_args = 0..=1, value_parser = parse_duration)]
    wait: Option<Option<Duration>>,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    if args.wait.is_some() && !args.claim {
        return Err(Report::usage("--wait needs --claim").hint(hints::wait_for_next()));
    }
    if args.claim {
        supervised::check(app.env, "tasks next --claim")?;
    }
    let open = app.open()?;
    let mut identity = app.identity(&args.identity)?;
    let section = match &args.section {
        Some(name) => Some(open.read(|view| reference::section(view, name))?.id),
        None => None,
    };
    if !args.claim {
        let task = open.read(|view| {
            let (ctx, viewer) = (open.context(), open.viewer(view, &identity)?);
            let Some(id) = kernel::next_for_newcomer(view, &ctx, &viewer, section.as_ref())? else {
                return Err(nothing_for_newcomer(view, &ctx, section.as_ref(), &identity.holder)?);
            };
            view.task(&id, &viewer)?.ok_or(Error::TaskNotFound { reference: id.to_string() })
        })?;
        let mut text = Text::new();
        text.styled(Style::Bold, task.key.clone()).and(Style::Plain, format!("  {}", task.title));
        let hint = hints::claim(&task.key);
        return Ok(Answer::new(view::data(app, &task), text).key(&task.key).hint(hint));
    }
    let patience = app.asked_patience(&open, args.wait);
    let joined = claim::join_if_anonymous(app, &mut identity);
    let caller = |task: Option<&TaskName>| identity.claimant(task);
    let terms = Terms::new(args.ttl.unwrap_or(open.config.locking.lease_ttl));
    let request = ClaimRequest::Next(section);
    let grant = waiting::acquire(app, &open, &Claim::new(&request, &caller), terms, patience)?;
    let hook_contexts = hooks::filter(app, &open).granted(app.env.clock.now(), &grant);
    hooks::deliver(app, &open, &hook_contexts);
    Ok(grant::answer(app, &grant, joined, args.ttl))
}
