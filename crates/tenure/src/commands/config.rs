//! `tenure config`: what is set, where it came from, and changing it.

use crate::answer::Answer;
use crate::app::App;
use crate::report::Outcome;

/// Settings
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn subcommand(&self) -> &'static str {
        "show"
    }
}

pub(crate) fn run(_app: &mut App<'_>, _args: Args) -> Outcome<Answer> {
    Ok(Answer::new(serde_json::Value::Null, crate::text::Text::new()))
}
