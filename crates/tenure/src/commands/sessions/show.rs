//! `tenure sessions show`.

use serde_json::json;
use tenure_core::hints;
use tenure_core::reference;

use super::{object, style};
use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;
use crate::text::{Style, Text};

/// Show a session: its finished tasks and its current one
///
/// Example: tenure sessions show 3f2a9c1e
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, or a prefix of the id
    session: String,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let (session, status, object) = open.read(|view| {
        let session = reference::session(view, &args.session)?;
        let (status, object) = object(view, &open, &session)?;
        Ok((session, status, object))
    })?;
    let short: String = session.id.chars().take(8).collect();
    let mut text = Text::new();
    text.styled(Style::Bold, format!("Session {short}")).and(Style::Plain, " ").and(style(status), status);
    text.line(format!("  Preset:  {}", session.options.preset));
    if let Some(section) = &session.options.section {
        text.line(format!("  Section: {section}"));
    }
    text.line(format!("  Runner:  {}", session.runner));
    text.line(format!("  Started: {}", app.local_time().seconds(session.started_at)));
    if let Some(current) = &session.current {
        text.line(format!("  Current: {} (fence {})", current.key, current.fence));
        if let Some(name) = &current.agent_session {
            text.line(format!("  Agent session: {name}"));
        }
    }
    for done in object["done"].as_array().into_iter().flatten() {
        let (key, status) = (done["key"].as_str(), done["status"].as_str());
        text.line(format!("  Finished {}: {}", key.unwrap_or_default(), status.unwrap_or_default()));
    }
    if let Some(error) = &session.error {
        text.styled(Style::Bad, format!("  {error}"));
    }
    let answer = Answer::new(json!({"session": object}), text);
    let resumable = matches!(status, "interrupted" | "failed");
    Ok(if resumable { answer.hint(hints::resume(short)) } else { answer })
}
