//! `tenure hooks deliver`: the helper that outlives the command whose `async` hooks it runs.

use tenure_core::ErrorCode;
use tenure_runner::hooks::deliver;

use crate::app::App;
use crate::report::{Outcome, Report};

/// Run the hooks that standard input names (for tenure itself)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(super) fn run(app: &mut App<'_>, _: Args) -> Outcome<()> {
    tenure_runner::detach();
    match deliver(std::io::stdin(), &app.env.vars, app.env.clock.as_ref()) {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(Report::new(ErrorCode::General, format!("stdin is not a hook delivery request: {error}")))
        }
    }
}
