//! `tenure trust` without a verb: shows a project's state, asks, and records the answer.

use serde_json::{Value, json};
use tenure_core::config::TrustState;
use tenure_core::hints;
use tenure_core::{Error, ErrorCode};

use super::question::{ask, describe};
use crate::answer::Answer;
use crate::app::App;
use crate::project::{Located, ProjectPaths};
use crate::report::{CommandResult, Report};
use crate::text::{Style, Text};
use crate::trust::{self, Examined};

#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Trust it without asking
    #[arg(long, conflicts_with = "show")]
    yes: bool,
    /// Only show it, with the hash for TENURE_TRUST
    #[arg(long)]
    show: bool,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let paths = project_or_clone(app)?;
    let examined = trust::examine(app.env, &paths)?;
    let mut text = Text::new();
    if args.show {
        text.append(describe(app, &examined));
        text.line(format!("State:     {}", examined.state.as_str()));
        text.line(format!("Hash:      {}", examined.content.hash()));
        return Ok(answer(app, &examined, examined.state, text));
    }
    if let Some(why) = trust::why_no_person(app.env) {
        let mut report =
            Report::new(ErrorCode::PermissionDenied, format!("only a person can trust a project: {why}"));
        *report.details = json!({"path": examined.root});
        return Err(report
            .note("A machine without a person, such as a CI runner, sets TENURE_TRUST=1, or the hash of what it expects.")
            .hint(hints::show_trust()));
    }
    crate::ownership::check(&paths, app.env)?;
    crate::tracked::refuse(app.env, &paths)?;
    if examined.state == TrustState::Trusted {
        text.line(format!("{} is trusted already; nothing changed.", examined.root.display()));
        return Ok(answer(app, &examined, examined.state, text));
    }
    if args.yes || app.global.dry_run {
        text.append(describe(app, &examined));
    } else if !ask(app, &examined)? {
        text.line("Not trusted.");
        return Ok(answer(app, &examined, examined.state, text).exit(ErrorCode::Untrusted.exit_code()));
    }
    if app.global.dry_run {
        text.line(format!("Would trust {}", examined.root.display()));
        return Ok(answer(app, &examined, examined.state, text));
    }
    examined.save(app.env)?;
    text.styled(Style::Good, "Trusted").and(Style::Plain, format!(" {}", examined.root.display()));
    Ok(answer(app, &examined, TrustState::Trusted, text).hint(hints::untrust()))
}

/// A clone that `tenure init` has not run in can be trusted as well: its file may name a store.
pub(in crate::commands) fn project_or_clone(app: &App<'_>) -> CommandResult<ProjectPaths> {
    let start = app.start()?;
    match app.locate(&start) {
        Located::Project(project) | Located::Clone(project) => Ok(project.paths),
        Located::Nothing => Err(Error::NotInitialized { start, clone_at: None }.into()),
    }
}

fn answer(app: &App<'_>, examined: &Examined, state: TrustState, text: Text) -> Answer {
    Answer::new(json!({"trust": object(app, examined, state)}), text)
}

fn object(app: &App<'_>, examined: &Examined, state: TrustState) -> Value {
    let before = examined.record.as_ref().map(|record| &record.content);
    let changes = examined.content.changes_since(before);
    let files = examined.content.files.iter();
    let files: Vec<Value> = files.map(|(path, hash)| json!({"path": path, "sha256": hash})).collect();
    json!({
        "path": examined.root,
        "state": state.as_str(),
        "keys": examined.content.keys.keys().collect::<Vec<_>>(),
        "files": files,
        "hash": examined.content.hash(),
        "changes": changes.iter().filter(|change| change.is_change()).collect::<Vec<_>>(),
        "trustedElsewhere": examined.trusted_elsewhere(app.env),
    })
}
