//! Jobs and their items. A job's counts are updated with its items.

use rusqlite::params;
use tenure_core::event::NewEvent;
use tenure_core::job::{Definition, Item, ItemState, JobState};
use tenure_core::store::columns::{job_items, jobs};
use tenure_core::store::{NewJob, SqlTx, WriteFeed, WriteJobs};
use tenure_core::{Result, Timestamp};

use crate::connection::Transaction;
use crate::error::sql_error;
use crate::rows::{Sql, to_json};

fn number(of: u64) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}

impl Transaction<'_> {
    /// Moves an item from its job's counter for its present state to the one for `to`. An empty `to` means that it is
    /// deleted, which does not count as a change of the job.
    fn count_item(&self, job: &str, of: u64, to: &str, at: Timestamp) -> Result<()> {
        self.change(
            "UPDATE jobs SET
                 total = total - (?3 = ''),
                 pending = pending - (old.state = 'pending') + (?3 = 'pending'),
                 running = running - (old.state = 'running') + (?3 = 'running'),
                 succeeded = succeeded - (old.state = 'succeeded') + (?3 = 'succeeded'),
                 failed = failed - (old.state = 'failed') + (?3 = 'failed'),
                 skipped = skipped - (old.state = 'skipped') + (?3 = 'skipped'),
                 updated_at = CASE ?3 WHEN '' THEN updated_at ELSE ?4 END
             FROM (SELECT state FROM job_items WHERE job_id = ?1 AND number = ?2) AS old
             WHERE jobs.id = ?1 AND old.state <> ?3",
            &[&job, &number(of), &to, &at.as_millis()],
        )
        .map(drop)
    }
}

impl WriteJobs for Transaction<'_> {
    fn insert_job(&mut self, job: &NewJob) -> Result<()> {
        self.insert(&jobs::TABLE, &job.values(self.now)?)
    }

    fn insert_items(&mut self, job: &str, first: u64, payloads: &[String]) -> Result<()> {
        let insert = || -> Sql<()> {
            let mut statement = self.conn.prepare_cached(
                "INSERT INTO job_items (job_id, number, state, payload, due_at, updated_at)
                 VALUES (?1, ?2, 'pending', ?3, ?4, ?4)",
            )?;
            for (of, payload) in (first..).zip(payloads) {
                statement.execute(params![job, number(of), payload, self.now.as_millis()])?;
            }
            Ok(())
        };
        insert().map_err(|e| sql_error(&e))?;
        let more = i64::try_from(payloads.len()).unwrap_or(i64::MAX);
        self.change(
            "UPDATE jobs SET total = total + ?2, pending = pending + ?2 WHERE id = ?1",
            &[&job, &more],
        )
        .map(drop)
    }

    fn set_job_state(&mut self, id: &str, to: JobState, event: NewEvent<'_>) -> Result<()> {
        self.change(
            "UPDATE jobs SET state = ?2, updated_at = ?3 WHERE id = ?1",
            &[&id, &to.as_str(), &self.now.as_millis()],
        )?;
        self.append(event)
    }

    fn set_definition(&mut self, id: &str, definition: &Definition) -> Result<()> {
        let definition = to_json(definition).map_err(|e| sql_error(&e))?;
        self.change(
            "UPDATE jobs SET definition = ?2, updated_at = ?3 WHERE id = ?1",
            &[&id, &definition, &self.now.as_millis()],
        )
        .map(drop)
    }

    fn save_item(&mut self, item: &Item) -> Result<()> {
        self.count_item(&item.job, item.number, item.state.as_str(), item.updated_at)?;
        self.update(&job_items::TABLE, item.progress(), Item::key(&item.job, item.number)).map(drop)
    }

    fn delete_items(&mut self, job: &str, numbers: &[u64]) -> Result<()> {
        for of in numbers {
            self.count_item(job, *of, "", self.now)?;
            self.delete(&job_items::TABLE, &Item::key(job, *of))?;
        }
        Ok(())
    }

    fn requeue_items(&mut self, job: &str, from: ItemState, due_at: Timestamp) -> Result<u64> {
        let changed = self.change(
            &format!(
                "UPDATE job_items SET state = 'pending', failures = 0, due_at = ?2, updated_at = ?3
                 WHERE job_id = ?1 AND state = '{from}'"
            ),
            &[&job, &due_at.as_millis(), &self.now.as_millis()],
        )?;
        let moved = i64::try_from(changed).unwrap_or(i64::MAX);
        self.change(
            &format!(
                "UPDATE jobs SET {from} = {from} - ?2, pending = pending + ?2, updated_at = ?3 WHERE id = ?1 AND ?2 > 0"
            ),
            &[&job, &moved, &self.now.as_millis()],
        )?;
        Ok(u64::try_from(changed).unwrap_or(u64::MAX))
    }

    fn delete_job(&mut self, id: &str) -> Result<()> {
        self.delete(&job_items::TABLE, &[(job_items::job_id, id.into())])?;
        self.delete(&jobs::TABLE, &[(jobs::id, id.into())]).map(drop)
    }
}
