-- The global directory, schema 1. Times are milliseconds since the Unix epoch, UTC.

CREATE TABLE known_projects (
    path          TEXT PRIMARY KEY,
    name          TEXT,
    registered_at INTEGER NOT NULL,
    last_seen_at  INTEGER NOT NULL,
    enabled       INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
    -- The project's own id, which recognises one that has moved.
    project_id    TEXT
) STRICT;

-- Under the name and columns that the queries of older tools use.
CREATE VIEW projects AS
SELECT path,
       name,
       datetime(registered_at / 1000, 'unixepoch') AS registered_at,
       datetime(last_seen_at / 1000, 'unixepoch') AS last_seen_at,
       enabled
FROM known_projects;

-- Runners of all projects on this machine, as they last reported. The lease in each project's own store is authoritative.
CREATE TABLE known_runners (
    id              TEXT PRIMARY KEY,
    status          TEXT NOT NULL CHECK (status IN ('idle', 'running', 'completed', 'failed')),
    process         TEXT NOT NULL CHECK (json_valid(process)),
    project_path    TEXT NOT NULL,
    section_id      TEXT,
    section_name    TEXT,
    current_task_id TEXT,
    log_path        TEXT,
    started_at      INTEGER NOT NULL,
    heartbeat_at    INTEGER NOT NULL,
    completed_at    INTEGER,
    error           TEXT
) STRICT;

CREATE INDEX known_runners_order ON known_runners (started_at);

CREATE VIEW runners AS
SELECT id,
       status,
       json_extract(process, '$.pid') AS pid,
       project_path,
       section_id,
       current_task_id,
       datetime(started_at / 1000, 'unixepoch') AS started_at,
       datetime(heartbeat_at / 1000, 'unixepoch') AS heartbeat_at
FROM known_runners;

-- Projects that had nothing to do at the last wake-up, with a fingerprint of their files then. Only saves work: a project
-- without a row is inspected.
CREATE TABLE idle_projects (
    path   TEXT PRIMARY KEY,
    mark   TEXT NOT NULL,
    reason TEXT NOT NULL,
    -- When a lease there expires, which makes a task ready without a write. In milliseconds since the boot.
    until  INTEGER
) STRICT, WITHOUT ROWID;

-- When a timer of each kind last called wake-up.
CREATE TABLE timers (
    kind     TEXT PRIMARY KEY CHECK (kind IN ('cron', 'systemd', 'launchd')),
    fired_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
