//! The server's clock as known to this process: the last time that was read, plus the monotonic time since then. This
//! machine's wall clock is not used.

use std::sync::Mutex;
use std::time::Instant;

use tenure_core::{Clock, Timestamp};

#[derive(Debug)]
pub struct ServerClock(Mutex<(Timestamp, Instant)>);

impl ServerClock {
    pub(crate) fn new() -> Self {
        Self(Mutex::new((Timestamp::from_millis(0), Instant::now())))
    }

    pub(crate) fn set(&self, now: Timestamp) {
        if let Ok(mut last) = self.0.lock() {
            *last = (now, Instant::now());
        }
    }
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        match self.0.lock() {
            Ok(last) => last.0.after(last.1.elapsed()),
            Err(broken) => broken.into_inner().0,
        }
    }
}
