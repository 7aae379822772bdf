//! `tenure version`.

use serde_json::json;

use crate::answer::Answer;
use crate::app::App;
use crate::text::Text;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Print the version
///
/// Example: tenure version
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &mut App<'_>, _: Args) -> Answer {
    let mut text = Text::new();
    text.line(format!("tenure {VERSION}"));
    Answer::new(json!({"version": VERSION}), text)
}
