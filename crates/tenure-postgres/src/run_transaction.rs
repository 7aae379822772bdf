//! Running a transaction until it is known whether it was committed.

use tenure_core::error::Advice;
use tenure_core::hints;
use tenure_core::store::{ClaimHint, ClaimTarget, Durability, Tx, View};
use tenure_core::{Error, Result};

use crate::commit::flush;
use crate::connection::{Connection, Sql};
use crate::error::{Failure, Remedy};
use crate::retries::Retries;
use crate::store::{PostgresStore, unknown_project};
use crate::transaction::{Trace, Transaction, Writer};

fn uncertain(error: &Error) -> Error {
    Error::Store {
        message: format!("{error}; the commit was sent, and whether it succeeded is not known"),
        advice: Advice::hints([hints::show_status()]),
    }
}

impl PostgresStore {
    pub(crate) fn writer(&self, durability: Durability) -> Writer {
        Writer {
            client: self.client,
            durability,
            request: self.request.get(),
            again: None,
            shares: false,
            silent: false,
            any_standing: false,
            expected: self.expected.get(),
        }
    }

    pub(crate) fn read_once(
        &self,
        connection: &mut Connection,
        exclusive: bool,
        body: &mut dyn FnMut(&dyn View) -> Result<()>,
    ) -> Sql<Result<()>> {
        let (clock, writer) = (self.options.clock.as_deref(), self.writer(Durability::Power));
        let begun = if exclusive {
            Transaction::writing(connection, &self.address, self.project, writer, clock, None)?
        } else {
            Transaction::reading(connection, &self.address, self.project, clock)?
        };
        let tx = begun.ok_or_else(|| Failure::Refused(unknown_project()))?;
        self.clock.set(tx.state.now);
        let outcome = body(&tx);
        tx.undo(outcome)
    }

    /// A transaction that is not retried.
    pub(crate) fn write_untried(
        &self,
        durability: Durability,
        body: &mut dyn FnMut(&mut Transaction<'_>) -> Result<()>,
    ) -> Result<()> {
        self.request.set(self.request.get() + 1);
        let writer = self.writer(durability);
        let outcome =
            self.with_connection(|connection| self.write_once(connection, &writer, None, &mut None, body));
        outcome.unwrap_or_else(|failure| Err(failure.into_error(&self.address)))
    }

    /// A transaction over all rows, whatever the store's standing is. It is not retried.
    pub(crate) fn transfer(&self, body: &mut dyn FnMut(&mut Transaction<'_>) -> Result<()>) -> Result<()> {
        self.request.set(self.request.get() + 1);
        let writer = Writer { any_standing: true, ..self.writer(Durability::Power) };
        let mut sent = None;
        let outcome = self.with_connection(|connection| {
            connection.at_length(|connection, settings| {
                self.write_once(connection, &writer, None, &mut sent, &mut |tx| {
                    tx.run(settings)?;
                    body(tx)
                })
            })
        });
        outcome.unwrap_or_else(|failure| {
            let error = failure.into_error(&self.address);
            Err(if sent.is_some() { uncertain(&error) } else { error })
        })
    }

    pub(crate) fn write_until_known(
        &self,
        durability: Durability,
        hint: Option<ClaimHint<'_>>,
        mut shares: bool,
        body: &mut dyn FnMut(&mut dyn Tx) -> Result<()>,
    ) -> Result<()> {
        let _span = tracing::debug_span!("write", ?durability, shares).entered();
        self.request.set(self.request.get() + 1);
        let first = self.writer(durability);
        let mut retries = Retries::new(self.options.patience);
        // After the commit was sent, the transaction may be committed even if no answer arrives.
        let mut sent = None;
        let mut silent = false;
        loop {
            let writer = Writer { again: sent.clone(), shares, silent, ..first.clone() };
            let attempt = self.with_connection(|connection| {
                self.write_once(connection, &writer, hint, &mut sent, &mut |tx| body(tx))
            });
            let failure = match attempt {
                Ok(outcome) => return outcome,
                Err(failure) => failure,
            };
            tracing::debug!(?failure, "the transaction failed; it may be tried again");
            // Only an exclusive turn shows with certainty whether an earlier try was committed.
            shares = false;
            silent |= failure.remedy() == Remedy::RetryWithoutRings;
            if let Err(failure) = retries.next(failure) {
                let error = failure.into_error(&self.address);
                return Err(if sent.is_some() { uncertain(&error) } else { error });
            }
        }
    }

    fn write_once(
        &self,
        connection: &mut Connection,
        writer: &Writer,
        hint: Option<ClaimHint<'_>>,
        sent: &mut Option<Trace>,
        body: &mut dyn FnMut(&mut Transaction<'_>) -> Result<()>,
    ) -> Sql<Result<()>> {
        let clock = self.options.clock.as_deref();
        let begun = match hint {
            Some(ClaimHint { holder, wants: ClaimTarget::Next(section) }) if writer.shares => {
                Transaction::claiming(
                    connection,
                    &self.address,
                    self.project,
                    writer.clone(),
                    clock,
                    holder,
                    section,
                )?
            }
            _ => Transaction::writing(connection, &self.address, self.project, writer.clone(), clock, hint)?,
        };
        let mut tx = begun.ok_or_else(|| Failure::Refused(unknown_project()))?;
        self.clock.set(tx.state.now);
        if writer.durability == Durability::Power {
            self.expected.set(tx.prefetched.get_mut().may_exist);
        }
        // The exclusive turn has begun, so whether an earlier try was committed is certain.
        if tx.already_committed {
            let done = tx.undo(Ok(()))?;
            if writer.durability == Durability::Power {
                let flush = flush(connection);
                connection.batch(&flush)?;
            }
            return Ok(done);
        }
        *sent = None;
        let outcome = body(&mut tx);
        if outcome.is_err() || self.options.dry_run {
            return tx.undo(outcome);
        }
        tx.commit(writer, sent)?;
        Ok(outcome)
    }
}
