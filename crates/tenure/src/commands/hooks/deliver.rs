//! `tenure hooks deliver`: the background process that runs a command's `async` hooks.

use tenure_core::ErrorCode;
use tenure_runner::hooks::deliver;

use crate::app::App;
use crate::report::{CommandResult, Report};

/// Run the hooks given on standard input (used internally)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(super) fn run(app: &mut App<'_>, _: Args) -> CommandResult<()> {
    tenure_runner::detach();
    match deliver(std::io::stdin(), &app.env.vars, app.env.clock.as_ref()) {
        Ok(_) => Ok(()),
        Err(error) => Err(Report::new(
            ErrorCode::General,
            format!("standard input is not a hook delivery request: {error}"),
        )),
    }
}
