//! Resumes a session: starts a runner with the options of the first start, from the task at which it was interrupted.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tenure_core::Error;
use tenure_core::session::{Session, SessionState};
use tenure_core::{kernel, reference};

use super::start::{self, Serving};
use crate::answer::Answer;
use crate::app::{App, Open};
use crate::commands::jobs::take_up::ResumeOptions;
use crate::commands::sessions;
use crate::identity::Who;
use crate::report::{Outcome, Report};
use crate::text::Text;

pub(in crate::commands) fn resume(
    app: &mut App<'_>,
    open: &Open<'_>,
    session: &Session,
    how: ResumeOptions,
) -> Outcome<Option<Answer>> {
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
    if how.retry_failed {
        return Err(Report::usage(
            "--retry-failed is for jobs; a task that failed is reopened by `tasks retry`",
        )
        .hint("see the failed tasks", "tenure tasks list --status failed"));
    }
    let options = options(app, open, session)?;
    let changes = session.options.changes_to(&options.session.options);
    if !changes.is_empty() && !how.accept_changes {
        let error = Error::DefinitionChanged { what: format!("session {short}"), changes };
        let command = format!("tenure resume {short} --accept-changes");
        return Err(Report::from(error).hint("go on as it is defined now", command));
    }
    start::refuse_locked_out(app, open)?;
    if app.global.dry_run {
        return Ok(Some(say(format!("Would resume session {short} with {}", options.preset))));
    }
    if how.force {
        let (ctx, actor) = (open.context(), app.identity(&Who::default())?.holder.id);
        open.write(|tx| kernel::evict_unless_alive(tx, &ctx, &session.resource(), &actor))?;
    }
    let mode = Serving { echo: how.detached.is_none(), first: how.detached, force: how.force };
    let mut served = start::serve(app, open, &options, mode)?;
    if let Some(fields) = served.as_mut().and_then(|answer| answer.data.as_object_mut()) {
        let now = open.read(|view| reference::session(view, &session.id))?;
        fields.insert("session".into(), open.read(|view| sessions::object(view, open, &now))?.1);
    }
    Ok(served)
}

/// The options of the first start, with the agents as they are now.
fn options(
    app: &App<'_>,
    open: &Open<'_>,
    session: &Session,
) -> Outcome<tenure_runner::daemon::RunnerOptions> {
    let stored = &session.options;
    let args = start::Args {
        task: stored.task.as_ref().map(ToString::to_string),
        section: stored.section.clone(),
        preset: Some(stored.preset.clone()),
        ttl: stored.ttl_ms.map(Duration::from_millis),
        once: stored.once,
        idle_timeout: stored.idle_timeout_ms.map(Duration::from_millis),
        ..start::Args::default()
    };
    let mut options = start::options(app, open, &args, session.id.clone())?;
    options.workdir = PathBuf::from(&stored.workdir);
    if !options.workdir.is_dir() {
        let message = format!("the folder of this session is gone: {}", options.workdir.display());
        return Err(Report::new(tenure_core::ErrorCode::General, message));
    }
    options.session.options.workdir.clone_from(&stored.workdir);
    options.session.interrupted.clone_from(&session.current);
    Ok(options)
}
