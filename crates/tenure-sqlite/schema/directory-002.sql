-- Schema 2: what unattended work needs.

-- The project's own id, by which one that has moved is recognised.
ALTER TABLE known_projects ADD COLUMN project_id TEXT;

-- Projects that had nothing to do when wake-up looked, and the state of their files then. Only saves work: without a row
-- the project is looked at.
CREATE TABLE idle_projects (
    path   TEXT PRIMARY KEY,
    mark   TEXT NOT NULL,
    reason TEXT NOT NULL,
    -- When a lease runs out there, so that something becomes ready without a write.
    until  INTEGER
) STRICT, WITHOUT ROWID;

-- When a timer of each kind last really called wake-up.
CREATE TABLE timers (
    kind     TEXT PRIMARY KEY CHECK (kind IN ('cron', 'systemd', 'launchd')),
    fired_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
