//! What wake-up keeps in the global directory: projects that were idle, and when its timer last fired.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rusqlite::params;
use tenure_core::{Result, Timestamp};

use crate::directory::Directory;
use crate::error::sql_error;

/// A project in which wake-up found nothing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleProject {
    /// The boot, and the state of its files at that time.
    pub mark: String,
    pub reason: String,
    /// When something becomes ready by the passage of time alone, in milliseconds since the boot.
    pub until: Option<i64>,
}

impl Directory {
    pub fn idle_projects(&self) -> Result<HashMap<PathBuf, IdleProject>> {
        let read = || -> rusqlite::Result<HashMap<_, _>> {
            self.conn
                .prepare("SELECT path, mark, reason, until FROM idle_projects")?
                .query_map([], |row| {
                    let idle = IdleProject { mark: row.get(1)?, reason: row.get(2)?, until: row.get(3)? };
                    Ok((PathBuf::from(row.get::<_, String>(0)?), idle))
                })?
                .collect()
        };
        read().map_err(|e| sql_error(&e))
    }

    /// Stores the idle projects and removes the busy ones in one transaction, because a commit costs more than all of
    /// the rows.
    pub fn note_idle(&self, idle: &[(&Path, IdleProject)], busy: &[&Path]) -> Result<()> {
        self.write(|conn| {
            let change = conn.unchecked_transaction()?;
            {
                let mut save = change.prepare(
                    "INSERT INTO idle_projects (path, mark, reason, until) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (path) DO UPDATE SET mark = ?2, reason = ?3, until = ?4",
                )?;
                for (path, seen) in idle {
                    save.execute(params![path.to_string_lossy(), seen.mark, seen.reason, seen.until])?;
                }
                let mut forget = change.prepare("DELETE FROM idle_projects WHERE path = ?1")?;
                for path in busy {
                    forget.execute([path.to_string_lossy()])?;
                }
            }
            change.commit()
        })
    }

    /// Records that a timer has fired.
    pub fn note_fired(&self, kind: &str) -> Result<()> {
        let now = self.now();
        self.write(|conn| {
            conn.execute(
                "INSERT INTO timers (kind, fired_at) VALUES (?1, ?2) ON CONFLICT (kind) DO UPDATE SET fired_at = ?2",
                params![kind, now],
            )
        })
        .map(drop)
    }

    /// Each kind of timer that has ever fired, and when it last did.
    pub fn timers(&self) -> Result<Vec<(String, Timestamp)>> {
        let read = || -> rusqlite::Result<Vec<_>> {
            self.conn
                .prepare("SELECT kind, fired_at FROM timers ORDER BY kind")?
                .query_map([], |row| Ok((row.get(0)?, Timestamp::from_millis(row.get(1)?))))?
                .collect()
        };
        read().map_err(|e| sql_error(&e))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure_core::SystemClock;

    use super::*;

    #[test]
    fn a_directory_can_be_read_under_the_names_that_older_tools_use() {
        let home = tempfile::tempdir().unwrap();
        let directory = Directory::open(home.path(), Arc::new(SystemClock)).unwrap();
        directory.register(Path::new("/srv/shop"), Some("shop"), None).unwrap();
        directory.note_fired("cron").unwrap();
        assert_eq!(directory.timers().unwrap().len(), 1);
        let count: i64 = directory
            .conn
            .query_row("SELECT count(*) FROM projects WHERE enabled = 1", [], |row| row.get(0))
            .unwrap();
        assert_eq!(count, 1);
    }

    #[test]
    fn what_was_idle_is_remembered_until_it_is_forgotten() {
        let home = tempfile::tempdir().unwrap();
        let directory = Directory::open(home.path(), Arc::new(SystemClock)).unwrap();
        let (a, b) = (Path::new("/a"), Path::new("/b"));
        let seen = |mark: &str| IdleProject { mark: mark.into(), reason: "nothing".into(), until: None };
        directory.note_idle(&[(a, seen("1")), (b, seen("1"))], &[]).unwrap();
        directory.note_idle(&[(a, seen("2"))], &[b]).unwrap();
        let known = directory.idle_projects().unwrap();
        assert_eq!(known.len(), 1);
        assert_eq!(known[a], seen("2"));
    }
}
