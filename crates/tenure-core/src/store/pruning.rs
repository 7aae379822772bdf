//! Deleting rows of the history. [`crate::rules::prune`] decides which.

use super::columns::{
    Cell, Column, Table, agents, attempts, events, jobs, leases, messages, pruning, runners,
};
use super::columns::{session_tasks, sessions};
use super::rows::{Reader, Row};
use super::sql::{SqlTx, UNFINISHED};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::{Fence, TaskId};
use crate::lease::{Lease, Resource};
use crate::task::TaskStatus;

/// A history whose rows are numbered, and pruned in the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum History {
    Events,
    Leases,
}

impl History {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Leases => "leases",
        }
    }
}

/// Numbers greater than `after`, up to and including `through`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    pub after: i64,
    pub through: i64,
}

/// The last event with a status of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastStatus {
    pub task: TaskId,
    pub event: i64,
    pub status: TaskStatus,
}

pub trait ReadHistory {
    /// The number through which this history was pruned. Rows up to it that still exist were kept on purpose.
    fn pruned_through(&self, history: History) -> Result<i64>;
    /// The last event with a status of each of these tasks that exists. A task is created as `pending`.
    fn last_statuses(&self, tasks: &[TaskId]) -> Result<Vec<LastStatus>>;
    /// Leases with a greater fence, in the order of fences.
    fn leases_after(&self, fence: i64, limit: u64) -> Result<Vec<Lease>>;
    /// The fence of the last lease of each resource.
    fn latest_fences(&self, resources: &[Resource]) -> Result<Vec<Fence>>;
    /// The id of a job that ended before this time.
    fn ended_job(&self, before: Timestamp) -> Result<Option<String>>;
}

pub trait PruneHistory {
    fn set_pruned_through(&mut self, history: History, number: i64) -> Result<()>;

    /// Deletes the events of the stretch, and earlier ones of `tasks`, except `kept`. Returns how many.
    fn delete_events(&mut self, stretch: Stretch, tasks: &[TaskId], kept: &[i64]) -> Result<u64>;

    /// Deletes the closed leases of the stretch, and earlier closed ones of `resources`, except `kept`, together with
    /// their attempts. Returns how many leases.
    fn delete_leases(&mut self, stretch: Stretch, resources: &[Resource], kept: &[Fence]) -> Result<u64>;

    /// Deletes messages that were sent before this time, except those that are not acknowledged and belong to an
    /// unfinished task.
    fn delete_messages(&mut self, before: Timestamp, limit: u64) -> Result<u64>;
    /// Deletes runners that ended before this time.
    fn delete_runners(&mut self, before: Timestamp, limit: u64) -> Result<u64>;
    /// Deletes agents that were last seen before this time and hold nothing.
    fn delete_agents(&mut self, before: Timestamp, limit: u64) -> Result<u64>;
    /// Deletes the rows of sessions that ended before this time: the list of their tasks first, then the sessions.
    fn delete_sessions(&mut self, before: Timestamp, limit: u64) -> Result<u64>;
}

/// `(?, ?, ?)`, with one parameter for each of the values, of which there is at least one.
fn list(length: usize) -> String {
    format!("({})", vec!["?"; length.max(1)].join(", "))
}

/// A condition for the rows of these resources.
fn of_resources(count: usize) -> String {
    format!("({})", vec!["(resource_kind = ? AND resource_id = ?)"; count].join(" OR "))
}

fn resource_cells(resources: &[Resource]) -> impl Iterator<Item = (Column, Cell<'_>)> {
    resources.iter().flat_map(|resource| {
        [(leases::resource_kind, resource.kind.as_str().into()), (leases::resource_id, (&resource.id).into())]
    })
}

fn task_cells(tasks: &[TaskId]) -> impl Iterator<Item = (Column, Cell<'_>)> {
    tasks.iter().map(|task| (events::task_id, task.as_str().into()))
}

/// The numbers that are not deleted. No row has the number 0, which keeps the list from being empty.
fn kept_cells(column: Column, kept: impl IntoIterator<Item = i64>) -> Vec<(Column, Cell<'static>)> {
    let mut cells: Vec<_> = kept.into_iter().map(|number| (column, number.into())).collect();
    if cells.is_empty() {
        cells.push((column, 0_i64.into()));
    }
    cells
}

fn bare<'a>(cells: impl IntoIterator<Item = (Column, Cell<'a>)>) -> Vec<Cell<'a>> {
    cells.into_iter().map(|(_, cell)| cell).collect()
}

fn number(row: &dyn Row) -> Result<i64> {
    Ok(row.int(0)?.unwrap_or(0))
}

