//! When a transaction or a connection is tried again, and for how long.

use std::time::{Duration, Instant};

use crate::connection::Sql;
use crate::error::{Failure, Remedy};
use crate::store::OpenOptions;

/// The first and the longest pause between two tries to reach a server.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How long a command with the default patience waits for a free connection of the server. Other commands release their
/// connections within seconds, and a holder that gave up earlier could not renew its lease.
const CONNECTION_PATIENCE: Duration = Duration::from_mins(1);

/// The pauses between tries.
pub(crate) struct Retries {
    begun: Instant,
    patience: Duration,
    pause: Duration,
}

impl Retries {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { begun: Instant::now(), patience, pause: FIRST_PAUSE }
    }

    /// How long to try. A caller that chose a shorter patience than the default retries by itself.
    fn patience(&self, is_exhausted: bool) -> Duration {
        let default = OpenOptions::default().patience;
        if is_exhausted && self.patience >= default { CONNECTION_PATIENCE } else { self.patience }
    }

    /// Sleeps before the next try, or returns the failure if there is no next try.
    pub(crate) fn next(&mut self, failure: Failure) -> Sql<()> {
        let pause = match failure.remedy() {
            Remedy::None => return Err(failure),
            Remedy::Retry | Remedy::RetryExclusively | Remedy::RetryWithoutRings => Duration::ZERO,
            Remedy::Reconnect => self.pause,
        };
        if self.begun.elapsed() + pause >= self.patience(failure.is_exhaustion()) {
            return Err(failure);
        }
        std::thread::sleep(pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_free_connection_is_given_more_time_unless_the_caller_has_less() {
        let default = Retries::new(OpenOptions::default().patience);
        assert_eq!(default.patience(false), OpenOptions::default().patience);
        assert_eq!(default.patience(true), CONNECTION_PATIENCE);
        assert_eq!(Retries::new(Duration::from_secs(1)).patience(true), Duration::from_secs(1));
    }
}
