//! Listening for messages: woken by the doorbell or the poll.

use std::time::{Duration, Instant};

use tenure_core::holder::{Caller, Incarnation};
use tenure_core::kernel;
use tenure_core::lease::Resource;
use tenure_core::store::Durability;

use crate::app::{App, Open};
use crate::identity::Who;
use crate::interrupt::Interrupts;
use crate::report::{Outcome, Report};
use crate::store::Doorbell;
use crate::wait_bar::Bar;
use crate::waiting::sleep;

/// Listens for messages: a ticket in the line of listeners, so that a sender knows whom to ring.
#[derive(Debug)]
pub(crate) struct Listener {
    interrupts: Interrupts,
    doorbell: Option<Doorbell>,
    caller: Caller,
    me: Incarnation,
    ticket: Option<i64>,
}

impl Listener {
    pub(crate) fn new(app: &App<'_>, open: &Open<'_>, who: &Who) -> Outcome<Self> {
        let mut listener = Self {
            interrupts: Interrupts::listen().map_err(Report::from)?,
            doorbell: open.store.doorbell(app.env),
            caller: app.identity(who)?.without_fence(),
            me: Incarnation::current(),
            ticket: None,
        };
        listener.stand(open)?;
        Ok(listener)
    }

    fn stand(&mut self, open: &Open<'_>) -> Outcome<()> {
        let line = Resource::messages();
        let address = self.doorbell.as_ref().map(Doorbell::address);
        let held = self.ticket.map(|number| (number, &line));
        let ctx = open.context();
        let number = open.store.write(Durability::Process, |tx| {
            let viewer = ctx.viewer(tx, None)?;
            kernel::enqueue(tx, &viewer, &line, &self.caller, &self.me, address.as_deref(), held)
        })?;
        self.ticket = Some(number);
        Ok(())
    }

    /// Until a ring, the poll, or `left` is over.
    pub(crate) fn wait(&mut self, app: &mut App<'_>, open: &Open<'_>, left: Duration) -> Outcome<()> {
        let nap = left.min(open.config.locking.poll_interval);
        let mut bar = Bar::default();
        let code = sleep(&self.interrupts, self.doorbell.as_ref(), &[], nap, &mut bar, app, Instant::now());
        if let Some(code) = code {
            self.leave(open)?;
            return Err(Report::interrupted(code));
        }
        if let Some(bell) = &self.doorbell {
            bell.silence();
        }
        self.stand(open)
    }

    pub(crate) fn leave(&mut self, open: &Open<'_>) -> Outcome<()> {
        let Some(number) = self.ticket.take() else { return Ok(()) };
        Ok(open.store.write(Durability::Process, |tx| tx.delete_ticket(number))?)
    }
}
