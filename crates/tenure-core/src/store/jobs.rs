//! Rows of jobs and of their items.

use super::columns::{Table, job_items, jobs};
use super::rows::{Reader, Record, Values, json};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::NewEvent;
use crate::job::{Counts, Definition, Item, ItemState, Job, JobState};

/// How a job may be looked up.
#[derive(Debug, Clone, Copy)]
pub enum JobLookup<'a> {
    Name(&'a str),
    /// Hex digits and dashes, lower case.
    IdPrefix(&'a str),
}

#[derive(Debug, Clone)]
pub struct ItemFilter {
    /// `None` selects the items of all jobs.
    pub job: Option<String>,
    pub state: Option<ItemState>,
    /// Only items with a greater number; for reading a long list in parts.
    pub after: u64,
    pub limit: u64,
}

impl ItemFilter {
    /// All items in state `running`, including those whose holder has died. There are never more of them than workers.
    pub fn running(job: Option<&str>) -> Self {
        let limit = u64::from(u32::MAX);
        Self { job: job.map(str::to_owned), state: Some(ItemState::Running), after: 0, limit }
    }
}

#[derive(Debug, Clone)]
pub struct NewJob {
    pub id: String,
    pub name: String,
    pub definition: Definition,
}

pub trait ReadJobs {
    fn job(&self, id: &str) -> Result<Option<Job>>;
    /// The jobs found, except those in state `loading`: open ones first, then the newest.
    fn find_jobs(&self, lookup: JobLookup<'_>, limit: usize) -> Result<Vec<Job>>;
    /// The newest jobs, and the number of all jobs, both without those in state `loading`.
    fn jobs(&self, limit: u64) -> Result<(Vec<Job>, u64)>;
    /// The jobs in state `loading`, including those whose loading process has died.
    fn loading_jobs(&self) -> Result<Vec<Job>>;
    fn item(&self, job: &str, number: u64) -> Result<Option<Item>>;
    /// Ordered by job and number.
    fn items(&self, filter: &ItemFilter) -> Result<Vec<Item>>;
    /// The pending item with the earliest `due_at`, even if that is in the future; of several, the one with the
    /// smallest number. Its cost does not grow with the number of items.
    fn first_pending(&self, job: &str) -> Result<Option<Item>>;
}

/// The store maintains the counts: a job's counts agree with its items' states at the end of every transaction.
pub trait WriteJobs {
    /// Inserts a job in state `loading`, without items. Refused if a job of that name is open or being loaded.
    fn insert_job(&mut self, job: &NewJob) -> Result<()>;
    /// Inserts pending items that are due at once, numbered from `first` on.
    fn insert_items(&mut self, job: &str, first: u64, payloads: &[String]) -> Result<()>;
    fn set_job_state(&mut self, id: &str, to: JobState, event: NewEvent<'_>) -> Result<()>;
    fn set_definition(&mut self, id: &str, definition: &Definition) -> Result<()>;
    /// Writes every column of the item that can change, which is all but its payload.
    fn save_item(&mut self, item: &Item) -> Result<()>;
    fn delete_items(&mut self, job: &str, numbers: &[u64]) -> Result<()>;
    /// Makes every item in state `from` pending, with no failures and due at `due_at`. Returns how many.
    fn requeue_items(&mut self, job: &str, from: ItemState, due_at: Timestamp) -> Result<u64>;
    /// Deletes the job and its items.
    fn delete_job(&mut self, id: &str) -> Result<()>;
}

impl Record for Job {
    const TABLE: &'static Table = &jobs::TABLE;

    fn read(row: Reader<'_>) -> Result<Self> {
        Ok(Self {
            id: row.string(jobs::id)?,
            name: row.key(jobs::name)?,
            state: row.parsed(jobs::state, JobState::parse)?,
            definition: row.json(jobs::definition)?,
            counts: Counts {
                total: row.narrow(jobs::total)?,
                pending: row.narrow(jobs::pending)?,
                running: row.narrow(jobs::running)?,
                succeeded: row.narrow(jobs::succeeded)?,
                failed: row.narrow(jobs::failed)?,
                skipped: row.narrow(jobs::skipped)?,
            },
            created_at: row.time(jobs::created_at)?,
            updated_at: row.time(jobs::updated_at)?,
        })
    }
}

impl NewJob {
    pub fn values(&self, now: Timestamp) -> Result<Values<'_>> {
        Ok(vec![
            (jobs::id, (&self.id).into()),
            (jobs::name, (&self.name).into()),
            (jobs::state, JobState::Loading.as_str().into()),
            (jobs::definition, json(&self.definition)?.into()),
            (jobs::created_at, now.into()),
            (jobs::updated_at, now.into()),
        ])
    }
}

impl Record for Item {
    const TABLE: &'static Table = &job_items::TABLE;

    fn read(row: Reader<'_>) -> Result<Self> {
        Ok(Self {
            job: row.string(job_items::job_id)?,
            number: row.narrow(job_items::number)?,
            state: row.parsed(job_items::state, ItemState::parse)?,
            payload: row.string(job_items::payload)?,
            failures: row.narrow(job_items::failures)?,
            due_at: row.time(job_items::due_at)?,
            error: row.optional_string(job_items::error)?,
            updated_at: row.time(job_items::updated_at)?,
        })
    }
}

impl Item {
    /// The columns that identify an item.
    pub fn key(job: &str, number: u64) -> Values<'_> {
        vec![(job_items::job_id, job.into()), (job_items::number, number.into())]
    }

    /// The columns that change after the item was inserted.
    pub fn progress(&self) -> Values<'_> {
        vec![
            (job_items::state, self.state.as_str().into()),
            (job_items::failures, self.failures.into()),
            (job_items::due_at, self.due_at.into()),
            (job_items::error, self.error.as_ref().into()),
            (job_items::updated_at, self.updated_at.into()),
        ]
    }
}
