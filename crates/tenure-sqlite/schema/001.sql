-- Schema 1. Times are milliseconds since the Unix epoch, UTC. Every enumeration is checked here, so that no program,
-- ours or another, can store a value that tenure does not know.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta (name, value) VALUES ('next_task_number', 1);

-- The identity of this store, in one row. A copy of the file has the same id, and is recognised because its home
-- differs.
CREATE TABLE identity (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    store_id   TEXT NOT NULL,
    -- File system, inode and birth time of this file; null until the first change.
    home       TEXT,
    -- The boot of the machine in which the store was last changed.
    boot       TEXT,
    -- The store's clock: this plus the milliseconds since that boot. Null if the system has no such clock.
    clock_base INTEGER,
    -- Set while the store does not serve: where the rows went, or from where they are being copied.
    standing   TEXT CHECK (standing IS NULL OR json_valid(standing))
) STRICT;

INSERT INTO identity (one, store_id) VALUES (1, lower(hex(randomblob(16))));

CREATE TABLE sections (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    mode       TEXT NOT NULL CHECK (mode IN ('serial', 'parallel')),
    priority   INTEGER NOT NULL,
    position   INTEGER NOT NULL,
    -- How many of its tasks are neither completed nor skipped, and how many have each of these statuses; counted by the
    -- store as it changes a task, so that no list has to count tasks.
    open_tasks INTEGER NOT NULL DEFAULT 0 CHECK (open_tasks >= 0),
    in_review  INTEGER NOT NULL DEFAULT 0,
    completed  INTEGER NOT NULL DEFAULT 0,
    failed     INTEGER NOT NULL DEFAULT 0,
    skipped    INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX sections_order ON sections (priority, position, id);

-- Tasks without a section belong to this one, which is never shown, so that a join with sections works for every task.
INSERT INTO sections (id, name, mode, priority, position, created_at, updated_at)
VALUES ('', '', 'parallel', 100, 0, 0, 0);

CREATE TABLE section_deps (
    section_id TEXT NOT NULL REFERENCES sections (id),
    depends_on TEXT NOT NULL REFERENCES sections (id),
    PRIMARY KEY (section_id, depends_on),
    CHECK (section_id <> depends_on)
) STRICT, WITHOUT ROWID;

CREATE INDEX section_deps_back ON section_deps (depends_on);

CREATE TABLE tasks (
    id          TEXT PRIMARY KEY,
    key         TEXT NOT NULL UNIQUE,
    title       TEXT NOT NULL CHECK (title <> ''),
    description TEXT NOT NULL DEFAULT '',
    status      TEXT NOT NULL
                CHECK (status IN ('pending', 'in_progress', 'review', 'completed', 'failed', 'skipped')),
    section_id  TEXT NOT NULL DEFAULT '' REFERENCES sections (id),
    source_file TEXT,
    priority    INTEGER NOT NULL,
    position    INTEGER NOT NULL,
    labels      TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(labels)),
    attempts    INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    rejections  INTEGER NOT NULL DEFAULT 0 CHECK (rejections >= 0),
    -- Dependencies that are neither completed nor skipped; counted by the store as it changes either.
    open_deps   INTEGER NOT NULL DEFAULT 0 CHECK (open_deps >= 0),
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT;

CREATE INDEX tasks_order ON tasks (section_id, priority, position, id);
-- The tasks that a list shows by default, in working order, however many are completed.
CREATE INDEX tasks_open ON tasks (section_id, priority, position, id) WHERE status <> 'completed';
-- Finds the last position in a section without reading its tasks.
CREATE INDEX tasks_position ON tasks (section_id, position);
CREATE INDEX tasks_status ON tasks (status, section_id);
CREATE INDEX tasks_title ON tasks (title);
-- Used by `next`, which reads only the first entries of each section, however many tasks there are.
CREATE INDEX tasks_ready ON tasks (section_id, priority, position, id)
    WHERE status = 'pending' AND open_deps = 0;

CREATE TABLE task_deps (
    task_id    TEXT NOT NULL REFERENCES tasks (id),
    depends_on TEXT NOT NULL REFERENCES tasks (id),
    PRIMARY KEY (task_id, depends_on),
    CHECK (task_id <> depends_on)
) STRICT, WITHOUT ROWID;

CREATE INDEX task_deps_back ON task_deps (depends_on);

CREATE TABLE leases (
    -- AUTOINCREMENT: no number is used twice, not even after old leases were pruned.
    fence         INTEGER PRIMARY KEY AUTOINCREMENT,
    lease_id      TEXT NOT NULL UNIQUE,
    -- A hash of the secret key that only the holder knows.
    key_hash      TEXT NOT NULL,
    resource_kind TEXT NOT NULL
                  CHECK (resource_kind IN ('task', 'section', 'runner', 'session', 'job', 'item')),
    resource_id   TEXT NOT NULL,
    holder_kind   TEXT NOT NULL CHECK (holder_kind IN ('runner', 'agent', 'person')),
    holder_id     TEXT NOT NULL,
    process       TEXT CHECK (process IS NULL OR json_valid(process)),
    doorbell      TEXT,
    ttl_ms        INTEGER NOT NULL CHECK (ttl_ms > 0),
    acquired_at   INTEGER NOT NULL,
    heartbeat_at  INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    claimed_from  TEXT
                  CHECK (claimed_from IN ('pending', 'in_progress', 'review', 'completed', 'failed', 'skipped')),
    ended_at      INTEGER,
    end_reason    TEXT
                  CHECK (end_reason IN ('released', 'completed', 'expired', 'holder_died', 'forced')),
    -- The greatest number of a message on the task that the holder was shown.
    messages_through INTEGER NOT NULL DEFAULT 0,
    CHECK ((ended_at IS NULL) = (end_reason IS NULL))
) STRICT;

-- L1: one holder, by construction.
CREATE UNIQUE INDEX leases_open ON leases (resource_kind, resource_id) WHERE ended_at IS NULL;
CREATE INDEX leases_history ON leases (resource_kind, resource_id, fence);
CREATE INDEX leases_expiry ON leases (resource_kind, expires_at) WHERE ended_at IS NULL;
CREATE INDEX leases_holder ON leases (holder_id) WHERE ended_at IS NULL;
-- Leases that a session may still renew after a clean-up.
CREATE INDEX leases_expired ON leases (holder_id, ended_at) WHERE end_reason = 'expired';
CREATE INDEX leases_process ON leases (process) WHERE ended_at IS NULL AND process IS NOT NULL;

CREATE TABLE tickets (
    number        INTEGER PRIMARY KEY AUTOINCREMENT,
    resource_kind TEXT NOT NULL
                  CHECK (resource_kind IN ('task', 'section', 'runner', 'session', 'job', 'item', 'ready')),
    resource_id   TEXT NOT NULL,
    holder_kind   TEXT NOT NULL CHECK (holder_kind IN ('runner', 'agent', 'person')),
    holder_id     TEXT NOT NULL,
    process       TEXT NOT NULL CHECK (json_valid(process)),
    doorbell      TEXT,
    created_at    INTEGER NOT NULL,
    refreshed_at  INTEGER NOT NULL,
    life_ms       INTEGER NOT NULL,
    review        INTEGER NOT NULL CHECK (review IN (0, 1))
) STRICT;

CREATE INDEX tickets_queue ON tickets (resource_kind, resource_id, number);

CREATE TABLE attempts (
    id            TEXT PRIMARY KEY,
    resource_kind TEXT NOT NULL
                  CHECK (resource_kind IN ('task', 'section', 'runner', 'session', 'job', 'item')),
    resource_id   TEXT NOT NULL,
    fence         INTEGER NOT NULL REFERENCES leases (fence),
    state         TEXT NOT NULL CHECK (state IN ('running', 'ending', 'ended')),
    owner         TEXT NOT NULL CHECK (json_valid(owner)),
    leader        TEXT CHECK (json_valid(leader)),
    log_path      TEXT,
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER,
    exit_code     INTEGER,
    reason        TEXT,
    charged       INTEGER NOT NULL DEFAULT 0 CHECK (charged IN (0, 1)),
    outcome_hash  TEXT,
    quick_return  INTEGER NOT NULL DEFAULT 0 CHECK (quick_return IN (0, 1)),
    agent         TEXT,
    ending        TEXT,
    conversation  TEXT,
    final_message TEXT,
    usage         TEXT CHECK (json_valid(usage)),
    CHECK ((state = 'ended') = (ended_at IS NOT NULL))
) STRICT;

CREATE INDEX attempts_resource ON attempts (resource_kind, resource_id, started_at);
CREATE INDEX attempts_open ON attempts (state) WHERE state <> 'ended';
CREATE INDEX attempts_fence ON attempts (fence);

CREATE TABLE agents (
    id           TEXT PRIMARY KEY,
    name         TEXT,
    capabilities TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(capabilities)),
    joined_at    INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    left_at      INTEGER
) STRICT;

