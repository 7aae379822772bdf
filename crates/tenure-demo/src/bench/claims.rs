//! Claims in one process, against the same rows written with SQLite alone.

use std::time::Instant;

use super::fixture::{agent, claim, claimable_keys, tasks_for};
use super::raw_claims::RawClaims;
use super::statistics::median;
use super::{Bench, to_float};
use crate::Result;

/// The number of claims that are timed together, alternating with as many raw ones.
const BLOCK: usize = 40;

impl Bench<'_> {
    /// Claims per second.
    pub fn claims(&mut self) -> Result<()> {
        let count = self.rounds(40) * BLOCK;
        let fixture = self.fixture(tasks_for(count))?;
        let (store, caller) = (fixture.store()?, agent("a"));
        let raw = RawClaims::create(&fixture.project.root().join("raw.db"), tasks_for(count))?;
        let keys: Vec<String> = claimable_keys().take(count).collect();
        let (mut claim_times, mut raw_times) = (Vec::new(), Vec::new());
        for (number, block) in keys.chunks_exact(BLOCK).enumerate() {
            let begun = Instant::now();
            for key in block {
                claim(store.as_ref(), &caller, key)?;
            }
            claim_times.push(begun.elapsed());
            let begun = Instant::now();
            for (index, key) in block.iter().enumerate() {
                raw.claim(key, number * BLOCK + index)?;
            }
            raw_times.push(begun.elapsed());
            self.check_interrupts()?;
        }
        let (claims, raw) = (median(&mut claim_times), median(&mut raw_times));
        self.results.add("raw commits of a claim's rows, synced", to_float(BLOCK as u64) / raw, "/s");
        self.results.at_least("claims per second ÷ raw commits", raw / claims, "×", 0.6);
        Ok(())
    }
}
