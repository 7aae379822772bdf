//! Jobs and their items. The counts of a job are kept by triggers.

use tenure_core::event::NewEvent;
use tenure_core::job::{Counts, Definition, Item, ItemState, Job, JobState};
use tenure_core::store::{ItemFilter, JobLookup, NewJob, ReadJobs, WriteFeed, WriteJobs};
use tenure_core::{Result, Timestamp};
use tokio_postgres::Row;

use crate::connection::Value;
use crate::rows::{all, count, get, json, limit_of, narrow, parsed, time, to_json};
use crate::transaction::Transaction;

const JOB_COLUMNS: &str = "id, name, state, definition, total, pending, running, succeeded, failed, skipped, \
     created_at, updated_at";

fn read_job(row: &Row) -> Result<Job> {
    Ok(Job {
        id: get(row, 0)?,
        name: get(row, 1)?,
        state: parsed(get(row, 2)?, JobState::parse)?,
        definition: json(get(row, 3)?)?,
        counts: Counts {
            total: count(row, 4)?,
            pending: count(row, 5)?,
            running: count(row, 6)?,
            succeeded: count(row, 7)?,
            failed: count(row, 8)?,
            skipped: count(row, 9)?,
        },
        created_at: time(row, 10)?,
        updated_at: time(row, 11)?,
    })
}

const ITEM_COLUMNS: &str = "job_id, number, state, payload, failures, due_at, error, updated_at";

fn read_item(row: &Row) -> Result<Item> {
    Ok(Item {
        job: get(row, 0)?,
        number: count(row, 1)?,
        state: parsed(get(row, 2)?, ItemState::parse)?,
        payload: get(row, 3)?,
        failures: narrow(row, 4)?,
        due_at: time(row, 5)?,
        error: get(row, 6)?,
        updated_at: time(row, 7)?,
    })
}

impl Transaction<'_> {
    fn jobs_where(&self, rest: &str, values: &[&dyn Value]) -> Result<Vec<Job>> {
        let sql = format!("SELECT {JOB_COLUMNS} FROM tenure.jobs WHERE project = $1 AND {rest}");
        all(self.rows(&sql, values)?, read_job)
    }

    fn items_where(&self, rest: &str, values: &[&dyn Value]) -> Result<Vec<Item>> {
        let sql = format!("SELECT {ITEM_COLUMNS} FROM tenure.job_items WHERE project = $1 AND {rest}");
        all(self.rows(&sql, values)?, read_item)
    }
}

impl ReadJobs for Transaction<'_> {
    fn job(&self, id: &str) -> Result<Option<Job>> {
        Ok(self.jobs_where("id = $2", &[&id])?.pop())
    }

    fn find_jobs(&self, lookup: JobLookup<'_>, limit: usize) -> Result<Vec<Job>> {
        let order =
            format!("AND state <> 'loading' ORDER BY state <> 'open', created_at DESC, id LIMIT {limit}");
        match lookup {
            JobLookup::Name(name) => self.jobs_where(&format!("name = $2 {order}"), &[&name]),
            // `~` is greater than everything in an id.
            JobLookup::IdPrefix(prefix) => {
                self.jobs_where(&format!("id >= $2 AND id < $2 || '~' {order}"), &[&prefix])
            }
        }
    }

    fn jobs(&self, limit: u64) -> Result<(Vec<Job>, u64)> {
        let found =
            self.jobs_where("state <> 'loading' ORDER BY created_at DESC, id LIMIT $2", &[&limit_of(limit)])?;
        let sql = "SELECT count(*) FROM tenure.jobs WHERE project = $1 AND state <> 'loading'";
        let total = self.row(sql, &[])?.map_or(Ok(0), |row| count(&row, 0))?;
        Ok((found, total))
    }

    fn loading_jobs(&self) -> Result<Vec<Job>> {
        // Spelled as the index is, which has nothing else that is unfinished but a few.
        self.jobs_where("state IN ('loading', 'open') AND state = 'loading' ORDER BY name", &[])
    }

    fn item(&self, job: &str, of: u64) -> Result<Option<Item>> {
        Ok(self.items_where("job_id = $2 AND number = $3", &[&job, &limit_of(of)])?.pop())
    }

    fn items(&self, filter: &ItemFilter) -> Result<Vec<Item>> {
        let (after, limit) = (limit_of(filter.after), limit_of(filter.limit));
        let mut values: Vec<&dyn Value> = vec![&after, &limit];
        let mut terms = vec!["number > $2".to_owned()];
        if let Some(job) = &filter.job {
            values.push(job);
            terms.push("job_id = $4".to_owned());
        }
        // As a literal, so that the index of that state alone can serve.
        terms.extend(filter.state.map(|state| format!("state = '{state}'")));
        self.items_where(&format!("{} ORDER BY job_id, number LIMIT $3", terms.join(" AND ")), &values)
    }

    fn first_pending(&self, job: &str) -> Result<Option<Item>> {
        let first = "job_id = $2 AND state = 'pending' ORDER BY due_at, number LIMIT 1";
        Ok(self.items_where(first, &[&job])?.pop())
    }
}

impl WriteJobs for Transaction<'_> {
    fn insert_job(&mut self, job: &NewJob) -> Result<()> {
        self.change(
            "INSERT INTO tenure.jobs (project, id, name, state, definition, created_at, updated_at)
             VALUES ($1, $2, $3, 'loading', $4, $5, $5)",
            &[&job.id, &job.name, &to_json(&job.definition)?, &self.now.as_millis()],
        )
        .map(drop)
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
        self.change(
            "UPDATE tenure.job_items SET state = $4, failures = $5, due_at = $6, error = $7, updated_at = $8
             WHERE project = $1 AND job_id = $2 AND number = $3",
            &[
                &item.job,
                &limit_of(item.number),
                &item.state.as_str(),
                &i64::from(item.failures),
                &item.due_at.as_millis(),
                &item.error,
                &item.updated_at.as_millis(),
            ],
        )
        .map(drop)
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
        self.change("DELETE FROM tenure.job_items WHERE project = $1 AND job_id = $2", &[&id])?;
        self.change("DELETE FROM tenure.jobs WHERE project = $1 AND id = $2", &[&id]).map(drop)
    }
}
