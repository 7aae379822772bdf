//! What this process needs to execute work: its identity, its doorbell and the database file.

use tenure_core::holder::Incarnation;
use tenure_runner::{DatabaseFile, DoorbellRef, Execution, OpenStore};

use crate::app::Open;
use crate::report::CommandResult;
use crate::store::Doorbell;

/// Owns what an [`Execution`] borrows.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) me: Incarnation,
    doorbell: Option<(Doorbell, String)>,
    database: Option<DatabaseFile>,
}

impl Surroundings {
    pub(crate) fn new(open: &Open<'_>) -> CommandResult<Self> {
        let doorbell = open.store.doorbell(open.env);
        Ok(Self {
            me: Incarnation::current(),
            doorbell: doorbell.map(|doorbell| {
                let address = doorbell.address();
                (doorbell, address)
            }),
            database: open.store.file()?,
        })
    }

    /// Without a doorbell, for a process that holds no lease itself.
    pub(crate) fn without_doorbell(open: &Open<'_>) -> CommandResult<Self> {
        Ok(Self { me: Incarnation::current(), doorbell: None, database: open.store.file()? })
    }

    /// The address that a lease or a ticket of this process records.
    pub(crate) fn doorbell_address(&self) -> Option<String> {
        self.doorbell.as_ref().map(|(_, address)| address.clone())
    }

    /// `open_store` opens the handles of heartbeats.
    pub(crate) fn execution<'a>(&'a self, open: &'a Open<'_>, open_store: OpenStore<'a>) -> Execution<'a> {
        Execution {
            open_store,
            ctx: open.context(),
            clock: open.env.clock.as_ref(),
            me: &self.me,
            doorbell: self
                .doorbell
                .as_ref()
                .map(|(doorbell, address)| DoorbellRef { address, fd: doorbell.fd() }),
            database: self.database.as_ref(),
        }
    }
}
