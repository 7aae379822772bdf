//! Listening to an agent's output, and knowing when to stop.
//!
//! The end of the pipe is not enough: a process out of anybody's reach may keep it open for ever. So whoever knows that the
//! agent is over says so, and what the pipe holds by then is read and no more.

use std::io::PipeReader;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use super::output::{AttemptLog, LastWord, pump};
use crate::wait::until_any;

/// A poll needs a limit.
const LONG: Duration = Duration::from_hours(1);
/// How often the pipe is looked into after the agent is over; each look reads as much as it holds.
const LAST_LOOKS: usize = 64;
/// How long the rest of the output may take to be written down.
const PATIENCE: Duration = Duration::from_secs(2);

/// The supervisor's end: says when it is over.
#[derive(Debug)]
pub(crate) struct Ear {
    stop: Mutex<Option<UnixStream>>,
    done: Mutex<Receiver<()>>,
}

/// The reader's end, for a thread of its own.
#[derive(Debug)]
pub(crate) struct Listener {
    from: PipeReader,
    stopped: UnixStream,
    done: SyncSender<()>,
}

pub(crate) fn listen(from: PipeReader) -> std::io::Result<(Ear, Listener)> {
    let (stop, stopped) = UnixStream::pair()?;
    let (done, heard) = sync_channel(1);
    let ear = Ear { stop: Mutex::new(Some(stop)), done: Mutex::new(heard) };
    Ok((ear, Listener { from, stopped, done }))
}

impl Ear {
    /// The agent is over. Comes back when what it has printed is written down.
    pub(crate) fn close(&self) {
        if let Ok(mut stop) = self.stop.lock()
            && stop.take().is_some()
            && let Ok(done) = self.done.lock()
        {
            let _ = done.recv_timeout(PATIENCE);
        }
    }
}

impl Listener {
    pub(crate) fn run(self, log: &Mutex<AttemptLog>, last: &LastWord, heard: &mut dyn FnMut(&[u8])) {
        let mut looks = 0;
        let more = || loop {
            if looks > LAST_LOOKS {
                return false;
            }
            let over = looks > 0;
            let limit = if over { Duration::ZERO } else { LONG };
            let woken = until_any(&[self.from.as_fd(), self.stopped.as_fd()], limit);
            let stopped = woken.get(1) == Some(&true);
            if over || stopped {
                looks += 1;
            }
            if woken.first() == Some(&true) {
                return true;
            }
            if over {
                return false;
            }
        };
        pump(&self.from, more, log, last, heard);
        let _ = self.done.try_send(());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_was_printed_is_written_down_although_somebody_keeps_the_pipe_open() {
        let folder = tempfile::tempdir().unwrap();
        let log = Mutex::new(AttemptLog::create(folder.path(), "a", Arc::new(tenure_core::SystemClock)));
        let (reader, mut writer) = std::io::pipe().unwrap();
        let (ear, listener) = listen(reader).unwrap();
        std::thread::scope(|scope| {
            let last = LastWord::default();
            let log = &log;
            scope.spawn(move || listener.run(log, &last, &mut |_| ()));
            writer.write_all(b"one\ntwo").unwrap();
            ear.close();
        });
        drop(writer);
        assert_eq!(log.lock().unwrap().tail(), ["one", "two"]);
    }
}
