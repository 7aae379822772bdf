//! The counts that are updated together with the rows that they count. Triggers are not used: every process would parse and
//! plan them, and few changes need them.

use tenure_core::id::TaskId;
use tenure_core::job::ItemState;
use tenure_core::store::{Counting, FINISHED};
use tenure_core::{Result, Timestamp};

use crate::connection::Transaction;

fn number(of: u64) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}

impl Counting for Transaction<'_> {
    fn count_for_dependents(&mut self, task: &TaskId, by: i64) -> Result<()> {
        self.change(
            "UPDATE tasks SET open_deps = open_deps + ?2
             WHERE id IN (SELECT task_id FROM task_deps WHERE depends_on = ?1)",
            &[&task.as_str(), &by],
        )
        .map(drop)
    }

    fn count_dependency(&mut self, task: &TaskId, on: &TaskId, by: i64) -> Result<()> {
        self.change(
            &format!(
                "UPDATE tasks SET open_deps = open_deps + ?3
                 WHERE id = ?1 AND (SELECT status FROM tasks WHERE id = ?2) NOT IN {FINISHED}"
            ),
            &[&task.as_str(), &on.as_str(), &by],
        )
        .map(drop)
    }

    fn count_new_items(&mut self, job: &str, count: usize) -> Result<()> {
        let sql = "UPDATE jobs SET total = total + ?2, pending = pending + ?2 WHERE id = ?1";
        self.change(sql, &[&job, &i64::try_from(count).unwrap_or(i64::MAX)]).map(drop)
    }

    fn count_item(&mut self, job: &str, of: u64, to: Option<ItemState>, at: Timestamp) -> Result<()> {
        self.change(
            "UPDATE jobs SET
                 total = total - (?3 = ''),
                 pending = pending - (old.state = 'pending') + (?3 = 'pending'),
                 running = running - (old.state = 'running') + (?3 = 'running'),
                 succeeded = succeeded - (old.state = 'succeeded') + (?3 = 'succeeded'),
                 failed = failed - (old.state = 'failed') + (?3 = 'failed'),
                 skipped = skipped - (old.state = 'skipped') + (?3 = 'skipped'),
                 updated_at = CASE ?3 WHEN '' THEN updated_at ELSE ?4 END
             FROM (SELECT state FROM job_items WHERE job_id = ?1 AND number = ?2) AS old
             WHERE jobs.id = ?1 AND old.state <> ?3",
            &[&job, &number(of), &to.map_or("", ItemState::as_str), &at.as_millis()],
        )
        .map(drop)
    }

    fn count_requeued_items(&mut self, job: &str, from: ItemState, count: u64) -> Result<()> {
        let sql = format!(
            "UPDATE jobs SET {from} = {from} - ?2, pending = pending + ?2, updated_at = ?3 WHERE id = ?1 AND ?2 > 0"
        );
        self.change(&sql, &[&job, &number(count), &self.state.now.as_millis()]).map(drop)
    }
}
