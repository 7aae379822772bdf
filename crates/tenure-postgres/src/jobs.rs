//! Jobs and their items. Triggers maintain the counts of a job.

use tenure_core::event::NewEvent;
use tenure_core::job::{Definition, Item, ItemState, JobState};
use tenure_core::store::columns::{job_items, jobs};
use tenure_core::store::{NewJob, SqlTx, WriteFeed, WriteJobs};
use tenure_core::{Result, Timestamp};

use crate::rows::{limit_of, to_json};
use crate::transaction::Transaction;

impl WriteJobs for Transaction<'_> {
    fn insert_job(&mut self, job: &NewJob) -> Result<()> {
        self.insert(&jobs::TABLE, &job.values(self.now)?)
    }

    fn insert_items(&mut self, job: &str, first: u64, payloads: &[String]) -> Result<()> {
        self.change(
            "INSERT INTO tenure.job_items (project, job_id, number, state, payload, due_at, updated_at)
             SELECT $1, $2, $3 + place - 1, 'pending', payload, $5, $5
             FROM unnest($4::text[]) WITH ORDINALITY AS given (payload, place)",
            &[&job, &limit_of(first), &payloads.to_vec(), &self.now.as_millis()],
        )
        .map(drop)
    }

    fn set_job_state(&mut self, id: &str, to: JobState, event: NewEvent<'_>) -> Result<()> {
        self.change(
            "UPDATE tenure.jobs SET state = $3, updated_at = $4 WHERE project = $1 AND id = $2",
            &[&id, &to.as_str(), &self.now.as_millis()],
        )?;
        self.append(event)
    }

    fn set_definition(&mut self, id: &str, definition: &Definition) -> Result<()> {
        self.change(
            "UPDATE tenure.jobs SET definition = $3, updated_at = $4 WHERE project = $1 AND id = $2",
            &[&id, &to_json(definition)?, &self.now.as_millis()],
        )
        .map(drop)
    }

    fn save_item(&mut self, item: &Item) -> Result<()> {
        self.update(&job_items::TABLE, item.progress(), Item::key(&item.job, item.number)).map(drop)
    }

    fn delete_items(&mut self, job: &str, numbers: &[u64]) -> Result<()> {
        let numbers: Vec<i64> = numbers.iter().copied().map(limit_of).collect();
        self.change(
            "DELETE FROM tenure.job_items WHERE project = $1 AND job_id = $2 AND number = ANY ($3)",
            &[&job, &numbers],
        )
        .map(drop)
    }

    fn requeue_items(&mut self, job: &str, from: ItemState, due_at: Timestamp) -> Result<u64> {
        let sql = format!(
            "UPDATE tenure.job_items SET state = 'pending', failures = 0, due_at = $3, updated_at = $4
             WHERE project = $1 AND job_id = $2 AND state = '{from}' RETURNING 1"
        );
        let changed = self.change(&sql, &[&job, &due_at.as_millis(), &self.now.as_millis()])?;
        Ok(u64::try_from(changed.len()).unwrap_or(u64::MAX))
    }

    fn delete_job(&mut self, id: &str) -> Result<()> {
        self.delete(&job_items::TABLE, &[(job_items::job_id, id.into())])?;
        self.delete(&jobs::TABLE, &[(jobs::id, id.into())]).map(drop)
    }
}
