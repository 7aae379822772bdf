//! Waiting for messages, woken by the doorbell or by polling.

use std::time::{Duration, Instant};

use tenure_core::holder::{Caller, Incarnation};
use tenure_core::kernel;
use tenure_core::lease::Resource;
use tenure_core::store::{Durability, Hint};

use crate::app::{App, Open};
use crate::identity::IdentityArgs;
use crate::interrupt::Interrupts;
use crate::report::{CommandResult, Report};
use crate::store::Doorbell;
use crate::wait_bar::Bar;
use crate::waiting::sleep;

/// Waits for messages. Its ticket in the queue of message waiters tells a sender which doorbells to ring.
#[derive(Debug)]
pub(crate) struct MessageWaiter {
    interrupts: Interrupts,
    doorbell: Option<Doorbell>,
    caller: Caller,
    me: Incarnation,
    ticket: Option<i64>,
}

impl MessageWaiter {
    pub(crate) fn new(app: &App<'_>, open: &Open<'_>, identity_args: &IdentityArgs) -> CommandResult<Self> {
        let mut waiter = Self {
            interrupts: Interrupts::listen().map_err(Report::from)?,
            doorbell: open.store.doorbell(app.env),
            caller: app.identity(identity_args)?.without_lease(),
            me: Incarnation::current(),
            ticket: None,
        };
        waiter.enqueue(open)?;
        Ok(waiter)
    }

    fn enqueue(&mut self, open: &Open<'_>) -> CommandResult<()> {
        let queue = Resource::messages();
        let address = self.doorbell.as_ref().map(Doorbell::address);
        let held = self.ticket.map(|number| (number, &queue));
        let ctx = open.context();
        let number = open.store.write(Durability::Process, |tx| {
            let doorbell = address.as_deref();
            let waiter = kernel::Waiter { caller: &self.caller, process: &self.me, doorbell, review: false };
            kernel::enqueue(tx, &ctx, &waiter, &queue, held)
        })?;
        self.ticket = Some(number);
        Ok(())
    }

    /// Waits for a ring, for at most the poll interval or `left`.
    pub(crate) fn wait(&mut self, app: &mut App<'_>, open: &Open<'_>, left: Duration) -> CommandResult<()> {
        let nap = left.min(open.config.locking.poll_interval);
        let mut bar = Bar::default();
        open.store.hint(Hint::Sleeps);
        let code = sleep(&self.interrupts, self.doorbell.as_ref(), &[], nap, &mut bar, app, Instant::now());
        if let Some(code) = code {
            self.leave(open)?;
            return Err(Report::interrupted(code));
        }
        if let Some(bell) = &self.doorbell {
            bell.silence();
        }
        self.enqueue(open)
    }

    pub(crate) fn leave(&mut self, open: &Open<'_>) -> CommandResult<()> {
        let Some(number) = self.ticket.take() else { return Ok(()) };
        Ok(open.store.write(Durability::Process, |tx| tx.delete_ticket(number))?)
    }
}
