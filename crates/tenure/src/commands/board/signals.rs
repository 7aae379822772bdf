//! The signals of a terminal: its size has changed, or the process is to stop.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fd::{AsFd, BorrowedFd};
use signal_hook::SigId;
use tenure_runner::{LocalStream, local_pair};

use crate::sys;

#[derive(Debug)]
pub(super) struct TerminalSignals {
    pipe: LocalStream,
    stop: Arc<AtomicBool>,
    registered: Vec<SigId>,
}

impl TerminalSignals {
    /// Installs the handlers until the value is dropped.
    pub(super) fn listen() -> std::io::Result<Self> {
        let (pipe, ring) = local_pair()?;
        pipe.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut registered = Vec::new();
        // The flag is set before the pipe becomes readable.
        for signal in sys::STOP_SIGNALS {
            registered.push(signal_hook::flag::register(*signal, Arc::clone(&stop))?);
        }
        let caught = Arc::new(AtomicUsize::new(0));
        registered.extend(sys::ring_at(sys::STOP_SIGNALS, &ring, &caught)?);
        registered.extend(sys::ring_at(sys::RESIZE_SIGNALS, &ring, &caught)?);
        Ok(Self { pipe, stop, registered })
    }

    /// Readable when a signal has arrived.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Whether the process is to stop. Resets the flag and the descriptor.
    pub(super) fn take_stop(&self) -> bool {
        let mut buffer = [0; 64];
        let _ = (&self.pipe).read(&mut buffer);
        self.stop.swap(false, Ordering::SeqCst)
    }
}

impl Drop for TerminalSignals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
