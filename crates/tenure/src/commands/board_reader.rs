//! Reads the data of both boards: the store, the state outside it, and what running agents have used so far.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use tenure_core::Timestamp;
use tenure_core::board::{self, Board, Query, Surroundings, TaskDetail};
use tenure_core::ending::Usage;
use tenure_core::id::AttemptId;
use tenure_core::lease::{Attempt, AttemptState};
use tenure_runner::RunLog;

use super::tasks::attempt_log;
use super::{exclusive, why};
use crate::app::{App, Open};
use crate::identity::Identity;
use crate::report::CommandResult;
use crate::trust;

/// The most lines of a log that are read at once, because an agent may print endlessly.
const LINES: usize = 100_000;

/// Remembers how far the logs of running attempts were read.
#[derive(Debug, Default)]
pub(crate) struct BoardReader {
    held: OpenLogs,
    shown: OpenLogs,
}

impl BoardReader {
    pub(crate) fn board(
        &self,
        app: &App<'_>,
        open: &Open<'_>,
        identity: &Identity,
        query: &Query,
    ) -> CommandResult<Board> {
        let rows =
            why::asking(app, open, identity, |asking| open.read(|view| board::read(view, asking, query)))?;
        let examined = trust::examine(app.env, &open.paths).ok();
        let untrusted = examined.filter(|found| !found.allows_agents(app.env));
        let around = Surroundings {
            name: open.config.project.name.clone(),
            path: open.paths.root.display().to_string(),
            untrusted: untrusted.map(|found| found.refusal().message),
            exclusive: exclusive::blocking_lock(&open.paths.root).map(|seen| seen.sentence),
            used_so_far: self.held.used(open, rows.held_attempts()),
        };
        Ok(rows.board(app.env.judge.as_ref(), &around))
    }

    /// One task with its last `events` events, and the time of the store.
    pub(crate) fn task(
        &self,
        app: &App<'_>,
        open: &Open<'_>,
        identity: &Identity,
        reference: &str,
        events: u64,
    ) -> CommandResult<(Timestamp, TaskDetail)> {
        let (now, mut detail) = why::asking(app, open, identity, |asking| {
            open.read(|view| Ok((view.now(), board::read_task(view, asking, reference, events)?)))
        })?;
        let so_far = self.shown.used(open, std::iter::once(detail.attempts.as_slice()));
        detail.used = board::used(&detail.attempts, &so_far);
        Ok((now, detail))
    }
}

/// The logs of running attempts, each read up to where it ended at the last read.
#[derive(Debug, Default)]
struct OpenLogs(RefCell<HashMap<AttemptId, RunLog>>);

impl OpenLogs {
    /// What the running attempts on this machine have used so far. `tasks`: all attempts at each task.
    fn used<'a>(
        &self,
        open: &Open<'_>,
        tasks: impl Iterator<Item = &'a [Attempt]>,
    ) -> BTreeMap<AttemptId, Usage> {
        let mut logs = self.0.borrow_mut();
        let (mut still_running, mut used) = (HashMap::new(), BTreeMap::new());
        for attempts in tasks {
            let running = attempts.iter().find(|attempt| attempt.state != AttemptState::Ended);
            let Some((attempt, path)) = running.and_then(|a| Some((a, attempt_log::local(open, a)?))) else {
                continue;
            };
            let known = logs.remove(&attempt.id).or_else(|| RunLog::open(attempt, &path));
            let Some(mut log) = known else { continue };
            log.read(LINES);
            used.extend(log.used(attempts).map(|used| (attempt.id.clone(), used)));
            still_running.insert(attempt.id.clone(), log);
        }
        *logs = still_running;
        used
    }
}
