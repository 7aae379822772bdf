//! Reads one project for the board, with the model that the terminal board uses as well.

use std::fs::File;
use std::path::PathBuf;

use tenure_core::ErrorCode;
use tenure_core::board::{self, Board, EventLine, Query};
use tenure_core::error::TaskName;
use tenure_core::lease::AttemptState;
use tenure_lock::open_private;
use tenure_runner::transcript::Transcript;
use tenure_serve::Refusal;
use tenure_serve::web::{Action, AttemptLog, LogEntry, Metrics, ProjectHandler, TaskPage};

use super::metrics::History;
use super::projects::{refusal, slug};
use crate::app::{App, Open};
use crate::commands::board_reader::BoardReader;
use crate::commands::runners;
use crate::commands::tasks::attempt_log;
use crate::identity::Identity;
use crate::report::{CommandResult, Report};

/// How many bytes of a log are read, from its end.
const LOG_BYTES: u64 = 128 * 1024;
/// How many entries of a log are shown.
const LOG_ENTRIES: usize = 400;
/// How many events of a task are shown.
const HISTORY: u64 = 100;

#[derive(Debug)]
pub(super) struct WebHandler<'a, 'o> {
    pub(super) app: &'o mut App<'a>,
    pub(super) open: &'o Open<'a>,
    pub(super) identity: Identity,
    history: History,
    boards: BoardReader,
}

impl<'a, 'o> WebHandler<'a, 'o> {
    pub(super) fn new(app: &'o mut App<'a>, open: &'o Open<'a>, identity: Identity) -> Self {
        let name = format!("totals-{}.json", slug(&open.paths.root));
        let file = app.home().ok().map(|home| home.join("web").join(name));
        Self { app, open, identity, history: History::new(file), boards: BoardReader::default() }
    }

    fn read_board(&self, query: &Query) -> CommandResult<Board> {
        self.boards.board(self.app, self.open, &self.identity, query)
    }

    fn read_task(&self, reference: &str) -> CommandResult<TaskPage> {
        let (now, detail) = self.boards.task(self.app, self.open, &self.identity, reference, HISTORY)?;
        let folder = || self.open.paths.root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let project =
            self.open.config.project.name.clone().filter(|name| !name.is_empty()).unwrap_or_else(folder);
        let is_mine = detail.task.lease.as_ref().is_some_and(|lease| lease.held_by(&self.identity.holder));
        let name = tenure_core::kernel::name_of(&detail.task);
        Ok(TaskPage { now, project, detail, is_mine, log: self.log(&name) })
    }

    /// The end of the latest log. A log on another machine is not read; the answer names that machine.
    fn log(&self, task: &TaskName) -> AttemptLog {
        let (attempt, path) = match attempt_log::find(self.open, task, None) {
            Ok(found) => found,
            Err(report) if report.code == ErrorCode::TaskNotFound => return AttemptLog::None,
            Err(report) => return AttemptLog::Unreadable(report.message),
        };
        let opened = open_private(&path, File::options().read(true));
        let (text, size) = match opened {
            Ok(file) => runners::logs::end_of(file, LOG_BYTES),
            Err(error) => {
                return AttemptLog::Unreadable(attempt_log::cannot_open(&error, task, &path).message);
            }
        };
        let mut transcript = Transcript::new(attempt.agent.as_deref());
        let mut entries: Vec<LogEntry> = Vec::new();
        for line in text.lines() {
            for entry in transcript.read(line) {
                let text = entry.lines().join("\n");
                entries.push(LogEntry { at: entry.at, kind: entry.kind.as_str(), text });
            }
        }
        let dropped = entries.len().saturating_sub(LOG_ENTRIES);
        entries.drain(..dropped);
        let is_live = attempt.state != AttemptState::Ended;
        AttemptLog::Lines { entries, is_cut: size > LOG_BYTES || dropped > 0, is_live }
    }
}

impl ProjectHandler for WebHandler<'_, '_> {
    fn board(&mut self, query: &Query) -> Result<Board, Refusal> {
        self.read_board(query).map_err(refusal)
    }

    fn events(&mut self, limit: u64) -> Result<Vec<EventLine>, Refusal> {
        self.open.read(|view| board::recent_events(view, limit)).map_err(Report::from).map_err(refusal)
    }

    fn task(&mut self, reference: &str) -> Result<TaskPage, Refusal> {
        self.read_task(reference).map_err(refusal)
    }

    fn live_log(&mut self, reference: &str) -> Result<Option<PathBuf>, Refusal> {
        let task = self.open.resolve(reference).map_err(Report::from).map_err(refusal)?;
        // If there is no log, the page shows the reason.
        let found = attempt_log::find(self.open, &task, None).ok();
        Ok(found.filter(|(attempt, _)| attempt.state != AttemptState::Ended).map(|(_, path)| path))
    }

    fn act(&mut self, action: &Action) -> Result<String, Refusal> {
        self.make(action).map_err(refusal)
    }

    fn metrics(&mut self) -> Result<Metrics, Refusal> {
        self.history.read(self.open).map_err(Report::from).map_err(refusal)
    }
}