CREATE TABLE runners (
    id              TEXT PRIMARY KEY,
    status          TEXT NOT NULL CHECK (status IN ('idle', 'running', 'completed', 'failed')),
    process         TEXT NOT NULL CHECK (json_valid(process)),
    project_path    TEXT NOT NULL,
    section_id      TEXT,
    preset          TEXT NOT NULL,
    current_task_id TEXT,
    log_path        TEXT,
    started_at      INTEGER NOT NULL,
    heartbeat_at    INTEGER NOT NULL,
    completed_at    INTEGER,
    error           TEXT,
    CHECK ((status IN ('completed', 'failed')) = (completed_at IS NOT NULL))
) STRICT;

CREATE INDEX runners_started ON runners (started_at);
CREATE INDEX runners_open ON runners (started_at) WHERE status IN ('idle', 'running');

CREATE TABLE parkings (
    subject       TEXT PRIMARY KEY
                  CHECK (subject LIKE 'account:%' OR subject LIKE 'host:%' OR subject LIKE 'preset:%'),
    ending        TEXT,
    in_a_row      INTEGER NOT NULL CHECK (in_a_row >= 0),
    attempts      TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(attempts)),
    parked_at     INTEGER,
    next_try_at   INTEGER,
    resets_at     INTEGER,
    times_parked  INTEGER NOT NULL CHECK (times_parked >= 0),
    reason        TEXT,
    until_changed TEXT,
    probe         INTEGER,
    CHECK (parked_at IS NOT NULL OR (next_try_at IS NULL AND resets_at IS NULL))
) STRICT;

