//! Runners and the health of presets in SQL.

use super::SqlTx;
use crate::error::Result;
use crate::runner::{PresetHealth, Runner};
use crate::store::rows::Record;
use crate::store::runners::{ReadRunners, WriteRunners};

impl<T: SqlTx> ReadRunners for T {
    fn runner(&self, id: &str) -> Result<Option<Runner>> {
        Ok(self.select("id = ?", &[id.into()])?.pop())
    }

    fn runners(&self, ended: u64) -> Result<Vec<Runner>> {
        // Two queries, so that the first one is answered from the index of runners that have not ended.
        let mut found: Vec<Runner> = self.select("status IN ('idle', 'running')", &[])?;
        if ended > 0 {
            let over = "status IN ('completed', 'failed') ORDER BY started_at DESC, id LIMIT ?";
            found.extend(self.select::<Runner>(over, &[ended.into()])?);
        }
        found.sort_by(|a, b| (b.started_at, &a.id).cmp(&(a.started_at, &b.id)));
        Ok(found)
    }

    fn preset_health(&self, preset: &str) -> Result<Option<PresetHealth>> {
        Ok(self.select("preset = ?", &[preset.into()])?.pop())
    }

    fn parked_presets(&self) -> Result<Vec<PresetHealth>> {
        self.select("parked_at IS NOT NULL ORDER BY preset", &[])
    }
}

impl<T: SqlTx> WriteRunners for T {
    fn save_runner(&mut self, runner: &Runner) -> Result<()> {
        self.upsert(Runner::TABLE, &runner.values()?)
    }

    fn save_preset_health(&mut self, health: &PresetHealth) -> Result<()> {
        self.upsert(PresetHealth::TABLE, &health.values()?)
    }
}
