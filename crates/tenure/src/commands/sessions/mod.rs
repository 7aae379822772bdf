//! `tenure sessions`: runs of runners, and where they are.

use serde_json::Value;
use tenure_core::session::{Session, SessionState};
use tenure_core::store::View;
use tenure_core::{Result, kernel, wire};

use crate::answer::Answer;
use crate::app::{App, Open};
use crate::report::Outcome;
use crate::text::Style;

mod list;
mod show;

/// Sessions: what runners were at, and which of them can be resumed
///
/// Example: tenure sessions list
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    List(list::Args),
    Show(show::Args),
}

impl Args {
    pub(crate) fn subcommand(&self) -> &'static str {
        match self.verb {
            None | Some(Verb::List(_)) => "list",
            Some(Verb::Show(_)) => "show",
        }
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    match args.verb.unwrap_or(Verb::List(list::Args::default())) {
        Verb::List(args) => list::run(app, args),
        Verb::Show(args) => show::run(app, args),
    }
}

/// An open one is running while somebody holds it, and interrupted otherwise.
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
    Ok((status, wire::session(session, status, &view.done_tasks(&session.id)?)))
}
