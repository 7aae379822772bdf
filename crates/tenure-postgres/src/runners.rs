//! Runners and the health of their presets.

use tenure_core::id::{SectionId, TaskId};
use tenure_core::runner::{PresetHealth, Runner, RunnerStatus};
use tenure_core::store::{ReadRunners, WriteRunners};
use tenure_core::{Result, Timestamp};
use tokio_postgres::Row;

use crate::rows::{all, get, json, limit_of, narrow, optional_time, parsed, time, to_json};
use crate::transaction::Transaction;

const RUNNER_COLUMNS: &str = "id, status, process, project_path, section_id, preset, current_task_id, log_path, \
     started_at, heartbeat_at, completed_at, error";

fn read_runner(row: &Row) -> Result<Runner> {
    Ok(Runner {
        id: get(row, 0)?,
        status: parsed(get(row, 1)?, RunnerStatus::parse)?,
        process: json(get(row, 2)?)?,
        project_path: get(row, 3)?,
        section: get::<Option<String>>(row, 4)?.map(SectionId::new),
        preset: get(row, 5)?,
        current_task: get::<Option<String>>(row, 6)?.map(TaskId::new),
        log_path: get(row, 7)?,
        started_at: time(row, 8)?,
        heartbeat_at: time(row, 9)?,
        completed_at: optional_time(row, 10)?,
        error: get(row, 11)?,
    })
}

const HEALTH_COLUMNS: &str = "preset, quick_failures, parked_at, next_try_at, times_parked, reason, tasks";

fn read_health(row: &Row) -> Result<PresetHealth> {
    Ok(PresetHealth {
        preset: get(row, 0)?,
        quick_failures: narrow(row, 1)?,
        parked_at: optional_time(row, 2)?,
        next_try_at: optional_time(row, 3)?,
        times_parked: narrow(row, 4)?,
        reason: get(row, 5)?,
        tasks: json(get(row, 6)?)?,
    })
}

impl ReadRunners for Transaction<'_> {
    fn runner(&self, id: &str) -> Result<Option<Runner>> {
        let sql = format!("SELECT {RUNNER_COLUMNS} FROM tenure.runners WHERE project = $1 AND id = $2");
        self.row(&sql, &[&id])?.map(|row| read_runner(&row)).transpose()
    }

    fn runners(&self, ended: u64) -> Result<Vec<Runner>> {
        let over = "status IN ('completed', 'failed')";
        let sql = format!(
            "SELECT {RUNNER_COLUMNS} FROM tenure.runners WHERE project = $1 AND (NOT {over} OR id IN
               (SELECT id FROM tenure.runners WHERE project = $1 AND {over} ORDER BY started_at DESC LIMIT $2))
             ORDER BY started_at DESC, id"
        );
        all(self.rows(&sql, &[&limit_of(ended)])?, read_runner)
    }

    fn preset_health(&self, preset: &str) -> Result<Option<PresetHealth>> {
        let sql =
            format!("SELECT {HEALTH_COLUMNS} FROM tenure.preset_health WHERE project = $1 AND preset = $2");
        self.row(&sql, &[&preset])?.map(|row| read_health(&row)).transpose()
    }

    fn parked_presets(&self) -> Result<Vec<PresetHealth>> {
        let sql = format!(
            "SELECT {HEALTH_COLUMNS} FROM tenure.preset_health
             WHERE project = $1 AND parked_at IS NOT NULL ORDER BY preset"
        );
        all(self.rows(&sql, &[])?, read_health)
    }
}

impl WriteRunners for Transaction<'_> {
    fn save_runner(&mut self, runner: &Runner) -> Result<()> {
        let sql = format!(
            "INSERT INTO tenure.runners (project, {RUNNER_COLUMNS})
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
             ON CONFLICT (project, id) DO UPDATE SET status = $3, process = $4, project_path = $5, section_id = $6,
               preset = $7, current_task_id = $8, log_path = $9, started_at = $10, heartbeat_at = $11,
               completed_at = $12, error = $13"
        );
        self.keep(
            "runners",
            &sql,
            &[
                &runner.id,
                &runner.status.as_str(),
                &to_json(&runner.process)?,
                &runner.project_path,
                &runner.section.as_ref().map(SectionId::as_str),
                &runner.preset,
                &runner.current_task.as_ref().map(TaskId::as_str),
                &runner.log_path,
                &runner.started_at.as_millis(),
                &runner.heartbeat_at.as_millis(),
                &runner.completed_at.map(Timestamp::as_millis),
                &runner.error,
            ],
        )
    }

    fn save_preset_health(&mut self, health: &PresetHealth) -> Result<()> {
        let sql = format!(
            "INSERT INTO tenure.preset_health (project, {HEALTH_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
             ON CONFLICT (project, preset) DO UPDATE SET quick_failures = $3, parked_at = $4, next_try_at = $5,
               times_parked = $6, reason = $7, tasks = $8"
        );
        self.keep(
            "preset_health",
            &sql,
            &[
                &health.preset,
                &i64::from(health.quick_failures),
                &health.parked_at.map(Timestamp::as_millis),
                &health.next_try_at.map(Timestamp::as_millis),
                &i64::from(health.times_parked),
                &health.reason,
                &to_json(&health.tasks)?,
            ],
        )
    }
}
