//! Rows of runners and of what is parked.

use super::columns::{Table, parkings, runners};
use super::rows::{Reader, Record, Values, json};
use crate::ending::Ending;
use crate::error::Result;
use crate::id::{Fence, SectionId, TaskId};
use crate::parking::{Parking, Subject};
use crate::runner::{Runner, RunnerStatus};

pub trait ReadRunners {
    fn runner(&self, id: &str) -> Result<Option<Runner>>;
    /// Newest first: all runners that have not ended, and the last `ended` of the others.
    fn runners(&self, ended: u64) -> Result<Vec<Runner>>;
    fn parking(&self, subject: &Subject) -> Result<Option<Parking>>;
    /// What is parked, in the order of the subjects.
    fn parked(&self) -> Result<Vec<Parking>>;
}

pub trait WriteRunners {
    /// Inserts the runner, or replaces the row with its id.
    fn save_runner(&mut self, runner: &Runner) -> Result<()>;
    /// Inserts the row of the subject, or replaces it.
    fn save_parking(&mut self, parking: &Parking) -> Result<()>;
}

impl Record for Runner {
    const TABLE: &'static Table = &runners::TABLE;

    fn read(row: Reader<'_>) -> Result<Self> {
        Ok(Self {
            id: row.string(runners::id)?,
            status: row.parsed(runners::status, RunnerStatus::parse)?,
            process: row.json(runners::process)?,
            project_path: row.string(runners::project_path)?,
            section: row.optional_text(runners::section_id)?.map(SectionId::new),
            preset: row.string(runners::preset)?,
            current_task: row.optional_text(runners::current_task_id)?.map(TaskId::new),
            log_path: row.optional_string(runners::log_path)?,
            started_at: row.time(runners::started_at)?,
            heartbeat_at: row.time(runners::heartbeat_at)?,
            completed_at: row.optional_time(runners::completed_at)?,
            error: row.optional_string(runners::error)?,
        })
    }
}

impl Runner {
    pub fn values(&self) -> Result<Values<'_>> {
        Ok(vec![
            (runners::id, (&self.id).into()),
            (runners::status, self.status.as_str().into()),
            (runners::process, json(&self.process)?.into()),
            (runners::project_path, (&self.project_path).into()),
            (runners::section_id, self.section.as_ref().map(SectionId::as_str).into()),
            (runners::preset, (&self.preset).into()),
            (runners::current_task_id, self.current_task.as_ref().map(TaskId::as_str).into()),
            (runners::log_path, self.log_path.as_ref().into()),
            (runners::started_at, self.started_at.into()),
            (runners::heartbeat_at, self.heartbeat_at.into()),
            (runners::completed_at, self.completed_at.into()),
            (runners::error, self.error.as_ref().into()),
        ])
    }
}

impl Record for Parking {
    const TABLE: &'static Table = &parkings::TABLE;

    fn read(row: Reader<'_>) -> Result<Self> {
        Ok(Self {
            subject: row.parsed(parkings::subject, Subject::parse)?,
            ending: row.optional_parsed(parkings::ending, Ending::parse)?,
            in_a_row: row.narrow(parkings::in_a_row)?,
            attempts: row.json(parkings::attempts)?,
            parked_at: row.optional_time(parkings::parked_at)?,
            next_try_at: row.optional_time(parkings::next_try_at)?,
            resets_at: row.optional_time(parkings::resets_at)?,
            times_parked: row.narrow(parkings::times_parked)?,
            reason: row.optional_string(parkings::reason)?,
            until_changed: row.optional_string(parkings::until_changed)?,
            probe: row.optional_int(parkings::probe)?.map(Fence::new),
        })
    }
}

impl Parking {
    pub fn values(&self) -> Result<Values<'_>> {
        Ok(vec![
            (parkings::subject, self.subject.to_string().into()),
            (parkings::ending, self.ending.map(Ending::as_str).into()),
            (parkings::in_a_row, self.in_a_row.into()),
            (parkings::attempts, json(&self.attempts)?.into()),
            (parkings::parked_at, self.parked_at.into()),
            (parkings::next_try_at, self.next_try_at.into()),
            (parkings::resets_at, self.resets_at.into()),
            (parkings::times_parked, self.times_parked.into()),
            (parkings::reason, self.reason.as_ref().into()),
            (parkings::until_changed, self.until_changed.as_ref().into()),
            (parkings::probe, self.probe.map(Fence::number).into()),
        ])
    }
}
