//! The question whether a project is trusted, as a person sees it.

use tenure_core::config::{TrustChange, TrustState, TrustSummary};
use tenure_core::text::escape_line;

use crate::app::App;
use crate::project::ProjectPaths;
use crate::report::{CommandResult, Report};
use crate::text::{Style, Text};
use crate::tracked;
use crate::trust::{self, Examined};

/// Describes what would be run, reached and used, as a difference from what was trusted before.
pub(super) fn describe(app: &App<'_>, examined: &Examined) -> Text {
    let mut text = Text::new();
    let before = examined.record.as_ref().map(|record| &record.content);
    let root = examined.root.display();
    let changes = examined.content.changes_since(before);
    if changes.is_empty() {
        text.line(format!("No setting of {root} runs a command or connects to anything."));
    } else if before.is_some() && examined.state != TrustState::Trusted {
        text.line(format!("{root} has changed since you trusted it:"));
    } else {
        text.line(format!("Settings of {root} that run commands or connect to something:"));
    }
    for change in &changes {
        describe_change(&mut text, change, before.is_some());
    }
    let summary = TrustSummary::of(&examined.document);
    for (heading, items) in
        [("Runs:", &summary.commands), ("Reaches:", &summary.hosts), ("Variables:", &summary.variables)]
    {
        for (index, item) in items.iter().enumerate() {
            let heading = if index == 0 { heading } else { "" };
            text.line(format!("{heading:<10} {item}"));
        }
    }
    for path in examined.trusted_elsewhere(app.env) {
        text.line(format!("You have trusted the same settings in {path}"));
    }
    text.line(
        "Agents that run here also follow the repository's own settings, such as .claude/settings.json.",
    );
    text
}

/// A hash means nothing to a person, so only the name of a file is shown.
fn describe_change(text: &mut Text, change: &TrustChange, is_difference: bool) {
    let is_file = change.is_file();
    let line = |value: &str| {
        let value = escape_line(value);
        if is_file { change.name.clone() } else { format!("{}: {value}", change.name) }
    };
    match (&change.before, &change.after) {
        (Some(before), Some(after)) if before == after => {
            text.styled(Style::Dim, format!("  {}", line(after)));
        }
        (Some(_), Some(_)) if is_file => {
            text.styled(Style::Warn, format!("~ {} (its content has changed)", change.name));
        }
        (before, after) => {
            if let Some(before) = before {
                text.styled(Style::Bad, format!("- {}", line(before)));
            }
            if let Some(after) = after {
                let (style, mark) = if is_difference { (Style::Good, "+") } else { (Style::Plain, " ") };
                text.styled(style, format!("{mark} {}", line(after)));
            }
        }
    }
}

/// Shows the settings and reads the answer from the terminal; only `y` and `yes` mean yes.
pub(super) fn ask(app: &mut App<'_>, examined: &Examined) -> CommandResult<bool> {
    let mut text = describe(app, examined);
    text.line("Trust it? [y/N]");
    app.printer.ask(&text);
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|e| {
        Report::new(tenure_core::ErrorCode::General, format!("cannot read standard input: {e}"))
    })?;
    Ok(["y", "yes"].contains(&line.trim().to_ascii_lowercase().as_str()))
}

/// Refuses to start an agent in a project that is not trusted. A person at a terminal is asked first; the
/// flag is true if a person was asked and agreed.
pub(in crate::commands) fn require(
    app: &mut App<'_>,
    paths: &ProjectPaths,
) -> CommandResult<(Examined, bool)> {
    crate::ownership::check(paths, app.env)?;
    tracked::refuse(app.env, paths)?;
    let examined = trust::examine(app.env, paths)?;
    if examined.allows_agents(app.env) {
        return Ok((examined, false));
    }
    let can_ask = !app.global.dry_run && trust::why_no_person(app.env).is_none();
    if !can_ask || !ask(app, &examined)? {
        return Err(examined.refusal());
    }
    examined.save(app.env)?;
    Ok((examined, true))
}

/// After a change of the project's file by its user: records the new content if the old one was trusted. An agent never
/// renews trust, and content that was not trusted before stays untrusted, because another process may have written it.
/// Returns whether the new content is trusted.
pub(in crate::commands) fn restate(
    app: &mut App<'_>,
    paths: &ProjectPaths,
    before: TrustState,
    document: tenure_core::config::Document,
) -> bool {
    let after = trust::examine_document(app.env, paths, document);
    let renews = before == TrustState::Trusted && trust::agent_variable(app.env).is_none();
    if after.state == TrustState::Trusted || !renews {
        return after.allows_agents(app.env);
    }
    match after.save(app.env) {
        Ok(()) => true,
        Err(report) => {
            app.printer.warn(&format!("the change is not trusted: {}", report.message));
            false
        }
    }
}
