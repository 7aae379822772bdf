//! `tenure msg ack`.

use serde_json::json;
use tenure_core::rules::acknowledge;

use crate::answer::Answer;
use crate::app::{App, Open};
use crate::identity::IdentityArgs;
use crate::report::CommandResult;
use crate::text::Text;

/// Acknowledge messages
///
/// Example: tenure msg ack 3 --agent A1234ABCD
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The message's number
    #[arg(required = true)]
    id: Vec<i64>,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let identity = app.identity(&args.identity)?;
    let acknowledged = acknowledge_all(&open, &args.id, &identity.holder.id)?;
    let mut text = Text::new();
    for id in &args.id {
        let done = if acknowledged.contains(id) {
            app.past("Acknowledged", "Would acknowledge")
        } else {
            "Nothing to acknowledge for"
        };
        text.line(format!("{done} #{id}"));
    }
    Ok(Answer::new(json!({"acknowledged": acknowledged, "total": acknowledged.len()}), text))
}

/// Acknowledges the messages in one transaction and returns those that were not acknowledged before.
pub(crate) fn acknowledge_all(open: &Open<'_>, ids: &[i64], by: &str) -> tenure_core::Result<Vec<i64>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    open.write(|tx| {
        let mut done = Vec::new();
        for id in ids {
            if acknowledge(tx, *id, by)? {
                done.push(*id);
            }
        }
        Ok(done)
    })
}
