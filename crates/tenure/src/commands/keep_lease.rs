//! `tenure keep-lease`: the detached process behind `tasks claim --while-pid`.

use std::process::{Command, Stdio};

use tenure_core::Error;
use tenure_core::kernel::{self, Grant};
use tenure_core::store::Viewer;
use tenure_runner::NO_ATTEMPT;

use crate::answer::Answer;
use crate::app::{App, Open};
use crate::execution::Surroundings;
use crate::report::{CommandResult, Report};

/// Renew a lease while its process is alive, then release it (used internally)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The lease
    #[arg(value_name = "LEASE")]
    lease: String,
}

/// Starts a keeper that outlives this process and holds none of the caller's resources: no pipe, folder or terminal.
pub(crate) fn start(app: &App<'_>, open: &Open<'_>, grant: &Grant) -> CommandResult<()> {
    let failed = |e: std::io::Error| Report::from(Error::General(format!("cannot start the keeper: {e}")));
    let mut keeper = Command::new(crate::own_binary().map_err(failed)?);
    keeper.arg("-C").arg(&open.paths.root);
    if let Some(config) = &app.global.config {
        keeper.arg("--config").arg(app.env.cwd.join(config));
    }
    keeper.arg("keep-lease").arg(grant.lease.id.as_str());
    // The keeper must not count as a process of the attempt that it was started in.
    keeper.env_clear().envs(&app.env.vars).env(NO_ATTEMPT.0, NO_ATTEMPT.1).env_remove("TENURE_JSON");
    keeper.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    keeper.spawn().map(drop).map_err(failed)
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    tenure_runner::detach();
    let open = app.open()?;
    let (lease, task) = open.read(|view| {
        let missing = || Error::LockNotFound { reference: args.lease.clone() };
        let lease = view.lease_by_id(&args.lease)?.ok_or_else(missing)?;
        let id = lease.resource.task_id().ok_or_else(missing)?;
        let viewer = Viewer::default();
        let task = view.task(&id, &viewer)?.ok_or_else(missing)?;
        Ok((lease, kernel::name_of(&task)))
    })?;
    let surroundings = Surroundings::without_doorbell(&open)?;
    let interval = open.config.runners.heartbeat_interval;
    let another = || open.source.open_for_beats(lease.ttl);
    let exec = surroundings.execution(&open, &another);
    tenure_runner::keep_while_alive(open.store.as_ref(), exec, &task, &lease, interval)?;
    Ok(None)
}
