//! Who reads a connection: whoever talks over it, and in between a thread that listens, if anybody is to be rung.
//!
//! The thread never stands between a question and its answer. It only waits for the socket, and looks into the connection when
//! nobody talks.

use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::runtime::Runtime;
use tokio_postgres::AsyncMessage;

use crate::connect::Connection;
use crate::doorbell::Bell;

/// A bell, and the channel on which it is rung.
#[derive(Debug)]
pub(crate) struct Ear {
    pub(crate) channel: String,
    pub(crate) bell: Bell,
}

pub(crate) struct State {
    /// None when it has ended.
    connection: Option<Connection>,
    ear: Option<Ear>,
    talking: bool,
}

impl State {
    /// Reads what there is. Notices and the like are nobody's business; the end reaches whoever waits for an answer by itself.
    pub(crate) fn read(&mut self, cx: &mut Context<'_>) {
        while let Some(open) = &mut self.connection {
            match open.poll_message(cx) {
                Poll::Ready(Some(Ok(AsyncMessage::Notification(note)))) => {
                    if let Some(ear) = &self.ear
                        && ear.channel == note.channel()
                    {
                        ear.bell.ring();
                    }
                }
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_)) | None) => {
                    self.connection = None;
                    if let Some(ear) = &self.ear {
                        ear.bell.ring();
                    }
                }
                Poll::Pending => return,
            }
        }
    }
}

pub(crate) struct Reading {
    state: Mutex<State>,
    quiet: Condvar,
}

/// While this lives, nobody else reads.
pub(crate) struct Talk(Arc<Reading>);

impl Drop for Talk {
    fn drop(&mut self) {
        self.0.lock().talking = false;
        self.0.quiet.notify_one();
    }
}

impl Reading {
    pub(crate) fn of(connection: Connection) -> Arc<Self> {
        let state = State { connection: Some(connection), ear: None, talking: false };
        Arc::new(Self { state: Mutex::new(state), quiet: Condvar::new() })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn talk(self: &Arc<Self>) -> Talk {
        self.lock().talking = true;
        Talk(Arc::clone(self))
    }

    pub(crate) fn end(&self) {
        self.lock().connection = None;
    }

    /// From now on `ear` hears what comes, also when nobody talks.
    pub(crate) fn listen(
        self: &Arc<Self>,
        ear: Ear,
        socket: OwnedFd,
        runtime: Arc<Runtime>,
    ) -> std::io::Result<()> {
        self.lock().ear = Some(ear);
        let reading = Arc::clone(self);
        let hear = move || while reading.hear(&socket, &runtime) {};
        std::thread::Builder::new().name("postgres".into()).spawn(hear)?;
        Ok(())
    }

    /// Waits until something comes, and reads it when nobody talks. False when nothing more will come.
    fn hear(&self, socket: &OwnedFd, runtime: &Runtime) -> bool {
        let mut fds = [PollFd::new(socket, PollFlags::IN)];
        if poll(&mut fds, None).is_err_and(|e| e != Errno::INTR) {
            return false;
        }
        let talking = |state: &mut State| state.talking;
        let mut state = self.quiet.wait_while(self.lock(), talking).unwrap_or_else(PoisonError::into_inner);
        runtime.block_on(async {
            // Between two looks the runtime notes that there is something to read.
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
