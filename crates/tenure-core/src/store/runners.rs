//! Rows of runners and of the health of their presets.

use super::columns::{Table, preset_health, runners};
use super::rows::{Reader, Record, Values, json};
use crate::error::Result;
use crate::id::{SectionId, TaskId};
use crate::runner::{PresetHealth, Runner, RunnerStatus};

pub trait ReadRunners {
    fn runner(&self, id: &str) -> Result<Option<Runner>>;
    /// Newest first: all runners that have not ended, and the last `ended` of the others.
    fn runners(&self, ended: u64) -> Result<Vec<Runner>>;
    fn preset_health(&self, preset: &str) -> Result<Option<PresetHealth>>;
    fn parked_presets(&self) -> Result<Vec<PresetHealth>>;
}

pub trait WriteRunners {
    /// Inserts the runner, or replaces the row with its id.
    fn save_runner(&mut self, runner: &Runner) -> Result<()>;
    fn save_preset_health(&mut self, health: &PresetHealth) -> Result<()>;
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

impl Record for PresetHealth {
    const TABLE: &'static Table = &preset_health::TABLE;

    fn read(row: Reader<'_>) -> Result<Self> {
        Ok(Self {
            preset: row.string(preset_health::preset)?,
            quick_failures: row.narrow(preset_health::quick_failures)?,
            tasks: row.json(preset_health::tasks)?,
            parked_at: row.optional_time(preset_health::parked_at)?,
            next_try_at: row.optional_time(preset_health::next_try_at)?,
            times_parked: row.narrow(preset_health::times_parked)?,
            reason: row.optional_string(preset_health::reason)?,
        })
    }
}

impl PresetHealth {
    pub fn values(&self) -> Result<Values<'_>> {
        Ok(vec![
            (preset_health::preset, (&self.preset).into()),
            (preset_health::quick_failures, self.quick_failures.into()),
            (preset_health::tasks, json(&self.tasks)?.into()),
            (preset_health::parked_at, self.parked_at.into()),
            (preset_health::next_try_at, self.next_try_at.into()),
            (preset_health::times_parked, self.times_parked.into()),
            (preset_health::reason, self.reason.as_ref().into()),
        ])
    }
}