CREATE TABLE sessions (
    id                    TEXT PRIMARY KEY,
    state                 TEXT NOT NULL CHECK (state IN ('open', 'completed', 'failed')),
    runner_id             TEXT NOT NULL,
    options               TEXT NOT NULL CHECK (json_valid(options)),
    current_task_id       TEXT,
    current_key           TEXT,
    current_fence         INTEGER,
    current_attempt       TEXT,
    current_agent_session TEXT,
    -- The fence of the session's lease under which the row was last written.
    fence                 INTEGER NOT NULL,
    error                 TEXT,
    started_at            INTEGER NOT NULL,
    updated_at            INTEGER NOT NULL,
    CHECK ((current_task_id IS NULL) = (current_key IS NULL)),
    CHECK ((current_task_id IS NULL) = (current_fence IS NULL))
) STRICT;

CREATE INDEX sessions_started ON sessions (started_at);

CREATE TABLE session_tasks (
    number     INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    task_id    TEXT NOT NULL,
    key        TEXT NOT NULL,
    status     TEXT NOT NULL
               CHECK (status IN ('pending', 'in_progress', 'review', 'completed', 'failed', 'skipped')),
    fence      INTEGER NOT NULL,
    at         INTEGER NOT NULL
) STRICT;

CREATE INDEX session_tasks_of ON session_tasks (session_id, number);

CREATE TABLE jobs (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('loading', 'open', 'completed', 'failed', 'cancelled')),
    definition TEXT NOT NULL CHECK (json_valid(definition)),
    -- Items by state, counted by the store as it changes them, so that no step has to count the items.
    total      INTEGER NOT NULL DEFAULT 0 CHECK (total >= 0),
    pending    INTEGER NOT NULL DEFAULT 0 CHECK (pending >= 0),
    running    INTEGER NOT NULL DEFAULT 0 CHECK (running >= 0),
    succeeded  INTEGER NOT NULL DEFAULT 0 CHECK (succeeded >= 0),
    failed     INTEGER NOT NULL DEFAULT 0 CHECK (failed >= 0),
    skipped    INTEGER NOT NULL DEFAULT 0 CHECK (skipped >= 0),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

