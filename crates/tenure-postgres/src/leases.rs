//! Refreshing a ticket, and grants with a prefetched fence.

use tenure_core::Result;
use tenure_core::id::Fence;
use tenure_core::lease::{Lease, ResourceKind};
use tenure_core::store::columns::leases;
use tenure_core::store::{NewLease, SqlTx};

use crate::connection::NOW;
use crate::migrate::LATEST;
use crate::rows::{Parameters, insert_sql, record};
use crate::transaction::Transaction;

/// Refreshes the ticket `$2` if it was refreshed within its life, and reads the open lease of the resource `$3`, `$4`.
/// The write need not survive power loss.
pub(crate) fn refresh_ticket_query() -> String {
    format!(
        "WITH moment AS MATERIALIZED (
           SELECT set_config('synchronous_commit', 'off', true), coalesce($5, {NOW}) AS now)
         UPDATE tenure.tickets SET refreshed_at = moment.now
         FROM moment LEFT JOIN tenure.leases o
           ON o.project = $1 AND o.resource_kind = $3 AND o.resource_id = $4 AND o.ended_at IS NULL
         WHERE tickets.project = $1 AND tickets.number = $2
           AND tickets.refreshed_at + tickets.life_ms > moment.now
           AND (SELECT 1 FROM tenure.projects WHERE id = $1 AND schema = {LATEST} AND standing IS NULL) IS NOT NULL
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
