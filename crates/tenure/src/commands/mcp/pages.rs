//! MCP resources: the board, a task, a lease, the end of a log.

use std::fs::File;

use serde_json::{Value, json};
use tenure_core::id::Fence;
use tenure_core::store::TaskFilter;
use tenure_core::task::TaskStatus;
use tenure_core::{Error, wire};
use tenure_lock::open_private;
use tenure_serve::Page;

use super::handler::{McpHandler, shortened};
use crate::commands::runners::logs;
use crate::commands::status;
use crate::commands::tasks::{attempt_log, show, view};
use crate::identity::IdentityArgs;
use crate::report::CommandResult;

const BOARD_TASKS: u64 = 100;
/// How many bytes of a log are read, from its end.
const TAIL: u64 = 64 * 1024;

impl McpHandler<'_, '_> {
    pub(super) fn page(&self, identity_args: &IdentityArgs, page: &Page) -> CommandResult<String> {
        let object = match page {
            Page::Board => self.board(identity_args)?,
            Page::Task(task) => show::show(self.app, self.open, identity_args, task, true)?.data,
            Page::Lease(lease) => self.lease(lease)?,
            Page::Log(task) => return self.log(task),
        };
        Ok(format!("{object:#}"))
    }

    fn board(&self, identity_args: &IdentityArgs) -> CommandResult<Value> {
        let identity = self.app.identity(identity_args)?;
        let open = TaskStatus::ALL.into_iter().filter(|s| *s != TaskStatus::Completed).collect();
        let filter = TaskFilter { statuses: Some(open), limit: BOARD_TASKS, ..TaskFilter::default() };
        let (tasks, total) = self.open.read(|view| {
            let viewer = self.open.viewer(view, &identity)?;
            view.list_tasks(&filter, &viewer)
        })?;
        let tasks: Vec<_> = tasks.into_iter().map(shortened).collect();
        let rows: Vec<_> = tasks.iter().map(|task| view::object(self.app, task)).collect();
        let status = status::show(self.app, self.open, identity_args)?.data;
        Ok(json!({"status": status, "tasks": rows, "total": total}))
    }

    fn lease(&self, reference: &str) -> CommandResult<Value> {
        let lease = self.open.read(|view| match reference.parse().map(Fence::new) {
            Ok(fence) => view.lease_by_fence(fence),
            Err(_) => view.lease_by_id(reference),
        })?;
        let lease = lease.ok_or_else(|| Error::LockNotFound { reference: reference.to_owned() })?;
        let lease = wire::lease(&lease, self.app.env.clock.now(), self.app.env.judge.as_ref());
        Ok(json!(wire::LeaseAnswer { lease }))
    }

    fn log(&self, task: &str) -> CommandResult<String> {
        let name = self.open.resolve(task)?;
        let (_, path) = attempt_log::find(self.open, &name, None)?;
        let file = open_private(&path, File::options().read(true))
            .map_err(|e| attempt_log::cannot_open(&e, &name, &path))?;
        Ok(logs::end_of(file, TAIL).0)
    }
}
