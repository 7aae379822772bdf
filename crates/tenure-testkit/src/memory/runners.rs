//! Runners and what is parked.

use tenure_core::Result;
use tenure_core::parking::{Parking, Subject};
use tenure_core::runner::Runner;
use tenure_core::store::{ReadRunners, WriteRunners};

use super::MemoryTx;

impl ReadRunners for MemoryTx {
    fn runner(&self, id: &str) -> Result<Option<Runner>> {
        Ok(self.state.runners.get(id).cloned())
    }

    fn runners(&self, ended: u64) -> Result<Vec<Runner>> {
        let mut all: Vec<_> = self.state.runners.values().cloned().collect();
        all.sort_by(|a, b| b.started_at.cmp(&a.started_at).then_with(|| a.id.cmp(&b.id)));
        let mut left = ended;
        all.retain(|runner| {
            !runner.status.is_over() || {
                let kept = left > 0;
                left = left.saturating_sub(1);
                kept
            }
        });
        Ok(all)
    }

    fn parking(&self, subject: &Subject) -> Result<Option<Parking>> {
        Ok(self.state.parkings.get(&subject.to_string()).cloned())
    }

    fn parked(&self) -> Result<Vec<Parking>> {
        Ok(self.state.parkings.values().filter(|parking| parking.parked_at.is_some()).cloned().collect())
    }
}

impl WriteRunners for MemoryTx {
    fn save_runner(&mut self, runner: &Runner) -> Result<()> {
        self.state.runners.insert(runner.id.clone(), runner.clone());
        Ok(())
    }

    fn save_parking(&mut self, parking: &Parking) -> Result<()> {
        self.state.parkings.insert(parking.subject.to_string(), parking.clone());
        Ok(())
    }
}
