//! One recorded process: signalled only if it is still that one.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tenure_core::holder::{Incarnation, Judge, Liveness};

use crate::wait::until_any;

/// Signals exactly that process and waits for its end. True if it is gone, also if it was before; a recycled pid is never
/// signalled.
pub fn signal_one(
    who: &Incarnation,
    judge: &dyn Judge,
    signal: Signal,
    patience: Duration,
) -> io::Result<bool> {
    let pid = i32::try_from(who.process.pid).ok().and_then(Pid::from_raw);
    let Some(pidfd) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return Ok(true) };
    // Asked after opening: from here on the descriptor means the process that was recorded, or none.
    if judge.liveness(who) != Liveness::Alive {
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
