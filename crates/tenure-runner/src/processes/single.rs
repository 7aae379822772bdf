//! Signals a single recorded process after verifying its identity.

use std::io;
use std::time::{Duration, Instant};

use tenure_core::holder::{Incarnation, Judge, Liveness};

use crate::sys::Signal;
use crate::wait::{Process, limit_for, until_any};

/// Signals exactly that process and waits for its end. Returns true if it has ended, even if it had ended before the
/// call; a recycled pid is never signalled.
pub fn signal_one(
    process: &Incarnation,
    judge: &dyn Judge,
    signal: Signal,
    patience: Duration,
) -> io::Result<bool> {
    let Some(opened) = Process::open_alive(process, judge) else { return Ok(true) };
    opened.signal(signal)?;
    let end = Instant::now() + patience;
    let fds: Vec<_> = opened.fd().into_iter().collect();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let exited = until_any(&fds, limit_for(Some(&opened), left)).first() == Some(&true);
        if exited || (fds.is_empty() && judge.liveness(process) != Liveness::Alive) {
            return Ok(true);
        }
        if left.is_zero() {
            return Ok(false);
        }
    }
}