/// Deletes the first rows that match a condition, in an order.
fn delete_first<T: SqlTx>(
    tx: &mut T,
    table: &'static Table,
    condition: &str,
    values: &[(Column, Cell<'_>)],
    order: Column,
    limit: u64,
) -> Result<u64> {
    let key = table.key.first().copied().unwrap_or(order).name;
    let chosen = format!(
        "SELECT {key} FROM {} WHERE {}{condition} ORDER BY {} LIMIT {limit}",
        T::DIALECT.name(table),
        T::DIALECT.scope(),
        order.name
    );
    tx.execute(table, &T::DIALECT.delete_where(table, &format!("{key} IN ({chosen})")), values)
}

impl<T: SqlTx> ReadHistory for T {
    fn pruned_through(&self, history: History) -> Result<i64> {
        let sql = T::DIALECT.numbered(&format!(
            "SELECT through FROM {} WHERE {}history = ?",
            T::DIALECT.name(&pruning::TABLE),
            T::DIALECT.scope()
        ));
        Ok(self.query(&sql, &[history.as_str().into()], number)?.pop().unwrap_or(0))
    }

    fn last_statuses(&self, tasks: &[TaskId]) -> Result<Vec<LastStatus>> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let (events_name, scope) = (T::DIALECT.name(&events::TABLE), T::DIALECT.scope());
        // Reads each task's events backwards, and stops at the first one with a status.
        let last = format!(
            "SELECT (SELECT seq FROM {events_name} WHERE {scope}task_id = t.id \
             AND (to_status IS NOT NULL OR kind = 'task.created') ORDER BY seq DESC LIMIT 1) \
             FROM {} t WHERE {scope}id IN {}",
            T::DIALECT.name(&super::columns::tasks::TABLE),
            list(tasks.len()),
        );
        let sql = T::DIALECT.select(&events::TABLE, &format!("seq IN ({last})"));
        self.query(&sql, &bare(task_cells(tasks)), |row| {
            let row = Reader::new(row, 0);
            let status = row.optional_parsed(events::to_status, TaskStatus::parse)?;
            Ok(LastStatus {
                task: TaskId::new(row.text(events::task_id)?),
                event: row.int(events::seq)?,
                status: status.unwrap_or(TaskStatus::Pending),
            })
        })
    }

    fn leases_after(&self, fence: i64, limit: u64) -> Result<Vec<Lease>> {
        self.select("fence > ? ORDER BY fence LIMIT ?", &[fence.into(), limit.into()])
    }

    fn latest_fences(&self, resources: &[Resource]) -> Result<Vec<Fence>> {
        if resources.is_empty() {
            return Ok(Vec::new());
        }
        // One search in the index for each resource; a GROUP BY would read all of their leases.
        let sql = T::DIALECT.numbered(&format!(
            "SELECT (SELECT max(fence) FROM {} WHERE {}resource_kind = r.column1 AND resource_id = r.column2) \
             FROM (VALUES {}) AS r",
            T::DIALECT.name(&leases::TABLE),
            T::DIALECT.scope(),
            vec!["(?, ?)"; resources.len()].join(", ")
        ));
        self.query(&sql, &bare(resource_cells(resources)), |row| number(row).map(Fence::new))
    }

    fn ended_job(&self, before: Timestamp) -> Result<Option<String>> {
        let ended = "created_at < ? AND state NOT IN ('loading', 'open') AND updated_at < ? \
                     ORDER BY created_at LIMIT 1";
        let sql = T::DIALECT.numbered(&format!(
            "SELECT id FROM {} WHERE {}{ended}",
            T::DIALECT.name(&jobs::TABLE),
            T::DIALECT.scope()
        ));
        let found = self.query(&sql, &[before.into(), before.into()], |row| {
            Ok(row.text(0)?.unwrap_or_default().to_owned())
        })?;
        Ok(found.into_iter().next())
    }
}

impl<T: SqlTx> PruneHistory for T {
    fn set_pruned_through(&mut self, history: History, through: i64) -> Result<()> {
        let row = [(pruning::history, history.as_str().into()), (pruning::through, through.into())];
        self.upsert(&pruning::TABLE, &row)
    }

    fn delete_events(&mut self, stretch: Stretch, tasks: &[TaskId], kept: &[i64]) -> Result<u64> {
        let kept = kept_cells(events::seq, kept.iter().copied());
        let not_kept = format!("seq NOT IN {}", list(kept.len()));
        let mut values: Vec<_> =
            vec![(events::seq, stretch.after.into()), (events::seq, stretch.through.into())];
        values.extend(kept.iter().cloned());
        let sql = T::DIALECT.delete_where(&events::TABLE, &format!("seq > ? AND seq <= ? AND {not_kept}"));
        let mut deleted = self.execute(&events::TABLE, &sql, &values)?;
        if !tasks.is_empty() {
            let mut values: Vec<_> = task_cells(tasks).collect();
            values.push((events::seq, stretch.after.into()));
            values.extend(kept);
            let earlier = format!("task_id IN {} AND seq <= ? AND {not_kept}", list(tasks.len()));
            let sql = T::DIALECT.delete_where(&events::TABLE, &earlier);
            deleted += self.execute(&events::TABLE, &sql, &values)?;
        }
        Ok(deleted)
    }

    fn delete_leases(&mut self, stretch: Stretch, resources: &[Resource], kept: &[Fence]) -> Result<u64> {
        let kept = kept_cells(leases::fence, kept.iter().map(|fence| fence.number()));
        let not_kept = format!("ended_at IS NOT NULL AND fence NOT IN {}", list(kept.len()));
        let mut deleted = 0;
        let mut delete = |condition: &str, values: &[(Column, Cell<'_>)]| -> Result<()> {
            let chosen = format!(
                "SELECT fence FROM {} WHERE {}{condition} AND {not_kept}",
                T::DIALECT.name(&leases::TABLE),
                T::DIALECT.scope()
            );
            let of_lease = T::DIALECT.delete_where(&attempts::TABLE, &format!("fence IN ({chosen})"));
            self.execute(&attempts::TABLE, &of_lease, values)?;
            let sql = T::DIALECT.delete_where(&leases::TABLE, &format!("{condition} AND {not_kept}"));
            deleted += self.execute(&leases::TABLE, &sql, values)?;
            Ok(())
        };
        let mut values: Vec<_> =
            vec![(leases::fence, stretch.after.into()), (leases::fence, stretch.through.into())];
        values.extend(kept.iter().cloned());
        delete("fence > ? AND fence <= ?", &values)?;
        if !resources.is_empty() {
            let mut values: Vec<_> = resource_cells(resources).collect();
            values.push((leases::fence, stretch.after.into()));
            values.extend(kept);
            delete(&format!("{} AND fence <= ?", of_resources(resources.len())), &values)?;
        }
        Ok(deleted)
    }

    fn delete_messages(&mut self, before: Timestamp, limit: u64) -> Result<u64> {
        let (messages_name, scope) = (T::DIALECT.name(&messages::TABLE), T::DIALECT.scope());
        // The messages are in the order of their times, so the first recent one ends the search.
        let recent = format!(
            "id < coalesce((SELECT id FROM {messages_name} WHERE {scope}sent_at >= ? ORDER BY id LIMIT 1), {})",
            i64::MAX
        );
        let condition = format!(
            "{recent} AND (acknowledged_at IS NOT NULL OR task_id IS NULL OR task_id NOT IN \
             (SELECT id FROM {} WHERE {scope}status IN {UNFINISHED}))",
            T::DIALECT.name(&super::columns::tasks::TABLE),
        );
        delete_first(
            self,
            &messages::TABLE,
            &condition,
            &[(messages::sent_at, before.into())],
            messages::id,
            limit,
        )
    }

    fn delete_runners(&mut self, before: Timestamp, limit: u64) -> Result<u64> {
        let values = [(runners::started_at, before.into()), (runners::completed_at, before.into())];
        let ended = "started_at < ? AND completed_at < ?";
        delete_first(self, &runners::TABLE, ended, &values, runners::started_at, limit)
    }

    fn delete_agents(&mut self, before: Timestamp, limit: u64) -> Result<u64> {
        let idle = format!(
            "last_seen_at < ? AND id NOT IN (SELECT holder_id FROM {} WHERE {}ended_at IS NULL)",
            T::DIALECT.name(&leases::TABLE),
            T::DIALECT.scope()
        );
        delete_first(
            self,
            &agents::TABLE,
            &idle,
            &[(agents::last_seen_at, before.into())],
            agents::last_seen_at,
            limit,
        )
    }

    fn delete_sessions(&mut self, before: Timestamp, limit: u64) -> Result<u64> {
        let ended = "started_at < ? AND state <> 'open' AND updated_at < ?";
        let values = [(sessions::started_at, before.into()), (sessions::updated_at, before.into())];
        let of_session = format!(
            "session_id IN (SELECT id FROM {} WHERE {}{ended})",
            T::DIALECT.name(&sessions::TABLE),
            T::DIALECT.scope()
        );
        let tasks =
            delete_first(self, &session_tasks::TABLE, &of_session, &values, session_tasks::number, limit)?;
        if tasks == limit {
            return Ok(tasks);
        }
        let rest = delete_first(self, &sessions::TABLE, ended, &values, sessions::started_at, limit)?;
        Ok(tasks + rest)
    }
}
