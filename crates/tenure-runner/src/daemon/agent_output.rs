//! Reads an agent's output on a thread until the agent has ended.
//!
//! Waiting for the end of the pipe is not enough, because a process that escaped may keep it open forever. So the
//! supervisor signals the end of the agent; the reader then reads what is left in the pipe and stops.

use std::io::PipeReader;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use rustix::fd::AsFd;

use super::output::{AttemptLog, LastOutput, pump};
use crate::sys::{LocalStream, OutputPipe, local_pair};
use crate::wait::until_any;

/// The longest poll; nothing depends on it.
const LONG: Duration = Duration::from_hours(1);
/// The number of reads after the agent has ended; each takes as much as the pipe holds.
const LAST_READS: usize = 64;
/// How long to wait until the rest of the output is written.
const PATIENCE: Duration = Duration::from_secs(2);

/// The supervisor's side, which signals that the agent has ended.
#[derive(Debug)]
pub(crate) struct ReaderHandle {
    stop: Mutex<Option<LocalStream>>,
    done: Mutex<Receiver<()>>,
}

/// The reader's side, to be run on a separate thread.
#[derive(Debug)]
pub(crate) struct OutputReader {
    from: OutputPipe,
    stopped: LocalStream,
    done: SyncSender<()>,
}

pub(crate) fn read_output(from: PipeReader) -> std::io::Result<(ReaderHandle, OutputReader)> {
    let (stop, stopped) = local_pair()?;
    let (done, finished) = sync_channel(1);
    let handle = ReaderHandle { stop: Mutex::new(Some(stop)), done: Mutex::new(finished) };
    Ok((handle, OutputReader { from: OutputPipe::new(from)?, stopped, done }))
}

impl ReaderHandle {
    /// The agent has ended. Returns when its output is in the log.
    pub(crate) fn finish(&self) {
        if let Ok(mut stop) = self.stop.lock()
            && stop.take().is_some()
            && let Ok(done) = self.done.lock()
        {
            let _ = done.recv_timeout(PATIENCE);
        }
    }
}

impl OutputReader {
    pub(crate) fn run(self, log: &Mutex<AttemptLog>, last: &LastOutput, on_line: &mut dyn FnMut(&[u8])) {
        let mut reads = 0;
        let more = || loop {
            if reads > LAST_READS {
                return false;
            }
            let over = reads > 0;
            let limit = if over { Duration::ZERO } else { LONG };
            let woken = until_any(&[self.from.fd(), self.stopped.as_fd()], limit);
            let stopped = woken.get(1) == Some(&true);
            if over || stopped {
                reads += 1;
            }
            if woken.first() == Some(&true) {
                return true;
            }
            if over {
                return false;
            }
        };
        pump(&self.from, more, log, last, on_line);
        let _ = self.done.try_send(());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn output_is_logged_although_another_process_keeps_the_pipe_open() {
        let folder = tempfile::tempdir().unwrap();
        let log = Mutex::new(AttemptLog::create(folder.path(), "a", Arc::new(tenure_core::SystemClock)));
        let (reader, mut writer) = std::io::pipe().unwrap();
        let (handle, reader) = read_output(reader).unwrap();
        std::thread::scope(|scope| {
            let last = LastOutput::default();
            let log = &log;
            scope.spawn(move || reader.run(log, &last, &mut |_| ()));
            writer.write_all(b"one\ntwo").unwrap();
            handle.finish();
        });
        drop(writer);
        assert_eq!(log.lock().unwrap().tail(), ["one", "two"]);
    }
}
