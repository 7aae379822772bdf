//! Jobs and their items. Counts are computed at each call.

use tenure_core::event::NewEvent;
use tenure_core::job::{Counts, Definition, Item, ItemState, Job, JobState};
use tenure_core::store::{ItemFilter, JobLookup, NewJob, ReadJobs, WriteFeed, WriteJobs};
use tenure_core::{Error, Result, Timestamp};

use super::MemoryTx;
use super::state::State;

impl State {
    fn counted(&self, job: &Job) -> Job {
        let mut counts = Counts::default();
        for item in self.items.values().filter(|item| item.job == job.id) {
            counts.total += 1;
            *match item.state {
                ItemState::Pending => &mut counts.pending,
                ItemState::Running => &mut counts.running,
                ItemState::Succeeded => &mut counts.succeeded,
                ItemState::Failed => &mut counts.failed,
                ItemState::Skipped => &mut counts.skipped,
            } += 1;
        }
        Job { counts, ..job.clone() }
    }

    /// Newest first.
    fn counted_jobs(&self, wanted: impl Fn(&Job) -> bool) -> Vec<Job> {
        let mut found: Vec<_> = self.jobs.values().filter(|job| wanted(job)).collect();
        found.sort_by(|a, b| b.created_at.cmp(&a.created_at).then_with(|| a.id.cmp(&b.id)));
        found.into_iter().map(|job| self.counted(job)).collect()
    }
}

fn limited<T>(mut found: Vec<T>, limit: u64) -> Vec<T> {
    found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    found
}

impl ReadJobs for MemoryTx {
    fn job(&self, id: &str) -> Result<Option<Job>> {
        Ok(self.state.jobs.get(id).map(|job| self.state.counted(job)))
    }

    fn find_jobs(&self, lookup: JobLookup<'_>, limit: usize) -> Result<Vec<Job>> {
        let mut found = self.state.counted_jobs(|job| {
            job.state != JobState::Loading
                && match lookup {
                    JobLookup::Name(name) => job.name == name,
                    JobLookup::IdPrefix(prefix) => job.id.starts_with(prefix),
                }
        });
        found.sort_by_key(|job| job.state != JobState::Open);
        found.truncate(limit);
        Ok(found)
    }

    fn jobs(&self, limit: u64) -> Result<(Vec<Job>, u64)> {
        let found = self.state.counted_jobs(|job| job.state != JobState::Loading);
        let total = found.len() as u64;
        Ok((limited(found, limit), total))
    }

    fn loading_jobs(&self) -> Result<Vec<Job>> {
        let mut found = self.state.counted_jobs(|job| job.state == JobState::Loading);
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    fn item(&self, job: &str, number: u64) -> Result<Option<Item>> {
        Ok(self.state.items.get(&(job.to_owned(), number)).cloned())
    }

    fn items(&self, filter: &ItemFilter) -> Result<Vec<Item>> {
        let wanted = |item: &&Item| {
            filter.job.as_ref().is_none_or(|job| item.job == *job)
                && filter.state.is_none_or(|state| item.state == state)
                && item.number > filter.after
        };
        Ok(limited(self.state.items.values().filter(wanted).cloned().collect(), filter.limit))
    }

    fn first_pending(&self, job: &str) -> Result<Option<Item>> {
        let pending = |item: &&Item| item.job == job && item.state == ItemState::Pending;
        let first = self.state.items.values().filter(pending).min_by_key(|item| (item.due_at, item.number));
        Ok(first.cloned())
    }
}

impl WriteJobs for MemoryTx {
    fn insert_job(&mut self, new: &NewJob) -> Result<()> {
        let unfinished = |job: &Job| matches!(job.state, JobState::Loading | JobState::Open);
        if self.state.jobs.values().any(|job| job.name == new.name && unfinished(job)) {
            return Err(Error::store("an unfinished job has this name"));
        }
        let job = Job {
            id: new.id.clone(),
            name: new.name.clone(),
            state: JobState::Loading,
            definition: new.definition.clone(),
            counts: Counts::default(),
            created_at: self.now,
            updated_at: self.now,
        };
        self.state.jobs.insert(new.id.clone(), job);
        Ok(())
    }

    fn insert_items(&mut self, job: &str, first: u64, payloads: &[String]) -> Result<()> {
        for (number, payload) in (first..).zip(payloads) {
            let item = Item {
                job: job.to_owned(),
                number,
                state: ItemState::Pending,
                payload: payload.clone(),
                failures: 0,
                due_at: self.now,
                error: None,
                updated_at: self.now,
            };
            if self.state.items.insert((job.to_owned(), number), item).is_some() {
                return Err(Error::store("an item has this number"));
            }
        }
        Ok(())
    }

    fn set_job_state(&mut self, id: &str, to: JobState, event: NewEvent<'_>) -> Result<()> {
        if let Some(job) = self.state.jobs.get_mut(id) {
            job.state = to;
            job.updated_at = self.now;
        }
        self.append(event)
    }

    fn set_definition(&mut self, id: &str, definition: &Definition) -> Result<()> {
        if let Some(job) = self.state.jobs.get_mut(id) {
            job.definition = definition.clone();
            job.updated_at = self.now;
        }
        Ok(())
    }

    fn save_item(&mut self, item: &Item) -> Result<()> {
        let Some(row) = self.state.items.get_mut(&(item.job.clone(), item.number)) else { return Ok(()) };
        let moved = row.state != item.state;
        let payload = std::mem::take(&mut row.payload);
        *row = Item { payload, ..item.clone() };
        if let Some(job) = self.state.jobs.get_mut(&item.job).filter(|_| moved) {
            job.updated_at = item.updated_at;
        }
        Ok(())
    }

    fn delete_items(&mut self, job: &str, numbers: &[u64]) -> Result<()> {
        for number in numbers {
            self.state.items.remove(&(job.to_owned(), *number));
        }
        Ok(())
    }

    fn requeue_items(&mut self, job: &str, from: ItemState, due_at: Timestamp) -> Result<u64> {
        let mut changed = 0;
        for item in self.state.items.values_mut().filter(|item| item.job == job && item.state == from) {
            item.state = ItemState::Pending;
            item.failures = 0;
            item.due_at = due_at;
            item.updated_at = self.now;
            changed += 1;
        }
        if let Some(job) = self.state.jobs.get_mut(job).filter(|_| changed > 0) {
            job.updated_at = self.now;
        }
        Ok(changed)
    }

    fn delete_job(&mut self, id: &str) -> Result<()> {
        self.state.items.retain(|(job, _), _| job != id);
        self.state.jobs.remove(id);
        Ok(())
    }
}
