//! SIGINT and SIGTERM as a file descriptor to poll, so that a waiter can remove its ticket before the process exits.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fd::{AsFd, BorrowedFd};
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use tenure_core::Error;
use tenure_runner::{LocalStream, local_pair, until_any};

use crate::sys;

const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

#[derive(Debug)]
pub(crate) struct Interrupts {
    pipe: LocalStream,
    which: Arc<AtomicUsize>,
    registered: Vec<SigId>,
}

impl Interrupts {
    /// Installs the handlers. Until the value is dropped, the signals do not end the process.
    pub(crate) fn listen() -> Result<Self, Error> {
        let failed = |e: std::io::Error| Error::General(format!("cannot listen for signals: {e}"));
        let (pipe, write) = local_pair().map_err(failed)?;
        pipe.set_nonblocking(true).map_err(failed)?;
        let which = Arc::new(AtomicUsize::new(0));
        let mut registered = Vec::new();
        // The number is set before the bell is rung, because handlers are called in the order in which they were registered.
        for signal in SIGNALS {
            let number = usize::try_from(signal).unwrap_or(0);
            registered
                .push(signal_hook::flag::register_usize(signal, Arc::clone(&which), number).map_err(failed)?);
        }
        registered.extend(sys::ring_at(&SIGNALS, &write, &which).map_err(failed)?);
        Ok(Self { pipe, which, registered })
    }

    /// Sleeps until a signal arrives or `nap` has passed.
    pub(crate) fn wait(&self, nap: std::time::Duration) {
        until_any(&[self.fd()], nap);
    }

    /// The received signal as an exit code: 130 or 143.
    pub(crate) fn caught(&self) -> Option<u8> {
        self.drain();
        exit_code(self.which.load(Ordering::SeqCst))
    }

    /// The signal received since the last call, as an exit code.
    pub(crate) fn take(&self) -> Option<u8> {
        self.drain();
        // A swap, because a signal between a load and a store would be lost.
        exit_code(self.which.swap(0, Ordering::SeqCst))
    }

    /// Readable when a signal has arrived.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    fn drain(&self) {
        let mut buffer = [0; 16];
        let _ = (&self.pipe).read(&mut buffer);
    }
}

fn exit_code(signal: usize) -> Option<u8> {
    match signal {
        0 => None,
        signal => u8::try_from(128 + signal).ok(),
    }
}

impl tenure_runner::Signals for Interrupts {
    fn fd(&self) -> BorrowedFd<'_> {
        Self::fd(self)
    }

    fn take(&self) -> Option<i32> {
        Self::take(self).map(|code| i32::from(code) - 128)
    }
}

impl tenure_demo::Interrupts for Interrupts {
    fn caught(&self) -> Option<u8> {
        Self::caught(self)
    }

    fn wait(&self, time: std::time::Duration) {
        Self::wait(self, time);
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
