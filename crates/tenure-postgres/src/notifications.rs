//! Reading notifications between two statements.
//!
//! The thread that runs a statement reads the connection itself. If there is a doorbell, a second thread waits for the
//! socket, and reads the connection only while no statement is in progress.

use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use tokio::runtime::Runtime;
use tokio_postgres::AsyncMessage;

use crate::connect::Protocol;
use crate::doorbell::Doorbells;

pub(crate) struct State {
    /// `None` after the connection has ended.
    connection: Option<Protocol>,
    /// Set when the thread is started.
    doorbells: Option<Arc<Doorbells>>,
    /// A statement is in progress.
    paused: bool,
}

impl State {
    /// Reads what has arrived. Ignores notices. If the connection has ended, a pending query fails by itself.
    pub(crate) fn read(&mut self, cx: &mut Context<'_>) {
        while let Some(open) = &mut self.connection {
            match open.poll_message(cx) {
                Poll::Ready(Some(Ok(AsyncMessage::Notification(note)))) => {
                    if let Some(doorbells) = &self.doorbells {
                        doorbells.ring(note.channel());
                    }
                }
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_)) | None) => {
                    self.connection = None;
                    if let Some(doorbells) = &self.doorbells {
                        doorbells.ring_all();
                    }
                }
                Poll::Pending => return,
            }
        }
    }
}

pub(crate) struct Reader {
    state: Mutex<State>,
    resumed: Condvar,
}

/// While this exists, the thread does not read.
pub(crate) struct ReaderPause(Arc<Reader>);

impl Drop for ReaderPause {
    fn drop(&mut self) {
        self.0.lock().paused = false;
        self.0.resumed.notify_one();
    }
}

impl Reader {
    pub(crate) fn of(connection: Protocol) -> Arc<Self> {
        let state = State { connection: Some(connection), doorbells: None, paused: false };
        Arc::new(Self { state: Mutex::new(state), resumed: Condvar::new() })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pause(self: &Arc<Self>) -> ReaderPause {
        self.lock().paused = true;
        ReaderPause(Arc::clone(self))
    }

    pub(crate) fn end(&self) {
        self.lock().connection = None;
    }

    /// Starts the thread that rings the doorbells, unless it is already running.
    pub(crate) fn start(
        self: &Arc<Self>,
        doorbells: &Arc<Doorbells>,
        socket: &OwnedFd,
        runtime: &Arc<Runtime>,
    ) -> std::io::Result<()> {
        if self.lock().doorbells.replace(Arc::clone(doorbells)).is_some() {
            return Ok(());
        }
        let (reader, socket, runtime) = (Arc::clone(self), socket.try_clone()?, Arc::clone(runtime));
        let read_all = move || while reader.wait_and_read(&socket, &runtime) {};
        std::thread::Builder::new().name("postgres".into()).spawn(read_all)?;
        Ok(())
    }

    /// Waits until something arrives, and reads it while no statement is in progress. False after the end of the
    /// connection.
    fn wait_and_read(&self, socket: &OwnedFd, runtime: &Runtime) -> bool {
        let mut fds = [PollFd::new(socket, PollFlags::IN)];
        if poll(&mut fds, None).is_err_and(|e| e != Errno::INTR) {
            return false;
        }
        let paused = |state: &mut State| state.paused;
        let mut state = self.resumed.wait_while(self.lock(), paused).unwrap_or_else(PoisonError::into_inner);
        runtime.block_on(async {
            // Twice, because the runtime notices only between the two that the socket is readable.
            for _ in 0..2 {
                poll_fn(|cx| {
                    state.read(cx);
                    Poll::Ready(())
                })
                .await;
                tokio::task::yield_now().await;
            }
        });
        state.connection.is_some()
    }
}
