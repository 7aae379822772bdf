//! Jobs and their items. A job's counts are changed with its items.

use rusqlite::{OptionalExtension, Row, ToSql, params};
use tenure_core::event::NewEvent;
use tenure_core::job::{Counts, Definition, Item, ItemState, Job, JobState};
use tenure_core::store::{ItemFilter, JobLookup, NewJob, ReadJobs, WriteFeed, WriteJobs};
use tenure_core::{Result, Timestamp};

use crate::connection::Transaction;
use crate::error::sql_error;
use crate::rows::{Sql, count, json, parsed, time, to_json};

const JOB_COLUMNS: &str = "id, name, state, definition, total, pending, running, succeeded, failed, skipped, \
     created_at, updated_at";

fn read_job(row: &Row<'_>) -> Sql<Job> {
    Ok(Job {
        id: row.get(0)?,
        name: row.get(1)?,
        state: parsed(2, &row.get::<_, String>(2)?, JobState::parse)?,
        definition: json(3, &row.get::<_, String>(3)?)?,
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

fn read_item(row: &Row<'_>) -> Sql<Item> {
    Ok(Item {
        job: row.get(0)?,
        number: count(row, 1)?,
        state: parsed(2, &row.get::<_, String>(2)?, ItemState::parse)?,
        payload: row.get(3)?,
        failures: row.get(4)?,
        due_at: time(row, 5)?,
        error: row.get(6)?,
        updated_at: time(row, 7)?,
    })
}

fn number(of: u64) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}

impl Transaction<'_> {
    fn jobs_where(&self, rest: &str, values: &[&dyn ToSql]) -> Result<Vec<Job>> {
        let read = || -> Sql<Vec<_>> {
            self.conn
                .prepare_cached(&format!("SELECT {JOB_COLUMNS} FROM jobs {rest}"))?
                .query_map(values, read_job)?
                .collect()
        };
        read().map_err(|e| sql_error(&e))
    }

    fn item_where(&self, rest: &str, values: &[&dyn ToSql]) -> Result<Option<Item>> {
        self.conn
            .prepare_cached(&format!("SELECT {ITEM_COLUMNS} FROM job_items WHERE {rest}"))
            .and_then(|mut s| s.query_row(values, read_item).optional())
            .map_err(|e| sql_error(&e))
    }

    /// Counts an item where it is going instead of where it is; nowhere is being deleted.
    fn count_item(&self, job: &str, of: u64, to: &str, at: Timestamp) -> Result<()> {
        self.change(
            "UPDATE jobs SET
                 total = total - (?3 = ''),
                 pending = pending - (old.state = 'pending') + (?3 = 'pending'),
                 running = running - (old.state = 'running') + (?3 = 'running'),
                 succeeded = succeeded - (old.state = 'succeeded') + (?3 = 'succeeded'),
                 failed = failed - (old.state = 'failed') + (?3 = 'failed'),
                 skipped = skipped - (old.state = 'skipped') + (?3 = 'skipped'),
                 updated_at = ?4
             FROM (SELECT state FROM job_items WHERE job_id = ?1 AND number = ?2) AS old
             WHERE jobs.id = ?1 AND old.state <> ?3",
            &[&job, &number(of), &to, &at.as_millis()],
        )
        .map(drop)
    }
}

impl ReadJobs for Transaction<'_> {
    fn job(&self, id: &str) -> Result<Option<Job>> {
        Ok(self.jobs_where("WHERE id = ?1", &[&id])?.pop())
    }

    fn find_jobs(&self, lookup: JobLookup<'_>, limit: usize) -> Result<Vec<Job>> {
        let order =
            format!("AND state <> 'loading' ORDER BY state <> 'open', created_at DESC, id LIMIT {limit}");
        match lookup {
            JobLookup::Name(name) => self.jobs_where(&format!("WHERE name = ?1 {order}"), &[&name]),
            // `~` is greater than everything in an id.
            JobLookup::IdPrefix(prefix) => self.jobs_where(
                &format!("WHERE id >= ?1 AND id < ?2 {order}"),
                &[&prefix, &format!("{prefix}~")],
            ),
        }
    }

    fn jobs(&self, limit: u64) -> Result<(Vec<Job>, u64)> {
        let found = self.jobs_where(
            "WHERE state <> 'loading' ORDER BY created_at DESC, id LIMIT ?1",
            &[&number(limit)],
        )?;
        let total = self
            .conn
            .prepare_cached("SELECT count(*) FROM jobs WHERE state <> 'loading'")
            .and_then(|mut s| s.query_row([], |row| count(row, 0)))
            .map_err(|e| sql_error(&e))?;
        Ok((found, total))
    }

    fn loading_jobs(&self) -> Result<Vec<Job>> {
        // Spelled as the index is, which has nothing else that is unfinished but a few.
        self.jobs_where(
            "INDEXED BY jobs_unfinished WHERE state IN ('loading', 'open') AND state = 'loading' ORDER BY name",
            &[],
        )
    }

    fn item(&self, job: &str, of: u64) -> Result<Option<Item>> {
        self.item_where("job_id = ?1 AND number = ?2", &[&job, &number(of)])
    }

    fn items(&self, filter: &ItemFilter) -> Result<Vec<Item>> {
        let mut terms = vec![format!("number > {}", number(filter.after))];
        let mut values: Vec<&dyn ToSql> = Vec::new();
        if let Some(job) = &filter.job {
            terms.push("job_id = ?1".to_owned());
            values.push(job);
        }
        if let Some(state) = filter.state {
            terms.push(format!("state = '{state}'"));
        }
        let sql = format!(
            "SELECT {ITEM_COLUMNS} FROM job_items WHERE {} ORDER BY job_id, number LIMIT {}",
            terms.join(" AND "),
            number(filter.limit)
        );
        let read =
            || -> Sql<Vec<_>> { self.conn.prepare(&sql)?.query_map(&values[..], read_item)?.collect() };
        read().map_err(|e| sql_error(&e))
    }

    fn first_pending(&self, job: &str) -> Result<Option<Item>> {
        self.item_where("job_id = ?1 AND state = 'pending' ORDER BY due_at, number LIMIT 1", &[&job])
    }
}

impl WriteJobs for Transaction<'_> {
    fn insert_job(&mut self, job: &NewJob) -> Result<()> {
        let definition = to_json(&job.definition).map_err(|e| sql_error(&e))?;
        self.change(
            "INSERT INTO jobs (id, name, state, definition, created_at, updated_at)
             VALUES (?1, ?2, 'loading', ?3, ?4, ?4)",
            &[&job.id, &job.name, &definition, &self.now.as_millis()],
        )
        .map(drop)
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
        self.change(
            "UPDATE job_items SET state = ?3, failures = ?4, due_at = ?5, error = ?6, updated_at = ?7
             WHERE job_id = ?1 AND number = ?2",
            &[
                &item.job,
                &number(item.number),
                &item.state.as_str(),
                &item.failures,
                &item.due_at.as_millis(),
                &item.error,
                &item.updated_at.as_millis(),
            ],
        )
        .map(drop)
    }

    fn delete_items(&mut self, job: &str, numbers: &[u64]) -> Result<()> {
        for of in numbers {
            self.count_item(job, *of, "", self.now)?;
            self.change("DELETE FROM job_items WHERE job_id = ?1 AND number = ?2", &[&job, &number(*of)])?;
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
        self.change("DELETE FROM job_items WHERE job_id = ?1", &[&id])?;
        self.change("DELETE FROM jobs WHERE id = ?1", &[&id]).map(drop)
    }
}
