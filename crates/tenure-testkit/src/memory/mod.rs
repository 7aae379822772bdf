//! A store in a few maps: the simplest implementation of the row traits, with which the other stores are compared.
//!
//! A transaction works on a copy of the whole state, and a commit replaces the original by the copy. Every derived
//! value (open dependencies, readiness, the next task) is computed from its definition at each call.

mod feed;
mod fingerprint;
mod jobs;
mod leases;
mod pruning;
mod runners;
mod sections;
mod sessions;
mod state;
mod tasks;

use std::cell::OnceCell;
use std::sync::{Arc, Mutex};

use tenure_core::holder::Incarnation;
use tenure_core::id::{Ids, RandomIds, StoreId};
use tenure_core::store::{Durability, Store, Tx, View};
use tenure_core::{Clock, Result, Timestamp};

pub use state::{MessageRow, SectionRow, State, TaskRow};

use crate::clock::ManualClock;

#[derive(Debug)]
pub struct MemoryStore {
    id: StoreId,
    state: Mutex<State>,
    clock: Arc<ManualClock>,
    rings: Rings,
}

/// The doorbells that commits have rung, in order.
pub type Rings = Arc<Mutex<Vec<String>>>;

impl MemoryStore {
    pub fn new(clock: Arc<ManualClock>) -> Self {
        Self::with_state(State::default(), clock)
    }

    pub fn with_state(state: State, clock: Arc<ManualClock>) -> Self {
        Self { id: RandomIds.store(), state: Mutex::new(state), clock, rings: Rings::default() }
    }

    pub fn state(&self) -> State {
        self.state.lock().unwrap().clone()
    }

    pub fn rings(&self) -> Rings {
        Arc::clone(&self.rings)
    }

    /// Runs one transaction on a copy of some rows. Returns its result, the rows afterwards, and the doorbells
    /// that it rings.
    pub fn on_copy<T>(
        rows: &State,
        now: Timestamp,
        mut body: impl FnMut(&mut dyn Tx) -> Result<T>,
    ) -> (Result<T>, State, Vec<String>) {
        let mut tx =
            MemoryTx { state: rows.clone(), now, rings: Vec::new(), dead_processes: OnceCell::new() };
        match body(&mut tx) {
            Ok(answer) => (Ok(answer), tx.state, tx.rings),
            Err(error) => (Err(error), rows.clone(), Vec::new()),
        }
    }

    fn begin(&self) -> MemoryTx {
        MemoryTx {
            state: self.state(),
            now: self.clock.now(),
            rings: Vec::new(),
            dead_processes: OnceCell::new(),
        }
    }
}

impl Store for MemoryStore {
    fn id(&self) -> Result<StoreId> {
        Ok(self.id.clone())
    }

    fn read_with(&self, body: &mut dyn FnMut(&dyn View) -> Result<()>) -> Result<()> {
        body(&self.begin())
    }

    fn write_with(
        &self,
        _durability: Durability,
        body: &mut dyn FnMut(&mut dyn Tx) -> Result<()>,
    ) -> Result<()> {
        let mut tx = self.begin();
        body(&mut tx)?;
        *self.state.lock().unwrap() = tx.state;
        self.rings.lock().unwrap().append(&mut tx.rings);
        Ok(())
    }
}

/// A running transaction, on its copy of the state.
#[derive(Debug)]
struct MemoryTx {
    state: State,
    now: Timestamp,
    rings: Vec<String>,
    dead_processes: OnceCell<Vec<Incarnation>>,
}

impl View for MemoryTx {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn dead_processes(&self) -> &OnceCell<Vec<Incarnation>> {
        &self.dead_processes
    }
}

impl Tx for MemoryTx {
    fn skip_sync(&mut self) {}
}
