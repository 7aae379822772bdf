//! Resumes a session: starts its runner again with the original options, from where it was interrupted.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tenure_core::Error;
use tenure_core::hints;
use tenure_core::session::{Session, SessionState};
use tenure_core::{kernel, reference};

use super::start::{self, Serving};
use crate::answer::Answer;
use crate::app::{App, Open};
use crate::commands::jobs::resume::ResumeOptions;
use crate::commands::{sessions, trust};
use crate::identity::IdentityArgs;
use crate::report::{CommandResult, Report};
use crate::text::Text;

pub(in crate::commands) fn resume(
    app: &mut App<'_>,
    open: &Open<'_>,
    session: &Session,
    options: ResumeOptions,
) -> CommandResult<Option<Answer>> {
    let short: String = session.id.chars().take(8).collect();
    let object = open.read(|view| sessions::object(view, open, session))?.1;
    let say = |line: String| {
        let mut text = Text::new();
        text.line(line);
        Answer::new(json!({"session": object}), text)
    };
    if session.state == SessionState::Completed {
        return Ok(Some(say(format!("Session {short} is finished"))));
    }
    if options.retry_failed {
        return Err(Report::usage(
            "--retry-failed applies to jobs only; reopen a failed task with `tasks retry`",
        )
        .hint(hints::list_failed()));
    }
    let (trusted, asked) = trust::require(app, &open.paths)?;
    if asked {
        // The project's settings count from now on.
        let open = app.open()?;
        return resume(app, &open, session, options);
    }
    let runner_options = runner_options(app, open, session)?;
    let changes = session.options.changes_to(&runner_options.session.options);
    if !changes.is_empty() && !options.accept_changes {
        let error = Error::DefinitionChanged { what: format!("session {short}"), changes };
        return Err(Report::from(error).hint(hints::accept_definition(short)));
    }
    start::refuse_locked_out(app, open)?;
    if app.global.dry_run {
        return Ok(Some(say(format!("Would resume session {short} with {}", runner_options.preset))));
    }
    if options.force {
        let (ctx, actor) = (open.context(), app.identity(&IdentityArgs::default())?.holder.id);
        open.write(|tx| kernel::evict_unless_alive(tx, &ctx, &session.resource(), &actor))?;
    }
    let how =
        Serving { echo: options.detached.is_none(), first: options.detached, force: options.force, trusted };
    let mut served = start::serve(app, open, &runner_options, how)?;
    if let Some(fields) = served.as_mut().and_then(|answer| answer.data.as_object_mut()) {
        let now = open.read(|view| reference::session(view, &session.id))?;
        fields.insert("session".into(), open.read(|view| sessions::object(view, open, &now))?.1);
    }
    Ok(served)
}

/// The original options, with the presets as they are configured now.
fn runner_options(
    app: &App<'_>,
    open: &Open<'_>,
    session: &Session,
) -> CommandResult<tenure_runner::daemon::RunnerOptions> {
    let options = &session.options;
    let args = start::Args {
        task: options.task.as_ref().map(ToString::to_string),
        section: options.section.clone(),
        preset: Some(options.preset.clone()),
        ttl: options.ttl_ms.map(Duration::from_millis),
        once: options.once,
        idle_timeout: options.idle_timeout_ms.map(Duration::from_millis),
        ..start::Args::default()
    };
    let mut runner_options = start::options(app, open, &args, session.id.clone())?;
    runner_options.workdir = PathBuf::from(&options.workdir);
    if !runner_options.workdir.is_dir() {
        let message =
            format!("the folder of this session no longer exists: {}", runner_options.workdir.display());
        return Err(Report::new(tenure_core::ErrorCode::General, message));
    }
    runner_options.session.options.workdir.clone_from(&options.workdir);
    runner_options.session.interrupted.clone_from(&session.current);
    Ok(runner_options)
}
