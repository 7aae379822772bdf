//! The output of the selected task's agent, read from the log of its attempt.
//!
//! Memory is bounded: only the last lines are kept.

use std::collections::VecDeque;
use std::time::Duration;

use rustix::fd::BorrowedFd;
use tenure_core::error::TaskName;
use tenure_core::id::{AttemptId, TaskId};
use tenure_runner::transcript::{EntryKind, Transcript};
use tenure_runner::{LogReader, LogWatch};

use crate::app::Open;
use crate::commands::tasks::attempt_log;

/// The lines that are kept.
const KEPT: usize = 2000;
/// The lines of a log that are read before the screen is drawn again.
const AT_ONCE: usize = 5000;

/// The lines to show, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    pub(super) lines: VecDeque<(EntryKind, String)>,
    /// Why there is no output.
    pub(super) note: Option<String>,
}

#[derive(Debug)]
struct Log {
    reader: LogReader,
    transcript: Transcript,
    watch: LogWatch,
    /// The last read did not reach the end of the log.
    has_more: bool,
}

/// The log of one attempt.
#[derive(Debug)]
pub(super) struct AttemptOutput {
    task: TaskId,
    attempt: Option<AttemptId>,
    log: Option<Log>,
}

impl AttemptOutput {
    /// Opens the log of the newest attempt at the task. `newest` is the newest attempt that the board knows
    /// of.
    pub(super) fn open(
        open: &Open<'_>,
        task: &TaskName,
        newest: Option<&AttemptId>,
        lines: &mut Lines,
    ) -> Self {
        *lines = Lines::default();
        let of = |log| Self { task: TaskId::new(&task.id), attempt: newest.cloned(), log };
        let none = |lines: &mut Lines, note: String| {
            lines.note = Some(note);
            of(None)
        };
        let (attempt, path) = match attempt_log::find(open, task, None) {
            Ok(found) => found,
            Err(report) => return none(lines, report.message),
        };
        match LogReader::open(&path) {
            Ok(reader) => {
                let transcript = Transcript::new(attempt.agent.as_deref());
                of(Some(Log { reader, transcript, watch: LogWatch::new(&path), has_more: false }))
            }
            Err(error) => none(lines, attempt_log::cannot_open(&error, task, &path).message),
        }
    }

    /// Whether there was no log that could be read.
    pub(super) fn is_unreadable(&self) -> bool {
        self.log.is_none()
    }

    /// Whether this is the log of the newest attempt, `attempt`, at the task.
    pub(super) fn is_of(&self, task: &TaskId, attempt: Option<&AttemptId>) -> bool {
        self.task == *task && self.attempt.as_ref() == attempt
    }

    /// Readable when the log has grown; `None` if the system does not report that.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.log.as_ref()?.watch.fd()
    }

    /// When to read again without a report.
    pub(super) fn recheck(&self) -> Duration {
        match &self.log {
            Some(log) if log.has_more => Duration::ZERO,
            Some(log) => log.watch.recheck(),
            None => Duration::MAX,
        }
    }

    /// Reads what is new.
    pub(super) fn read(&mut self, lines: &mut Lines) {
        let Some(Log { reader, transcript, watch, has_more }) = &mut self.log else { return };
        watch.clear();
        *has_more = true;
        for _ in 0..AT_ONCE {
            let Ok(Some(line)) = reader.next_line() else {
                *has_more = false;
                break;
            };
            for entry in transcript.read(&line) {
                lines.lines.extend(entry.lines().into_iter().map(|line| (entry.kind, line)));
            }
        }
        let extra = lines.lines.len().saturating_sub(KEPT);
        lines.lines.drain(..extra);
    }
}
