//! Runners and the health of their presets.

use rusqlite::{OptionalExtension, Row, params};
use tenure_core::Result;
use tenure_core::id::{SectionId, TaskId};
use tenure_core::runner::{PresetHealth, Runner, RunnerStatus};
use tenure_core::store::{ReadRunners, WriteRunners};

use crate::connection::Transaction;
use crate::error::sql_error;
use crate::rows::{Sql, json, optional_time, parsed, time, to_json};

const RUNNER_COLUMNS: &str = "id, status, process, project_path, section_id, preset, current_task_id, log_path, \
     started_at, heartbeat_at, completed_at, error";

fn read_runner(row: &Row<'_>) -> Sql<Runner> {
    Ok(Runner {
        id: row.get(0)?,
        status: parsed(1, &row.get::<_, String>(1)?, RunnerStatus::parse)?,
        process: json(2, &row.get::<_, String>(2)?)?,
        project_path: row.get(3)?,
        section: row.get::<_, Option<String>>(4)?.map(SectionId::new),
        preset: row.get(5)?,
        current_task: row.get::<_, Option<String>>(6)?.map(TaskId::new),
        log_path: row.get(7)?,
        started_at: time(row, 8)?,
        heartbeat_at: time(row, 9)?,
        completed_at: optional_time(row, 10)?,
        error: row.get(11)?,
    })
}

const HEALTH_COLUMNS: &str = "preset, quick_failures, parked_at, next_try_at, times_parked, reason, tasks";

fn read_health(row: &Row<'_>) -> Sql<PresetHealth> {
    Ok(PresetHealth {
        preset: row.get(0)?,
        quick_failures: row.get(1)?,
        parked_at: optional_time(row, 2)?,
        next_try_at: optional_time(row, 3)?,
        times_parked: row.get(4)?,
        reason: row.get(5)?,
        tasks: json(6, &row.get::<_, String>(6)?)?,
    })
}

impl ReadRunners for Transaction<'_> {
    fn runner(&self, id: &str) -> Result<Option<Runner>> {
        self.conn
            .prepare_cached(&format!("SELECT {RUNNER_COLUMNS} FROM runners WHERE id = ?1"))
            .and_then(|mut s| s.query_row([id], read_runner).optional())
            .map_err(|e| sql_error(&e))
    }

    fn runners(&self, ended: u64) -> Result<Vec<Runner>> {
        let read = || -> Sql<Vec<_>> {
            let over = "status IN ('completed', 'failed')";
            let sql = format!(
                "SELECT {RUNNER_COLUMNS} FROM runners WHERE NOT {over} OR id IN
                   (SELECT id FROM runners WHERE {over} ORDER BY started_at DESC LIMIT {ended})
                 ORDER BY started_at DESC, id"
            );
            self.conn.prepare_cached(&sql)?.query_map([], read_runner)?.collect()
        };
        read().map_err(|e| sql_error(&e))
    }

    fn preset_health(&self, preset: &str) -> Result<Option<PresetHealth>> {
        self.conn
            .prepare_cached(&format!("SELECT {HEALTH_COLUMNS} FROM preset_health WHERE preset = ?1"))
            .and_then(|mut s| s.query_row([preset], read_health).optional())
            .map_err(|e| sql_error(&e))
    }

    fn parked_presets(&self) -> Result<Vec<PresetHealth>> {
        let read = || -> Sql<Vec<_>> {
            self.conn
                .prepare_cached(&format!(
                    "SELECT {HEALTH_COLUMNS} FROM preset_health WHERE parked_at IS NOT NULL ORDER BY preset"
                ))?
                .query_map([], read_health)?
                .collect()
        };
        read().map_err(|e| sql_error(&e))
    }
}

impl WriteRunners for Transaction<'_> {
    fn save_runner(&mut self, runner: &Runner) -> Result<()> {
        let save = || -> Sql<usize> {
            self.conn
                .prepare_cached(&format!(
                    "INSERT INTO runners ({RUNNER_COLUMNS})
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
                     ON CONFLICT (id) DO UPDATE SET status = ?2, process = ?3, project_path = ?4, section_id = ?5,
                       preset = ?6, current_task_id = ?7, log_path = ?8, started_at = ?9, heartbeat_at = ?10,
                       completed_at = ?11, error = ?12"
                ))?
                .execute(params![
                    runner.id,
                    runner.status.as_str(),
                    to_json(&runner.process)?,
                    runner.project_path,
                    runner.section.as_ref().map(SectionId::as_str),
                    runner.preset,
                    runner.current_task.as_ref().map(TaskId::as_str),
                    runner.log_path,
                    runner.started_at.as_millis(),
                    runner.heartbeat_at.as_millis(),
                    runner.completed_at.map(tenure_core::Timestamp::as_millis),
                    runner.error,
                ])
        };
        save().map(drop).map_err(|e| sql_error(&e))
    }

    fn save_preset_health(&mut self, health: &PresetHealth) -> Result<()> {
        let save = || -> Sql<usize> {
            self.conn
                .prepare_cached(&format!(
                    "INSERT INTO preset_health ({HEALTH_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                     ON CONFLICT (preset) DO UPDATE SET quick_failures = ?2, parked_at = ?3, next_try_at = ?4,
                       times_parked = ?5, reason = ?6, tasks = ?7"
                ))?
                .execute(params![
                    health.preset,
                    health.quick_failures,
                    health.parked_at.map(tenure_core::Timestamp::as_millis),
                    health.next_try_at.map(tenure_core::Timestamp::as_millis),
                    health.times_parked,
                    health.reason,
                    to_json(&health.tasks)?,
                ])
        };
        save().map(drop).map_err(|e| sql_error(&e))
    }
}
