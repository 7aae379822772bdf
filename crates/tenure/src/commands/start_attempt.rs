//! `tenure start-attempt`: the process that a supervisor starts. It checks the attempt once more and then execs the
//! command.
//!
//! It reads no configuration: the supervisor passes the store in the environment. So a configuration that cannot be read
//! at this moment does not fail the task. Neither does a store that does not answer: it is retried until it answers or
//! the supervisor ends this process.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::Command;
use std::time::Duration;

use tenure_core::ErrorCode;
use tenure_core::config::Config;
use tenure_lock::ProcessInfo;
use tenure_runner::{ExecRefused, exec_if_running};

use crate::answer::Answer;
use crate::app::App;
use crate::project::{ProjectPaths, StoreLocation};
use crate::report::{CommandResult, Report};
use crate::store::Source;

/// The path or the URL of the store, for this command only.
const STORE: &str = "TENURE_ATTEMPT_STORE";
/// The project's id, if the store is on a server.
const PROJECT: &str = "TENURE_ATTEMPT_PROJECT";
/// The pause before a store that does not answer is tried again.
const RETRY: Duration = Duration::from_millis(200);

/// Exec the command of the attempt in TENURE_ATTEMPT, if that is still running (used internally)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Passes the store to a `start-attempt` that `command` runs. Called after the environment was cleared.
pub(crate) fn pass_store(command: &mut Command, paths: &ProjectPaths, config: &Config) {
    match paths.store(config) {
        StoreLocation::File(path) => command.env(STORE, path).env_remove(PROJECT),
        StoreLocation::Server(url) => {
            let project = config.project.id.map(|id| id.to_string()).unwrap_or_default();
            command.env(STORE, url).env(PROJECT, project)
        }
        // A supervisor has opened the store, so it is trusted.
        StoreLocation::Untrusted => command.env_remove(STORE).env_remove(PROJECT),
    };
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    let (Some(mark), Some(store)) = (app.env.var("TENURE_ATTEMPT"), app.env.vars.get(&OsString::from(STORE)))
    else {
        return Err(Report::usage("TENURE_ATTEMPT is not set; this command is for internal use"));
    };
    let Some((program, rest)) = args.command.split_first() else {
        return Err(Report::usage("no command given"));
    };
    let source = Source::of_attempt(store, app.env.var(PROJECT), app.env, app.store_options())?;
    let mut command = Command::new(program);
    let sockets = (!std::io::stdin().is_terminal()).then(|| crate::store::sockets(app.env));
    command.args(rest).env_remove(STORE).env_remove(PROJECT);
    let supervisor = ProcessInfo::own_parent();
    let refused = loop {
        let refused = match source.open() {
            Ok(store) => {
                let judge = store.judge(app.env);
                exec_if_running(store.as_ref(), judge.as_ref(), mark, sockets.as_deref(), &mut command)
            }
            Err(error) => ExecRefused::Store(error),
        };
        // Only the supervisor knows how long the lease lasts.
        match refused {
            ExecRefused::Store(_) if ProcessInfo::own_parent() == supervisor => std::thread::sleep(RETRY),
            refused => break refused,
        }
    };
    let mut report = match &refused {
        ExecRefused::Over => {
            Report::new(ErrorCode::LeaseLost, "the attempt ended before its command started")
        }
        // The supervisor reports the reason, from the attempt's row.
        ExecRefused::Failed(_) => Report::new(ErrorCode::General, ""),
        ExecRefused::Store(error) => Report::new(error.code(), error.to_string()),
    };
    report.exit = Some(refused.exit_code());
    Err(report)
}
