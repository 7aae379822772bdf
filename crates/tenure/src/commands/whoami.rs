//! `tenure whoami`: the identity that a command would act as, and what it holds.

use serde_json::json;
use tenure_core::holder::Liveness;
use tenure_core::lease::ResourceKind;
use tenure_core::store::LeaseFilter;
use tenure_core::wire;

use crate::answer::Answer;
use crate::app::App;
use crate::identity::{IdentityArgs, IdentitySource};
use crate::report::CommandResult;
use crate::text::Text;

/// Show your identity, where it comes from, and what you hold
///
/// Example: tenure whoami
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let identity = app.identity(&args.identity)?;
    let open = match app.find() {
        Ok(project) => Some(app.open_at(project)?),
        Err(_) => None,
    };
    let mut held = Vec::new();
    let mut names = Vec::new();
    if let (Some(open), true) = (&open, identity.is_named()) {
        let filter = LeaseFilter {
            kinds: Some(vec![ResourceKind::Task, ResourceKind::Section]),
            holder: Some(identity.holder.clone()),
            ..LeaseFilter::default()
        };
        (held, names) = open.read(|view| {
            let mut leases = view.leases(&filter)?;
            // The names of terminals are reused, and a new session does not hold what an earlier one with the
            // same name held.
            leases.retain(|lease| lease.liveness(app.env.judge.as_ref()) != Some(Liveness::Dead));
            let names = leases
                .iter()
                .map(|lease| super::lease_view::resource_name(view, &lease.resource))
                .collect::<tenure_core::Result<Vec<_>>>()?;
            Ok((leases, names))
        })?;
    }
    let now = app.env.clock.now();
    let judge = app.env.judge.as_ref();
    let mut text = Text::new();
    match identity.source {
        IdentitySource::Anonymous => {
            text.line("Anonymous: no --agent, no TENURE_AGENT and no terminal.");
            text.line("A claim registers a new agent and prints its id.");
        }
        source => {
            let from = match source {
                IdentitySource::Flag => "--agent",
                IdentitySource::Environment => "TENURE_AGENT",
                _ => "the terminal",
            };
            text.line(format!("{} (from {from})", identity.holder));
        }
    }
    let presented = identity.actor(None);
    if let Some(lease) = &presented.lease {
        text.line(format!("  presents the key of lease {lease}"));
    }
    if let Some(fence) = presented.fence {
        text.line(format!("  presents fence {fence}"));
    }
    for (lease, name) in held.iter().zip(&names) {
        text.line(format!("  holds {name}  {}", super::lease_view::remaining(lease, now, judge)));
    }
    let data = json!({
        "identity": {
            "kind": identity.is_named().then_some(identity.holder.kind.as_str()),
            "id": identity.is_named().then_some(&identity.holder.id),
            "source": identity.source.as_str(),
            "fence": presented.fence,
            "leaseId": presented.lease,
        },
        "leases": held.iter().map(|lease| wire::lease(lease, now, judge)).collect::<Vec<_>>(),
        "total": held.len(),
        "project": open.map(|open| open.paths.root),
    });
    Ok(Answer::new(data, text))
}
