//! One recorded process: signalled only if it is still that one.

use std::io;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure_core::holder::{Incarnation, Judge, Liveness};

use crate::wait::{Process, limit_for, until_any};

/// Signals exactly that process and waits for its end. True if it is gone, also if it was before; a recycled pid is never
/// signalled.
pub fn signal_one(
    who: &Incarnation,
    judge: &dyn Judge,
    signal: Signal,
    patience: Duration,
) -> io::Result<bool> {
    let Some(process) = Process::open_alive(who, judge) else { return Ok(true) };
    process.signal(signal)?;
    let end = Instant::now() + patience;
    let fds: Vec<_> = process.fd().into_iter().collect();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let exited = until_any(&fds, limit_for(Some(&process), left)).first() == Some(&true);
        if exited || (fds.is_empty() && judge.liveness(who) != Liveness::Alive) {
            return Ok(true);
        }
        if left.is_zero() {
            return Ok(false);
        }
    }
}