-- No two unfinished jobs have the same name.
CREATE UNIQUE INDEX jobs_unfinished ON jobs (name) WHERE state IN ('loading', 'open');
CREATE INDEX jobs_name ON jobs (name, created_at);
CREATE INDEX jobs_created ON jobs (created_at);

CREATE TABLE job_items (
    job_id     TEXT NOT NULL REFERENCES jobs (id),
    number     INTEGER NOT NULL CHECK (number > 0),
    state      TEXT NOT NULL CHECK (state IN ('pending', 'running', 'succeeded', 'failed', 'skipped')),
    payload    TEXT NOT NULL,
    failures   INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    due_at     INTEGER NOT NULL,
    error      TEXT,
    updated_at INTEGER NOT NULL,
    UNIQUE (job_id, number)
) STRICT;

-- Finds the next item, however many there are.
CREATE INDEX job_items_pending ON job_items (job_id, due_at, number) WHERE state = 'pending';
CREATE INDEX job_items_running ON job_items (job_id, number) WHERE state = 'running';
CREATE INDEX job_items_failed ON job_items (job_id, number) WHERE state = 'failed';

CREATE TABLE messages (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id         TEXT REFERENCES tasks (id) ON DELETE CASCADE,
    sender          TEXT NOT NULL,
    recipient       TEXT,
    text            TEXT NOT NULL,
    sent_at         INTEGER NOT NULL,
    acknowledged_at INTEGER,
    acknowledged_by TEXT,
    CHECK ((acknowledged_at IS NULL) = (acknowledged_by IS NULL))
) STRICT;

CREATE INDEX messages_task ON messages (task_id, id);
CREATE INDEX messages_recipient ON messages (recipient, id);

-- The event feed. Events outlive their tasks, so they refer to tasks by value only.
CREATE TABLE event_kinds (kind TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

INSERT INTO event_kinds (kind) VALUES
    ('task.created'), ('task.updated'), ('task.status'), ('task.deleted'),
    ('section.created'), ('section.updated'), ('section.deleted'),
    ('lease.acquired'), ('lease.revived'), ('lease.ended'), ('write.rejected'),
    ('attempt.started'), ('attempt.ending'), ('attempt.ended'),
    ('agent.joined'), ('agent.left'), ('message.sent'), ('message.acknowledged'),
    ('runner.started'), ('runner.stopped'), ('runner.failed'), ('preset.parked'), ('preset.unparked'),
    ('job.created'), ('job.status'), ('job.changed'), ('item.status'),
    ('session.started'), ('session.ended');

CREATE TABLE events (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,
    kind        TEXT NOT NULL REFERENCES event_kinds (kind),
    actor       TEXT NOT NULL,
    task_id     TEXT,
    from_status TEXT
                CHECK (from_status IN ('pending', 'in_progress', 'review', 'completed', 'failed', 'skipped')),
    to_status   TEXT
                CHECK (to_status IN ('pending', 'in_progress', 'review', 'completed', 'failed', 'skipped')),
    fence       INTEGER,
    detail      TEXT CHECK (detail IS NULL OR json_valid(detail))
) STRICT;

CREATE INDEX events_task ON events (task_id, seq);

-- The number through which a history was pruned; rows up to it that still exist were kept on purpose.
CREATE TABLE pruning (
    history TEXT PRIMARY KEY CHECK (history IN ('events', 'leases')),
    through INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Open locks under the names and columns that the queries of older tools use.
CREATE VIEW task_locks AS
SELECT resource_id AS task_id,
       holder_id AS runner_id,
       datetime(acquired_at / 1000, 'unixepoch') AS acquired_at,
       datetime(expires_at / 1000, 'unixepoch') AS expires_at,
       datetime(heartbeat_at / 1000, 'unixepoch') AS heartbeat_at
FROM leases WHERE ended_at IS NULL AND resource_kind = 'task';

CREATE VIEW section_locks AS
SELECT resource_id AS section_id,
       holder_id AS runner_id,
       datetime(acquired_at / 1000, 'unixepoch') AS acquired_at,
       datetime(expires_at / 1000, 'unixepoch') AS expires_at
FROM leases WHERE ended_at IS NULL AND resource_kind = 'section';
