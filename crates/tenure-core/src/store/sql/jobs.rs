//! Jobs and their items in SQL.

use super::{SqlTx, after_prefix};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::NewEvent;
use crate::job::{Definition, Item, ItemState, Job, JobState};
use crate::store::View;
use crate::store::columns::{Cell, job_items, jobs};
use crate::store::jobs::{ItemFilter, JobLookup, NewJob, ReadJobs, WriteJobs};
use crate::store::rows::{Values, json};

impl<T: SqlTx> ReadJobs for T {
    fn job(&self, id: &str) -> Result<Option<Job>> {
        Ok(self.select("id = ?", &[id.into()])?.pop())
    }

    fn find_jobs(&self, lookup: JobLookup<'_>, limit: usize) -> Result<Vec<Job>> {
        let order =
            format!("AND state <> 'loading' ORDER BY state <> 'open', created_at DESC, id LIMIT {limit}");
        match lookup {
            JobLookup::Name(name) => self.select(&format!("name = ? {order}"), &[name.into()]),
            JobLookup::IdPrefix(prefix) => self.select(
                &format!("id >= ? AND id < ? {order}"),
                &[prefix.into(), after_prefix(prefix).into()],
            ),
        }
    }

    fn jobs(&self, limit: u64) -> Result<(Vec<Job>, u64)> {
        let listed = "state <> 'loading'";
        let found =
            self.select(&format!("{listed} ORDER BY created_at DESC, id LIMIT ?"), &[limit.into()])?;
        Ok((found, self.count(&jobs::TABLE, listed, &[])?))
    }

    fn loading_jobs(&self) -> Result<Vec<Job>> {
        // The first term is the condition of the index `jobs_unfinished`, so that it is used.
        self.select("state IN ('loading', 'open') AND state = 'loading' ORDER BY name", &[])
    }

    fn item(&self, job: &str, number: u64) -> Result<Option<Item>> {
        Ok(self.select("job_id = ? AND number = ?", &[job.into(), number.into()])?.pop())
    }

    fn items(&self, filter: &ItemFilter) -> Result<Vec<Item>> {
        let mut terms = vec!["number > ?".to_owned()];
        let mut values: Vec<Cell<'_>> = vec![filter.after.into()];
        if let Some(job) = &filter.job {
            terms.push("job_id = ?".to_owned());
            values.push(job.into());
        }
        // As a literal, so that the partial index for that state can be used.
        terms.extend(filter.state.map(|state| format!("state = '{state}'")));
        values.push(filter.limit.into());
        self.select(&format!("{} ORDER BY job_id, number LIMIT ?", terms.join(" AND ")), &values)
    }

    fn first_pending(&self, job: &str) -> Result<Option<Item>> {
        let first = "job_id = ? AND state = 'pending' ORDER BY due_at, number LIMIT 1";
        Ok(self.select(first, &[job.into()])?.pop())
    }
}

fn job_key(id: &str) -> Values<'_> {
    vec![(jobs::id, id.into())]
}

impl<T: SqlTx> WriteJobs for T {
    fn insert_job(&mut self, job: &NewJob) -> Result<()> {
        let values = job.values(self.now())?;
        self.insert(&jobs::TABLE, &values)
    }

    fn insert_items(&mut self, job: &str, first: u64, payloads: &[String]) -> Result<()> {
        let columns = [
            job_items::job_id,
            job_items::number,
            job_items::state,
            job_items::payload,
            job_items::due_at,
            job_items::updated_at,
        ];
        let (state, now) = (ItemState::Pending.as_str(), self.now());
        let row = |(number, payload): (u64, _)| -> Vec<Cell<'_>> {
            vec![job.into(), number.into(), state.into(), payload, now.into(), now.into()]
        };
        let rows: Vec<_> = (first..).zip(payloads.iter().map(Into::into)).map(row).collect();
        self.insert_rows(&job_items::TABLE, &columns, &rows)?;
        self.count_new_items(job, rows.len())
    }

    fn set_job_state(&mut self, id: &str, to: JobState, event: NewEvent<'_>) -> Result<()> {
        let set = vec![(jobs::state, to.as_str().into()), (jobs::updated_at, self.now().into())];
        self.update(&jobs::TABLE, set, job_key(id))?;
        self.insert_event(event)
    }

    fn set_definition(&mut self, id: &str, definition: &Definition) -> Result<()> {
        let set = vec![(jobs::definition, json(definition)?.into()), (jobs::updated_at, self.now().into())];
        self.update(&jobs::TABLE, set, job_key(id)).map(drop)
    }

    fn save_item(&mut self, item: &Item) -> Result<()> {
        self.count_item(&item.job, item.number, Some(item.state), item.updated_at)?;
        self.update(&job_items::TABLE, item.progress(), Item::key(&item.job, item.number)).map(drop)
    }

    fn delete_items(&mut self, job: &str, numbers: &[u64]) -> Result<()> {
        if numbers.is_empty() {
            return Ok(());
        }
        for number in numbers {
            self.count_item(job, *number, None, self.now())?;
        }
        let list: Vec<String> = numbers.iter().map(u64::to_string).collect();
        let sql = format!(
            "DELETE FROM tenure.job_items WHERE project = $1 AND job_id = $2 AND number IN ({})",
            list.join(", ")
        );
        let values = [(job_items::job_id, job.into())];
        self.execute(&job_items::TABLE, &T::DIALECT.statement(&sql), &values).map(drop)
    }

    fn requeue_items(&mut self, job: &str, from: ItemState, due_at: Timestamp) -> Result<u64> {
        // The state is a literal, so that the partial index for it can be used.
        let sql = format!(
            "UPDATE tenure.job_items SET state = 'pending', failures = 0, due_at = $2, updated_at = $3
             WHERE project = $1 AND job_id = $4 AND state = '{from}'"
        );
        let values = [
            (job_items::due_at, due_at.into()),
            (job_items::updated_at, self.now().into()),
            (job_items::job_id, job.into()),
        ];
        let moved = self.execute(&job_items::TABLE, &T::DIALECT.statement(&sql), &values)?;
        self.count_requeued_items(job, from, moved)?;
        Ok(moved)
    }

    fn delete_job(&mut self, id: &str) -> Result<()> {
        self.delete(&job_items::TABLE, &[(job_items::job_id, id.into())])?;
        self.delete(&jobs::TABLE, &job_key(id)).map(drop)
    }
}
