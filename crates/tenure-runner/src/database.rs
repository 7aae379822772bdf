//! The loss of the database file under a lease holder.

use std::io;
use std::path::Path;

use tenure_lock::{KnownFile, Presence};

use crate::heartbeat::LeaseLoss;

#[derive(Debug, Clone)]
pub struct DatabaseFile(KnownFile);

impl DatabaseFile {
    /// The file that exists now.
    pub fn at(path: &Path) -> io::Result<Self> {
        KnownFile::at(path).map(Self)
    }

    /// How the file was lost, if its path no longer leads to it. `None` leaves the decision to the renewal.
    pub fn loss(&self) -> Option<LeaseLoss> {
        match self.0.presence() {
            Presence::InPlace => None,
            Presence::Replaced => Some(LeaseLoss::Replaced(self.0.path().to_owned())),
            Presence::Deleted => Some(LeaseLoss::Deleted(self.0.path().to_owned())),
        }
    }
}
