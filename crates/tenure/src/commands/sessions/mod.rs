//! `tenure sessions`: the runs of runners and their progress.

use serde_json::{Value, json};
use tenure_core::session::{Session, SessionState};
use tenure_core::store::View;
use tenure_core::{Result, kernel, wire};

use crate::app::Open;
use crate::text::Style;
use crate::verbs::verbs;

mod list;
mod show;

/// List and show sessions: runs of runners, which can be resumed
///
/// Example: tenure sessions list
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    default: list::Args,
}

verbs! {
    enum Verb, default List(list);
    "list" => List(list),
    "show" => Show(show),
}

/// An open session is running while its lease is live, and interrupted otherwise.
fn status(view: &dyn View, open: &Open<'_>, session: &Session) -> Result<&'static str> {
    if session.state != SessionState::Open {
        return Ok(session.state.as_str());
    }
    let lease = view.open_lease(&session.resource())?;
    let live = lease.is_some_and(|lease| kernel::is_live(view, &open.context(), &lease));
    Ok(if live { "running" } else { "interrupted" })
}

fn style(status: &str) -> Style {
    match status {
        "running" | "completed" => Style::Good,
        "interrupted" => Style::Warn,
        _ => Style::Bad,
    }
}

pub(super) fn object(view: &dyn View, open: &Open<'_>, session: &Session) -> Result<(&'static str, Value)> {
    let status = status(view, open, session)?;
    Ok((status, json!(wire::session(session, status, &view.done_tasks(&session.id)?))))
}
