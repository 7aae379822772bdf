//! A store that does not answer for a while: it is said once, nothing ends because of it, and outcomes are not lost (F6).

use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenure_core::duration::format_short;
use tenure_core::outcome::{KeptOutcome, Outcomes};
use tenure_core::{Error, Result};

/// The pause before the store is asked again.
pub(crate) const RETRY: Duration = Duration::from_millis(500);
/// An outcome that could not be written for this long is kept outside the store.
const KEEP_AFTER: Duration = Duration::from_secs(1);

/// Whether the store could not answer: it is away, locked, full or cannot be accessed. This tells nothing about a lease. A
/// damaged store, or a row that tenure did not write, is none: waiting would not end.
pub(crate) fn is_outage(error: &Error) -> bool {
    matches!(error, Error::Store { .. } | Error::PermissionDenied { .. })
}

/// Says once that the store does not answer, and once that it does again. Shared by the threads of a process.
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

    /// Whether the store did not answer when it was last asked.
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

/// What became of an outcome.
pub(crate) enum Written<T> {
    /// The store has answered.
    Answered(T),
    /// Not written, for this reason. It is kept, unless that was said to be impossible.
    Kept(Error),
}

/// Writes an outcome to the store, however long that takes. If the store has not answered after a second, the outcome is
/// kept in addition, so that the death of this process does not lose it.
///
/// `stop` waits for the given time and tells whether to give up waiting; then the outcome is kept.
pub(crate) fn write_outcome<T>(
    outcomes: &dyn Outcomes,
    outcome: &KeptOutcome,
    outage: &Outage<'_>,
    mut stop: impl FnMut(Duration) -> bool,
    mut write: impl FnMut() -> Result<T>,
) -> Written<T> {
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
                Ok(value) => break Written::Answered(value),
                Err(error) if is_outage(&error) => {
                    outage.began(&error);
                    if stop(RETRY) {
                        break Written::Kept(error);
                    }
                }
                Err(error) => break Written::Kept(error),
            }
        };
        drop(answered);
        let kept = keeper.join().unwrap_or(false);
        match &written {
            Written::Answered(_) => {
                outage.over();
                // Also what an earlier call has kept.
                outcomes.forget(outcome.fence);
            }
            Written::Kept(_) if !kept => keep(),
            Written::Kept(_) => {}
        }
        written
    })
}
