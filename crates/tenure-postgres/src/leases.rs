//! The tickets of a claimed task, refreshing a ticket, and grants with a prefetched fence.

use tenure_core::Result;
use tenure_core::id::Fence;
use tenure_core::lease::{Lease, ResourceKind};
use tenure_core::store::columns::{leases, tickets};
use tenure_core::store::{NewLease, SqlTx};

use crate::connection::NOW;
use crate::migrate::{LATEST, SCHEMA};
use crate::rows::{Parameters, insert_sql, record};
use crate::task_query::id_or_key;
use crate::transaction::Transaction;

/// The tickets for the task with the id `$2` or the key `$3`.
pub(crate) fn named_task_tickets_query() -> String {
    format!(
        "SELECT {} FROM tenure.tickets
         WHERE project = $1 AND resource_kind = 'task' AND resource_id = {} ORDER BY number",
        tickets::TABLE.list,
        id_or_key("$2", "$3")
    )
}

/// Refreshes the ticket `$2` if it was refreshed within the last `$3` milliseconds, and reads the open lease of the
/// resource `$4`, `$5`. The write need not survive power loss.
pub(crate) fn refresh_ticket_query() -> String {
    format!(
        "WITH moment AS MATERIALIZED (
           SELECT set_config('synchronous_commit', 'off', true), coalesce($6, {NOW}) AS now)
         UPDATE tenure.tickets SET refreshed_at = moment.now
         FROM moment LEFT JOIN tenure.leases o
           ON o.project = $1 AND o.resource_kind = $4 AND o.resource_id = $5 AND o.ended_at IS NULL
         WHERE tickets.project = $1 AND tickets.number = $2 AND tickets.refreshed_at > moment.now - $3
           AND {SCHEMA} = {LATEST}
           AND (SELECT standing FROM tenure.projects WHERE id = $1) IS NULL
         RETURNING moment.now, {}",
        leases::TABLE.of("o")
    )
}

impl Transaction<'_> {
    pub(crate) fn grant_drawing_fence(&mut self, new: &NewLease) -> Result<Option<Lease>> {
        let mut values = new.values(self.state.now)?;
        if new.resource.kind != ResourceKind::Task {
            self.require_exclusive_turn()?;
        }
        let fence = self.prefetched.borrow_mut().fence.take();
        let Some(fence) = fence else {
            let sql = format!("{} RETURNING {}", insert_sql(&leases::TABLE, &values), leases::TABLE.list);
            return self.change(&sql, &Parameters::of(&values).values())?.first().map(record).transpose();
        };
        values.push((leases::fence, fence.into()));
        self.changed.set(true);
        let sql = insert_sql(&leases::TABLE, &values);
        self.keep_shared("leases", &sql, &Parameters::of(&values).values());
        let granted = new.granted(Fence::new(fence), self.state.now);
        self.prefetched.borrow_mut().granted = Some(granted.clone());
        Ok(Some(granted))
    }
}
