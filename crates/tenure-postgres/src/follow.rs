//! Following a project: waking a reader after a commit by any client, by a notification that writers send only if a reader
//! has asked for one.
//!
//! A reader asks by setting `projects.followed`, in a separate turn: every change before that is committed and can be read, and
//! every change after it finds the request in the row that it reads anyway. The first of them clears it and notifies the channel
//! on which all readers of the project listen; each asks again before it reads again. So a change costs nothing without a reader,
//! a reader that was killed costs one notification, and no answer to a request can be lost between reading and asking.
//!
//! Requests within [`INTERVAL`] after a notification are postponed, so that there are at most ten notifications a second, however
//! many changes and readers there are.

use std::time::Duration;

use tenure_core::Result;
use uuid::Uuid;

use crate::connection::{NOW, Statement, Value};
use crate::doorbell::{CHANNEL, Doorbell};
use crate::error::Remedy;
use crate::open_transaction::begin_turn;
use crate::store::PostgresStore;

/// The shortest time between two notifications of a project's readers.
const INTERVAL: Duration = Duration::from_millis(100);

/// The channel on which the readers of a project listen.
pub(crate) fn channel_of(project: Uuid) -> String {
    format!("{CHANNEL}follow_{}", project.simple())
}

/// Notifies the channel `$2` if a reader still asks for it. Claims that share a turn may find the same request; one of them notifies.
pub(crate) fn notify_followers() -> String {
    format!(
        "WITH asked AS (
           UPDATE tenure.projects SET followed = false, notified_at = {NOW} WHERE id = $1 AND followed RETURNING id)
         SELECT pg_notify($2, '') FROM asked"
    )
}

impl PostgresStore {
    /// Listens for changes of the project. `None` if they cannot be notified: behind a pooler, without the right to change the
    /// project's row, or in a dry run. Then a reader has to poll.
    pub fn follow(&self) -> Option<Doorbell> {
        if self.options.dry_run {
            return None;
        }
        let doorbell = self.listen(channel_of(self.project))?;
        self.ask_for_notification().ok()?;
        Some(doorbell)
    }

    /// Asks for one notification, of the first change after this call. Returns how long to wait before asking again, if the last
    /// notification was too recent.
    pub fn ask_for_notification(&self) -> Result<Option<Duration>> {
        let interval = i64::try_from(INTERVAL.as_millis()).unwrap_or(i64::MAX);
        // The server's clock may have been set back since the last notification.
        let sql = format!(
            "UPDATE tenure.projects SET followed = abs({NOW} - notified_at) >= $2
             WHERE id = $1 AND NOT followed RETURNING followed"
        );
        let values: [&dyn Value; 2] = [&self.project, &interval];
        self.keep_trying(|connection| {
            let begin = begin_turn(connection, self.project);
            let asked = connection.pipeline(&[
                Statement::Batch(&begin),
                Statement::Query(&sql, &values),
                Statement::Batch("SET LOCAL synchronous_commit = off; COMMIT"),
            ]);
            if asked.as_ref().is_err_and(|failure| failure.remedy() != Remedy::Reconnect) {
                drop(connection.batch("ROLLBACK"));
            }
            // Without a row, another reader has asked already.
            let row = asked?.pop().and_then(|mut rows| rows.pop());
            let asks = row.map_or(Ok(true), |row| row.try_get(0))?;
            Ok((!asks).then_some(INTERVAL))
        })
    }
}
