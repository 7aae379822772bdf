//! SIGINT and SIGTERM as a file descriptor to poll, so that a waiter can remove its ticket before the process exits.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use tenure_core::Error;
use tenure_runner::until_any;

#[derive(Debug)]
pub(crate) struct Interrupts {
    pipe: UnixStream,
    which: Arc<AtomicUsize>,
    registered: Vec<SigId>,
}

impl Interrupts {
    /// Installs the handlers. Until the value is dropped, the signals do not end the process.
    pub(crate) fn listen() -> Result<Self, Error> {
        let failed = |e: std::io::Error| Error::General(format!("cannot listen for signals: {e}"));
        let (pipe, write) = UnixStream::pair().map_err(failed)?;
        pipe.set_nonblocking(true).map_err(failed)?;
        let which = Arc::new(AtomicUsize::new(0));
        let mut registered = Vec::new();
        for signal in [SIGINT, SIGTERM] {
            let number = usize::try_from(signal).unwrap_or(0);
            registered
                .push(signal_hook::flag::register_usize(signal, Arc::clone(&which), number).map_err(failed)?);
            let end = write.try_clone().map_err(failed)?;
            registered.push(signal_hook::low_level::pipe::register(signal, end).map_err(failed)?);
        }
        Ok(Self { pipe, which, registered })
    }

    /// Sleeps until a signal arrives or `nap` has passed.
    pub(crate) fn wait(&self, nap: std::time::Duration) {
        until_any(&[self.pipe.as_fd()], nap);
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

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
