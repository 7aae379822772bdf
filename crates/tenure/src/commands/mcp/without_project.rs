//! `tenure mcp` in a folder without a project. A client with the server in its user-wide configuration starts it in
//! every folder. So it serves there too, and answers each call with how to create a project.

use std::time::Duration;

use tenure_core::error::TaskName;
use tenure_core::holder::Incarnation;
use tenure_core::lease::Lease;
use tenure_core::{Context, Error, Policy};
use tenure_runner::Execution;
use tenure_serve::{Call, Claim, Page, Refusal, Reply, RequestHandler, Session, Step, Transport};

use super::handler::refusal;
use crate::app::App;
use crate::report::{CommandResult, Report};

/// Serves until the client disconnects. `missing` is the error that there is no project.
pub(super) fn serve(app: &App<'_>, missing: Report) -> CommandResult<()> {
    let config = app.config(None)?;
    // No lease is ever held, so the store is never opened and the policy never used.
    let policy = Policy {
        ticket_life: config.locking.poll_interval,
        max_attempts: 1,
        max_rejections: 1,
        review: false,
    };
    let (env, me) = (app.env, Incarnation::current());
    let exec = Execution {
        open_store: &|| Err(Error::General("there is no project".to_owned())),
        ctx: Context::new(env.judge.as_ref(), env.ids.as_ref(), policy),
        clock: env.clock.as_ref(),
        me: &me,
        doorbell: None,
        database: None,
    };
    let mut answer = refusal(missing);
    answer
        .context
        .push("Run `tenure init` in the folder of the project, and reconnect this server.".to_owned());
    let interval = config.runners.heartbeat_interval;
    tenure_serve::run(&mut WithoutProject(answer), exec, interval, Transport::Stdio)
        .map_err(super::cannot_serve)
}

/// Answers everything with the same error.
struct WithoutProject(Refusal);

impl RequestHandler for WithoutProject {
    fn join(&mut self, _: &str) -> Result<String, Refusal> {
        Err(self.0.clone())
    }

    fn answer(&mut self, _: &Session, _: &Call) -> Result<Reply, Refusal> {
        Err(self.0.clone())
    }

    fn claim(&mut self, _: &Session, _: &Claim, _: u64) -> Result<Step, Refusal> {
        Err(self.0.clone())
    }

    fn cancel_claim(&mut self, _: u64, _: Duration) -> Refusal {
        self.0.clone()
    }

    fn release_grant(&mut self, _: &Lease, _: &TaskName) {}

    fn read(&mut self, _: &Session, _: &Page) -> Result<String, Refusal> {
        Err(self.0.clone())
    }

    fn end(&mut self, _: &Session, _: Vec<Lease>) {}
}
