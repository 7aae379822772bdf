//! Which messages `list` and `wait` show.

use tenure_core::hints;
use tenure_core::id::TaskId;
use tenure_core::store::MessageFilter;

use crate::app::{App, Open};
use crate::identity::IdentityArgs;
use crate::report::{CommandResult, Report};

/// As many as are listed when no `--limit` is given.
const LIMIT: u64 = 100;

#[derive(Debug, PartialEq, Eq, clap::Args)]
pub(super) struct Filter {
    /// Only messages on this task
    #[arg(long, value_name = "T")]
    task: Option<String>,
    /// Only messages for this agent
    #[arg(long, value_name = "A")]
    to: Option<String>,
    /// Only messages for you
    #[arg(long)]
    mine: bool,
    /// Include acknowledged messages
    #[arg(long)]
    all: bool,
    /// Maximum number of messages
    #[arg(long, value_name = "N", default_value_t = LIMIT)]
    limit: u64,
    #[command(flatten)]
    pub(super) identity: IdentityArgs,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            task: None,
            to: None,
            mine: false,
            all: false,
            limit: LIMIT,
            identity: IdentityArgs::default(),
        }
    }
}

impl Filter {
    pub(super) fn resolve(&self, app: &App<'_>, open: &Open<'_>) -> CommandResult<MessageFilter> {
        let identity = app.identity(&self.identity)?;
        if self.mine && !identity.is_named() {
            return Err(Report::usage("--mine needs your identity: give --agent ID, or set TENURE_AGENT")
                .hint(hints::join()));
        }
        let task = self.task.as_deref().map(|t| open.resolve(t)).transpose()?;
        Ok(MessageFilter {
            task: task.map(|t| TaskId::new(t.id)),
            to: self.to.clone().or_else(|| self.mine.then(|| identity.holder.id.clone())),
            include_acknowledged: self.all,
            limit: self.limit,
        })
    }
}
