//! Rows of runners and of the health of their presets.

use crate::error::Result;
use crate::runner::{PresetHealth, Runner};

pub trait ReadRunners {
    fn runner(&self, id: &str) -> Result<Option<Runner>>;
    /// Newest first: those that are not over, and the last `ended` of the others.
    fn runners(&self, ended: u64) -> Result<Vec<Runner>>;
    fn preset_health(&self, preset: &str) -> Result<Option<PresetHealth>>;
    fn parked_presets(&self) -> Result<Vec<PresetHealth>>;
}

pub trait WriteRunners {
    /// Inserts it, or replaces what was there.
    fn save_runner(&mut self, runner: &Runner) -> Result<()>;
    fn save_preset_health(&mut self, health: &PresetHealth) -> Result<()>;
}
