//! Many processes that write concurrently: whether each gets its share of the transactions.

use std::path::Path;
use std::time::{Duration, Instant};

use tenure_core::store::Store;
use tenure_sqlite::{OpenOptions, SqliteStore};

use super::child::run_together;
use super::fixture::{agent, claim, claimable_keys, release, tasks_for};
use super::{Bench, to_float};
use crate::{Error, Result};

impl Bench<'_> {
    /// The slowest of 8 and of 32 writers against the fastest. The program must accept
    /// `bench --json --writer DATABASE KEY MS` and call [`claim_and_release`] for it.
    pub fn writers(&mut self) -> Result<()> {
        for writers in [8, 32] {
            self.write_at_once(writers)?;
        }
        Ok(())
    }

    fn write_at_once(&mut self, writers: usize) -> Result<()> {
        let time = Duration::from_millis(if self.quick { 500 } else { 5000 });
        let fixture = self.fixture(tasks_for(writers))?;
        let database = fixture.project.database();
        let start = |key: String| {
            let (database, millis) = (database.to_string_lossy(), time.as_millis().to_string());
            fixture.project.command(&["bench", "--json", "--writer", &database, &key, &millis])
        };
        let rounds = run_together(claimable_keys().take(writers).map(start))?;
        self.check_interrupts()?;
        let slowest = to_float(rounds.iter().copied().min().unwrap_or(0));
        let fastest = to_float(rounds.iter().copied().max().unwrap_or(0));
        // A round is a claim and a release.
        let rate = 2.0 * to_float(rounds.iter().sum()) / time.as_secs_f64();
        self.results.add(format!("{writers} writers, all transactions"), rate, "/s");
        let what = format!("{writers} writers, share of slowest ÷ fastest");
        self.results.at_least(what, slowest / fastest, "×", 0.25);
        Ok(())
    }
}

/// The work of one writer: waits for a line on standard input, which all writers get at the same time, then claims and
/// releases a task until the time is up. Returns how often.
pub fn claim_and_release(database: &Path, options: OpenOptions, key: &str, time: Duration) -> Result<u64> {
    let store: Box<dyn Store> = Box::new(SqliteStore::open(database, options)?);
    let caller = agent(key);
    std::io::stdin().read_line(&mut String::new()).map_err(Error::bench)?;
    let end = Instant::now() + time;
    let mut rounds = 0;
    while Instant::now() < end {
        claim(store.as_ref(), &caller, key)?;
        release(store.as_ref(), &caller, key)?;
        rounds += 1;
    }
    Ok(rounds)
}
