//! Runners and what is parked, in SQL.

use super::SqlTx;
use crate::error::Result;
use crate::parking::{Parking, Subject};
use crate::runner::Runner;
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

    fn parking(&self, subject: &Subject) -> Result<Option<Parking>> {
        let subject = subject.to_string();
        Ok(self.select("subject = ?", &[(&subject).into()])?.pop())
    }

    fn parked(&self) -> Result<Vec<Parking>> {
        self.select("parked_at IS NOT NULL ORDER BY subject", &[])
    }
}

impl<T: SqlTx> WriteRunners for T {
    fn save_runner(&mut self, runner: &Runner) -> Result<()> {
        self.upsert_own(Runner::TABLE, &runner.values()?)
    }

    fn save_parking(&mut self, parking: &Parking) -> Result<()> {
        self.upsert(Parking::TABLE, &parking.values()?)
    }
}
