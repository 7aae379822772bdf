//! A store that does not answer for a while. The outage is reported once, ends no work, and loses no outcome (F6).

use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenure_core::duration::format_short;
use tenure_core::outcome::{KeptOutcome, Outcomes};
use tenure_core::{Error, Result};

/// The pause before the store is tried again.
pub(crate) const RETRY: Duration = Duration::from_millis(500);
/// An outcome that could not be written for this long is kept outside the store.
const KEEP_AFTER: Duration = Duration::from_secs(1);

/// Whether the store could not answer because it is unreachable, locked, full or inaccessible. That says nothing about a
/// lease. A damaged store, or a row that tenure did not write, is not an outage: waiting would never end.
pub(crate) fn is_outage(error: &Error) -> bool {
    matches!(error, Error::Store { .. } | Error::PermissionDenied { .. })
}

/// Reports once that the store does not answer, and once that it answers again. Shared by the threads of a
/// process.
pub struct Outage<'a> {
    say: &'a (dyn Fn(&str) + Sync),
    since: Mutex<Option<Instant>>,
}

impl<'a> Outage<'a> {
    pub fn new(say: &'a (dyn Fn(&str) + Sync)) -> Self {
        Self { say, since: Mutex::default() }
    }

    pub(crate) fn began(&self, error: &Error) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        if since.is_none() {
            *since = Some(Instant::now());
            (self.say)(&format!("The store does not answer: {error}"));
        }
    }

    /// Whether the store did not answer the last time.
    pub(crate) fn is_on(&self) -> bool {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(crate) fn over(&self) {
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(since) = since {
            let seconds = Duration::from_secs(since.elapsed().as_secs().max(1));
            (self.say)(&format!("The store answers again, after {}", format_short(seconds)));
        }
    }
}

impl fmt::Debug for Outage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outage").field("since", &self.since).finish_non_exhaustive()
    }
}

/// How the write of an outcome ended.
pub(crate) enum OutcomeWrite<T> {
    /// The store has answered.
    Answered(T),
    /// The outcome was not written, for this reason. It is kept outside the store, unless that failed and was
    /// reported.
    Kept(Error),
}

/// Writes an outcome to the store, and retries until the store answers. After a second without an answer, the outcome is
/// also kept outside the store, so that the death of this process does not lose it.
///
/// `stop` waits for the given time and returns whether to give up; then the outcome is kept.
pub(crate) fn write_outcome<T>(
    outcomes: &dyn Outcomes,
    outcome: &KeptOutcome,
    outage: &Outage<'_>,
    mut stop: impl FnMut(Duration) -> bool,
    mut write: impl FnMut() -> Result<T>,
) -> OutcomeWrite<T> {
    let keep = || {
        if let Err(error) = outcomes.keep(outcome) {
            (outage.say)(&format!("The outcome cannot be kept outside the store: {error}"));
        }
    };
    std::thread::scope(|scope| {
        let (answered, answer) = channel::<()>();
        let keeper = scope.spawn(move || {
            let late = answer.recv_timeout(KEEP_AFTER) == Err(RecvTimeoutError::Timeout);
            if late {
                keep();
            }
            late
        });
        let written = loop {
            match write() {
                Ok(value) => break OutcomeWrite::Answered(value),
                Err(error) if is_outage(&error) => {
                    outage.began(&error);
                    if stop(RETRY) {
                        break OutcomeWrite::Kept(error);
                    }
                }
                Err(error) => break OutcomeWrite::Kept(error),
            }
        };
        drop(answered);
        let kept = keeper.join().unwrap_or(false);
        match &written {
            OutcomeWrite::Answered(_) => {
                outage.over();
                // An earlier call may have kept the outcome.
                outcomes.forget(outcome.fence);
            }
            OutcomeWrite::Kept(_) if !kept => keep(),
            OutcomeWrite::Kept(_) => {}
        }
        written
    })
}
