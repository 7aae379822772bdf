//! The filters that `export` and `tree` share with `list`.

use tenure_core::store::{TaskFilter, View};
use tenure_core::task::Task;
use tenure_core::{Result, reference};

use super::list::{self, Wanted};
use crate::app::Open;
use crate::identity::Identity;
use crate::report::CommandResult;

#[derive(Debug, clap::Args)]
pub(super) struct FilterArgs {
    /// Only tasks with this status, as in `tasks list`
    #[arg(short, long, value_name = "STATUS")]
    pub(super) status: Vec<String>,
    /// Only tasks of this section
    #[arg(long, value_name = "S")]
    section: Option<String>,
    /// Only tasks with this text in the key, title or description
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Only tasks with this label
    #[arg(long, value_name = "L")]
    label: Option<String>,
}

impl FilterArgs {
    /// The statuses that `--status` selects; every status without it.
    pub(super) fn wanted(&self) -> CommandResult<Wanted> {
        if self.status.is_empty() { Ok(Wanted::ALL) } else { list::wanted(&self.status) }
    }

    /// All tasks that match, in working order.
    pub(super) fn all(
        &self,
        open: &Open<'_>,
        view: &dyn View,
        identity: &Identity,
        wanted: &Wanted,
    ) -> Result<Vec<Task>> {
        let section = self.section.as_deref().map(|name| reference::section(view, name)).transpose()?;
        let filter = TaskFilter {
            statuses: wanted.statuses.clone(),
            states: wanted.states.clone(),
            section: section.map(|section| section.id),
            search: self.search.clone(),
            label: self.label.clone(),
            limit: u64::from(u32::MAX),
            ..TaskFilter::default()
        };
        Ok(view.list_tasks(&filter, &open.viewer(view, identity)?)?.0)
    }

    pub(super) fn is_everything(&self) -> bool {
        self.status.is_empty() && self.section.is_none() && self.search.is_none() && self.label.is_none()
    }
}
