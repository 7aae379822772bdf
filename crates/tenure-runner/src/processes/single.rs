//! Signals a single recorded process after verifying its identity.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tenure_core::holder::{Incarnation, Judge, Liveness};

use crate::wait::until_any;

/// Signals exactly that process and waits for its end. True if it has ended, also if it had before; a recycled pid is
/// never signalled.
pub fn signal_one(
    process: &Incarnation,
    judge: &dyn Judge,
    signal: Signal,
    patience: Duration,
) -> io::Result<bool> {
    let pid = i32::try_from(process.process.pid).ok().and_then(Pid::from_raw);
    let Some(pidfd) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return Ok(true) };
    // Verified after opening: from here on the descriptor refers to the recorded process or to none.
    if judge.liveness(process) != Liveness::Alive {
        return Ok(true);
    }
    pidfd_send_signal(&pidfd, signal)?;
    let end = Instant::now() + patience;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if until_any(&[pidfd.as_fd()], left).first() == Some(&true) {
            return Ok(true);
        }
        if left.is_zero() {
            return Ok(false);
        }
    }
}
