//! `tenure tasks check`.

use serde_json::json;
use tenure_core::duration::format_rounded;
use tenure_core::{kernel, wire};

use crate::answer::Answer;
use crate::app::App;
use crate::identity::IdentityArgs;
use crate::report::CommandResult;
use crate::text::Text;

/// Exit 0 if you still hold a task, 8 if not; for scripts and git hooks
///
/// Example: tenure tasks check F001 --agent A1234ABCD && git push
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The task
    task: String,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let name = open.resolve(&args.task)?;
    let caller = app.identity(&args.identity)?.for_task(&name, "check")?;
    let ctx = open.context();
    let lease = open.read(|view| kernel::check(view, &ctx, &caller, &name))?;
    let now = app.env.clock.now();
    let mut text = Text::new();
    text.line(format!("You hold {} for another {}", name.key, format_rounded(lease.expires_at.since(now))));
    let lease = wire::lease(&lease, now, app.env.judge.as_ref());
    Ok(Answer::new(json!(wire::LeaseAnswer { lease }), text))
}
