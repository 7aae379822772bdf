-- Schema 1. Times are milliseconds since the Unix epoch, UTC, from this server's clock. Text is compared byte by byte, as
-- in every other store. Every row belongs to a project, so that many projects share one database. Enumerations are checked
-- here, so that no program, ours or another, can store a value that tenure does not know.

-- The values that columns may hold. These are domains, because the checks of a table are read again for every statement
-- that writes to it.
CREATE DOMAIN tenure.task_status AS text COLLATE "C"
    CHECK (VALUE IN ('pending', 'in_progress', 'review', 'completed', 'failed', 'skipped'));
CREATE DOMAIN tenure.resource_kind AS text COLLATE "C"
    CHECK (VALUE IN ('task', 'section', 'runner', 'session', 'job', 'item'));
CREATE DOMAIN tenure.queue_kind AS text COLLATE "C"
    CHECK (VALUE IN ('task', 'section', 'runner', 'session', 'job', 'item', 'ready'));
CREATE DOMAIN tenure.holder_kind AS text COLLATE "C" CHECK (VALUE IN ('runner', 'agent', 'person'));
CREATE DOMAIN tenure.end_reason AS text COLLATE "C"
    CHECK (VALUE IN ('released', 'completed', 'expired', 'holder_died', 'forced'));
CREATE DOMAIN tenure.event_kind AS text COLLATE "C" CHECK (VALUE IN (
    'task.created', 'task.updated', 'task.status', 'task.deleted',
    'section.created', 'section.updated', 'section.deleted',
    'lease.acquired', 'lease.revived', 'lease.ended', 'write.rejected',
    'attempt.started', 'attempt.ending', 'attempt.ended',
    'agent.joined', 'agent.left', 'message.sent', 'message.acknowledged',
    'runner.started', 'runner.stopped', 'runner.failed', 'preset.parked', 'preset.unparked',
    'job.created', 'job.status', 'job.changed', 'item.status', 'session.started', 'session.ended'));
CREATE DOMAIN tenure.title AS text COLLATE "C" CHECK (VALUE <> '');
CREATE DOMAIN tenure.count AS bigint CHECK (VALUE >= 0);
CREATE DOMAIN tenure.positive AS bigint CHECK (VALUE > 0);

CREATE TABLE tenure.projects (
    id          uuid PRIMARY KEY,
    name        text NOT NULL COLLATE "C",
    store_id    text NOT NULL COLLATE "C",
    -- Set while the store does not serve: where the rows went, or from where they are being copied.
    standing    text COLLATE "C",
    next_task   bigint NOT NULL DEFAULT 1,
    -- Set while a reader waits to be notified of the next change. The change that notifies it clears this column and
    -- sets the time.
    followed    boolean NOT NULL DEFAULT false,
    notified_at bigint NOT NULL DEFAULT 0,
    -- What every transaction needs to know is in the row that it reads anyway: the version of the schema, and whether a dependency
    -- was ever added.
    schema       bigint NOT NULL DEFAULT 1,
    task_deps    boolean NOT NULL DEFAULT false,
    section_deps boolean NOT NULL DEFAULT false,
    created_at  bigint NOT NULL
) WITH (fillfactor = 50);

-- The last change that each client has committed. A client that lost the answer to a commit reads this before it retries.
CREATE TABLE tenure.requests (
    project uuid NOT NULL,
    client  uuid NOT NULL,
    request bigint NOT NULL,
    at      bigint NOT NULL,
    PRIMARY KEY (project, client)
) WITH (fillfactor = 50);

CREATE TABLE tenure.sections (
    project    uuid NOT NULL REFERENCES tenure.projects (id),
    id         text NOT NULL COLLATE "C",
    name       text NOT NULL COLLATE "C",
    mode       text NOT NULL COLLATE "C" CHECK (mode IN ('serial', 'parallel')),
    priority   bigint NOT NULL,
    position   bigint NOT NULL,
    -- How many of its tasks are neither completed nor skipped, and how many have each of these statuses; counted by the
    -- store as it changes a task, so that no list has to count tasks.
    open_tasks bigint NOT NULL DEFAULT 0,
    in_review  bigint NOT NULL DEFAULT 0,
    completed  bigint NOT NULL DEFAULT 0,
    failed     bigint NOT NULL DEFAULT 0,
    skipped    bigint NOT NULL DEFAULT 0,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (project, id),
    UNIQUE (project, name)
) WITH (fillfactor = 50);

CREATE UNIQUE INDEX sections_order ON tenure.sections (project, priority, position, id);

CREATE TABLE tenure.section_deps (
    project    uuid NOT NULL,
    section_id text NOT NULL COLLATE "C",
    depends_on text NOT NULL COLLATE "C",
    PRIMARY KEY (project, section_id, depends_on),
    FOREIGN KEY (project, section_id) REFERENCES tenure.sections (project, id),
    FOREIGN KEY (project, depends_on) REFERENCES tenure.sections (project, id),
    CHECK (section_id <> depends_on)
);

CREATE INDEX section_deps_back ON tenure.section_deps (project, depends_on);

CREATE FUNCTION tenure.note_section_dependency() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tenure.projects SET section_deps = true WHERE id = NEW.project AND NOT section_deps;
    RETURN NULL;
END $$;

CREATE TRIGGER section_dependency_noted AFTER INSERT ON tenure.section_deps
    FOR EACH ROW EXECUTE FUNCTION tenure.note_section_dependency();

CREATE TABLE tenure.tasks (
    project     uuid NOT NULL,
    id          text NOT NULL COLLATE "C",
    key         text NOT NULL COLLATE "C",
    title       tenure.title NOT NULL,
    description text NOT NULL COLLATE "C" DEFAULT '',
    status      tenure.task_status NOT NULL,
    -- Tasks without a section belong to the section with the empty id.
    section_id  text NOT NULL COLLATE "C" DEFAULT '',
    source_file text COLLATE "C",
    priority    bigint NOT NULL,
    position    bigint NOT NULL,
    labels      text NOT NULL COLLATE "C" DEFAULT '[]',
    attempts    tenure.count NOT NULL DEFAULT 0,
    rejections  tenure.count NOT NULL DEFAULT 0,
    -- Dependencies that are neither completed nor skipped: counted by the store when a status changes, and by the trigger
    -- below when a dependency is added or removed.
    open_deps   tenure.count NOT NULL DEFAULT 0,
    created_at  bigint NOT NULL,
    updated_at  bigint NOT NULL,
    PRIMARY KEY (project, id),
    UNIQUE (project, key),
    FOREIGN KEY (project, section_id) REFERENCES tenure.sections (project, id)
);

-- A change of status adds an entry to every index that contains the new row, so there are few, and each task is in as few of
-- them as possible. The first two are the working order: the page of a list reads one of them, or merges both.
CREATE INDEX tasks_open ON tenure.tasks (project, section_id, priority, position, id) WHERE status <> 'completed';
CREATE INDEX tasks_completed ON tenure.tasks (project, section_id, priority, position, id) WHERE status = 'completed';
CREATE INDEX tasks_position ON tenure.tasks (project, section_id, position);
-- The statuses that few tasks have.
CREATE INDEX tasks_rare ON tenure.tasks (project, status) WHERE status NOT IN ('pending', 'completed');
-- Used by `next`, which reads only the first entries of each section, however many tasks there are.
CREATE INDEX tasks_ready ON tenure.tasks (project, section_id, priority, position, id)
    WHERE status = 'pending' AND open_deps = 0;

CREATE TABLE tenure.task_deps (
    project    uuid NOT NULL,
    task_id    text NOT NULL COLLATE "C",
    depends_on text NOT NULL COLLATE "C",
    PRIMARY KEY (project, task_id, depends_on),
    FOREIGN KEY (project, task_id) REFERENCES tenure.tasks (project, id),
    FOREIGN KEY (project, depends_on) REFERENCES tenure.tasks (project, id),
    CHECK (task_id <> depends_on)
);

CREATE INDEX task_deps_back ON tenure.task_deps (project, depends_on);

CREATE FUNCTION tenure.count_dependency() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    edge tenure.task_deps := CASE WHEN TG_OP = 'INSERT' THEN NEW ELSE OLD END;
BEGIN
    UPDATE tenure.tasks SET open_deps = open_deps + CASE WHEN TG_OP = 'INSERT' THEN 1 ELSE -1 END
    WHERE project = edge.project AND id = edge.task_id
      AND EXISTS (SELECT 1 FROM tenure.tasks u WHERE u.project = edge.project AND u.id = edge.depends_on
                  AND u.status NOT IN ('completed', 'skipped'));
    UPDATE tenure.projects SET task_deps = true WHERE id = edge.project AND NOT task_deps;
    RETURN NULL;
END $$;

CREATE TRIGGER dependency_counted AFTER INSERT OR DELETE ON tenure.task_deps
    FOR EACH ROW EXECUTE FUNCTION tenure.count_dependency();

-- One sequence for all projects: no number is drawn twice, and the number of every grant is greater than all earlier
-- ones.
CREATE SEQUENCE tenure.fences AS bigint CACHE 1;
CREATE SEQUENCE tenure.numbers AS bigint CACHE 1;
-- Events have a sequence too, so that no transaction waits for another one's number.
CREATE SEQUENCE tenure.event_numbers AS bigint CACHE 1;

CREATE TABLE tenure.leases (
    project       uuid NOT NULL,
    fence         bigint NOT NULL DEFAULT nextval('tenure.fences'),
    lease_id      text NOT NULL COLLATE "C",
    -- A hash of the secret key that only the holder knows.
    key_hash      text NOT NULL COLLATE "C",
    resource_kind tenure.resource_kind NOT NULL,
    resource_id   text NOT NULL COLLATE "C",
    holder_kind   tenure.holder_kind NOT NULL,
    holder_id     text NOT NULL COLLATE "C",
    process       text COLLATE "C",
    doorbell      text COLLATE "C",
    ttl_ms        tenure.positive NOT NULL,
    acquired_at   bigint NOT NULL,
    heartbeat_at  bigint NOT NULL,
    expires_at    bigint NOT NULL,
    claimed_from  tenure.task_status,
    ended_at      bigint,
    end_reason    tenure.end_reason,
    -- The greatest number of a message on the task that the holder was shown.
    messages_through bigint NOT NULL DEFAULT 0,
    -- An index that began with the project could serve any question about a project's leases, and the planner would choose
    -- it while the table is small and keep that plan when it has grown.
    PRIMARY KEY (fence, project),
    UNIQUE (lease_id, project),
    CHECK ((ended_at IS NULL) = (end_reason IS NULL))
);

-- L1: one holder, by construction.
CREATE UNIQUE INDEX leases_open ON tenure.leases (project, resource_kind, resource_id) WHERE ended_at IS NULL;
CREATE INDEX leases_history ON tenure.leases (resource_id, resource_kind, project, fence);
-- The conditions of the next two keep other queries from using them: a query has to repeat an index's condition.
CREATE INDEX leases_expiry ON tenure.leases (project, resource_kind, expires_at)
    WHERE ended_at IS NULL AND expires_at > 0;
-- Not a partial index of open leases: queries for open leases of other kinds would use that and read all of it.
CREATE INDEX leases_holder ON tenure.leases (holder_id, project, ended_at);
CREATE INDEX leases_process ON tenure.leases (project, process) WHERE ended_at IS NULL AND process IS NOT NULL;

CREATE TABLE tenure.tickets (
    project       uuid NOT NULL,
    number        bigint NOT NULL DEFAULT nextval('tenure.numbers'),
    resource_kind tenure.queue_kind NOT NULL,
    resource_id   text NOT NULL COLLATE "C",
    holder_kind   tenure.holder_kind NOT NULL,
    holder_id     text NOT NULL COLLATE "C",
    process       text NOT NULL COLLATE "C",
    doorbell      text COLLATE "C",
    created_at    bigint NOT NULL,
    refreshed_at  bigint NOT NULL,
    life_ms       bigint NOT NULL,
    review        bigint NOT NULL CHECK (review IN (0, 1)),
    PRIMARY KEY (project, number)
) WITH (fillfactor = 50);

CREATE INDEX tickets_queue ON tenure.tickets (project, resource_kind, resource_id, number);

CREATE TABLE tenure.attempts (
    project       uuid NOT NULL REFERENCES tenure.projects (id),
    id            text NOT NULL COLLATE "C",
    resource_kind tenure.resource_kind NOT NULL,
    resource_id   text NOT NULL COLLATE "C",
    fence         bigint NOT NULL,
    state         text NOT NULL COLLATE "C" CHECK (state IN ('running', 'ending', 'ended')),
    owner         text NOT NULL COLLATE "C",
    leader        text COLLATE "C",
    log_path      text COLLATE "C",
    started_at    bigint NOT NULL,
    ended_at      bigint,
    exit_code     bigint,
    reason        text COLLATE "C",
    charged       bigint NOT NULL DEFAULT 0 CHECK (charged IN (0, 1)),
    outcome_hash  text COLLATE "C",
    quick_return  bigint NOT NULL DEFAULT 0 CHECK (quick_return IN (0, 1)),
    agent         text COLLATE "C",
    ending        text COLLATE "C",
    conversation  text COLLATE "C",
    final_message text COLLATE "C",
    usage         text COLLATE "C",
    PRIMARY KEY (project, id),
    FOREIGN KEY (project, fence) REFERENCES tenure.leases (project, fence),
    CHECK ((state = 'ended') = (ended_at IS NOT NULL))
);

CREATE INDEX attempts_resource ON tenure.attempts (project, resource_kind, resource_id, started_at);
CREATE INDEX attempts_open ON tenure.attempts (project, started_at) WHERE state <> 'ended';
CREATE INDEX attempts_fence ON tenure.attempts (project, fence);

CREATE TABLE tenure.agents (
    project      uuid NOT NULL,
    id           text NOT NULL COLLATE "C",
    name         text COLLATE "C",
    capabilities text NOT NULL COLLATE "C" DEFAULT '[]',
    joined_at    bigint NOT NULL,
    last_seen_at bigint NOT NULL,
    left_at      bigint,
    PRIMARY KEY (project, id)
) WITH (fillfactor = 70);

CREATE TABLE tenure.runners (
    project         uuid NOT NULL REFERENCES tenure.projects (id),
    id              text NOT NULL COLLATE "C",
    status          text NOT NULL COLLATE "C" CHECK (status IN ('idle', 'running', 'completed', 'failed')),
    process         text NOT NULL COLLATE "C",
    project_path    text NOT NULL COLLATE "C",
    section_id      text COLLATE "C",
    preset          text NOT NULL COLLATE "C",
    current_task_id text COLLATE "C",
    log_path        text COLLATE "C",
    started_at      bigint NOT NULL,
    heartbeat_at    bigint NOT NULL,
    completed_at    bigint,
    error           text COLLATE "C",
    PRIMARY KEY (project, id),
    CHECK ((status IN ('completed', 'failed')) = (completed_at IS NOT NULL))
);

CREATE INDEX runners_started ON tenure.runners (project, started_at);
CREATE INDEX runners_open ON tenure.runners (project, started_at) WHERE status IN ('idle', 'running');

CREATE TABLE tenure.parkings (
    project       uuid NOT NULL REFERENCES tenure.projects (id),
    subject       text NOT NULL COLLATE "C"
                  CHECK (subject LIKE 'account:%' OR subject LIKE 'host:%' OR subject LIKE 'preset:%'),
    ending        text COLLATE "C",
    in_a_row      bigint NOT NULL CHECK (in_a_row >= 0),
    attempts      text NOT NULL COLLATE "C" DEFAULT '[]',
    parked_at     bigint,
    next_try_at   bigint,
    resets_at     bigint,
    times_parked  bigint NOT NULL CHECK (times_parked >= 0),
    reason        text COLLATE "C",
    until_changed text COLLATE "C",
    probe         bigint,
    PRIMARY KEY (project, subject),
    CHECK (parked_at IS NOT NULL OR (next_try_at IS NULL AND resets_at IS NULL))
);

CREATE TABLE tenure.sessions (
    project               uuid NOT NULL REFERENCES tenure.projects (id),
    id                    text NOT NULL COLLATE "C",
    state                 text NOT NULL COLLATE "C" CHECK (state IN ('open', 'completed', 'failed')),
    runner_id             text NOT NULL COLLATE "C",
    options               text NOT NULL COLLATE "C",
    current_task_id       text COLLATE "C",
    current_key           text COLLATE "C",
    current_fence         bigint,
    current_attempt       text COLLATE "C",
    current_agent_session text COLLATE "C",
    -- The fence of the session's lease under which the row was last written.
    fence                 bigint NOT NULL,
    error                 text COLLATE "C",
    started_at            bigint NOT NULL,
    updated_at            bigint NOT NULL,
    PRIMARY KEY (project, id),
    CHECK ((current_task_id IS NULL) = (current_key IS NULL)),
    CHECK ((current_task_id IS NULL) = (current_fence IS NULL))
);

CREATE INDEX sessions_started ON tenure.sessions (project, started_at);

CREATE TABLE tenure.session_tasks (
    project    uuid NOT NULL,
    number     bigint NOT NULL DEFAULT nextval('tenure.numbers'),
    session_id text NOT NULL COLLATE "C",
    task_id    text NOT NULL COLLATE "C",
    key        text NOT NULL COLLATE "C",
    status     tenure.task_status NOT NULL,
    fence      bigint NOT NULL,
    at         bigint NOT NULL,
    PRIMARY KEY (project, number),
    FOREIGN KEY (project, session_id) REFERENCES tenure.sessions (project, id)
);

CREATE INDEX session_tasks_of ON tenure.session_tasks (project, session_id, number);

CREATE TABLE tenure.jobs (
    project    uuid NOT NULL REFERENCES tenure.projects (id),
    id         text NOT NULL COLLATE "C",
    name       text NOT NULL COLLATE "C",
    state      text NOT NULL COLLATE "C"
               CHECK (state IN ('loading', 'open', 'completed', 'failed', 'cancelled')),
    definition text NOT NULL COLLATE "C",
    -- Items by state, counted by the triggers below, so that no step has to count the items.
    total      bigint NOT NULL DEFAULT 0 CHECK (total >= 0),
    pending    bigint NOT NULL DEFAULT 0 CHECK (pending >= 0),
    running    bigint NOT NULL DEFAULT 0 CHECK (running >= 0),
    succeeded  bigint NOT NULL DEFAULT 0 CHECK (succeeded >= 0),
    failed     bigint NOT NULL DEFAULT 0 CHECK (failed >= 0),
    skipped    bigint NOT NULL DEFAULT 0 CHECK (skipped >= 0),
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (project, id)
) WITH (fillfactor = 70);

-- No two unfinished jobs have the same name.
CREATE UNIQUE INDEX jobs_unfinished ON tenure.jobs (project, name) WHERE state IN ('loading', 'open');
CREATE INDEX jobs_name ON tenure.jobs (project, name, created_at);
CREATE INDEX jobs_created ON tenure.jobs (project, created_at);

CREATE TABLE tenure.job_items (
    project    uuid NOT NULL,
    job_id     text NOT NULL COLLATE "C",
    number     bigint NOT NULL CHECK (number > 0),
    state      text NOT NULL COLLATE "C"
               CHECK (state IN ('pending', 'running', 'succeeded', 'failed', 'skipped')),
    payload    text NOT NULL COLLATE "C",
    failures   bigint NOT NULL DEFAULT 0 CHECK (failures >= 0),
    due_at     bigint NOT NULL,
    error      text COLLATE "C",
    updated_at bigint NOT NULL,
    PRIMARY KEY (project, job_id, number),
    FOREIGN KEY (project, job_id) REFERENCES tenure.jobs (project, id)
);

-- Finds the next item, however many there are.
CREATE INDEX job_items_pending ON tenure.job_items (project, job_id, due_at, number) WHERE state = 'pending';
CREATE INDEX job_items_running ON tenure.job_items (project, job_id, number) WHERE state = 'running';
CREATE INDEX job_items_failed ON tenure.job_items (project, job_id, number) WHERE state = 'failed';

-- Once for each statement, however many items it touched. `sign` is 1 for what an item is now and -1 for what it was.
CREATE FUNCTION tenure.count_items() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moved text := CASE TG_OP
        WHEN 'INSERT' THEN 'SELECT *, 1 AS sign FROM is_now'
        WHEN 'DELETE' THEN 'SELECT *, -1 AS sign FROM was'
        ELSE 'SELECT *, 1 AS sign FROM is_now UNION ALL SELECT *, -1 AS sign FROM was' END;
BEGIN
    EXECUTE 'UPDATE tenure.jobs j SET total = j.total + c.total, pending = j.pending + c.pending,
                 running = j.running + c.running, succeeded = j.succeeded + c.succeeded,
                 failed = j.failed + c.failed, skipped = j.skipped + c.skipped,
                 updated_at = CASE WHEN $1 THEN greatest(j.updated_at, c.latest) ELSE j.updated_at END
             FROM (SELECT project, job_id, sum(sign) AS total, max(updated_at) AS latest,
                          coalesce(sum(sign) FILTER (WHERE state = ''pending''), 0) AS pending,
                          coalesce(sum(sign) FILTER (WHERE state = ''running''), 0) AS running,
                          coalesce(sum(sign) FILTER (WHERE state = ''succeeded''), 0) AS succeeded,
                          coalesce(sum(sign) FILTER (WHERE state = ''failed''), 0) AS failed,
                          coalesce(sum(sign) FILTER (WHERE state = ''skipped''), 0) AS skipped
                   FROM (' || moved || ') AS moved GROUP BY project, job_id) AS c
             WHERE j.project = c.project AND j.id = c.job_id'
    USING TG_OP = 'UPDATE';
    RETURN NULL;
END $$;

CREATE TRIGGER items_added AFTER INSERT ON tenure.job_items REFERENCING NEW TABLE AS is_now
    FOR EACH STATEMENT EXECUTE FUNCTION tenure.count_items();
CREATE TRIGGER items_moved AFTER UPDATE ON tenure.job_items REFERENCING NEW TABLE AS is_now OLD TABLE AS was
    FOR EACH STATEMENT EXECUTE FUNCTION tenure.count_items();
CREATE TRIGGER items_removed AFTER DELETE ON tenure.job_items REFERENCING OLD TABLE AS was
    FOR EACH STATEMENT EXECUTE FUNCTION tenure.count_items();

CREATE TABLE tenure.messages (
    project         uuid NOT NULL REFERENCES tenure.projects (id),
    id              bigint NOT NULL DEFAULT nextval('tenure.numbers'),
    task_id         text COLLATE "C",
    sender          text NOT NULL COLLATE "C",
    recipient       text COLLATE "C",
    text            text NOT NULL COLLATE "C",
    sent_at         bigint NOT NULL,
    acknowledged_at bigint,
    acknowledged_by text COLLATE "C",
    PRIMARY KEY (project, id),
    FOREIGN KEY (project, task_id) REFERENCES tenure.tasks (project, id) ON DELETE CASCADE,
    CHECK ((acknowledged_at IS NULL) = (acknowledged_by IS NULL))
);

CREATE INDEX messages_task ON tenure.messages (project, task_id, id);
CREATE INDEX messages_recipient ON tenure.messages (project, recipient, id);

-- The event feed. Events outlive their tasks, so they refer to tasks by value only.
CREATE TABLE tenure.events (
    project     uuid NOT NULL,
    seq         bigint NOT NULL,
    at          bigint NOT NULL,
    kind        tenure.event_kind NOT NULL,
    actor       text NOT NULL COLLATE "C",
    task_id     text COLLATE "C",
    from_status tenure.task_status,
    to_status   tenure.task_status,
    fence       bigint,
    detail      text COLLATE "C",
    PRIMARY KEY (project, seq)
);

CREATE INDEX events_task ON tenure.events (project, task_id, seq);

-- The number through which a history was pruned; rows up to it that still exist were kept on purpose.
CREATE TABLE tenure.pruning (
    project uuid NOT NULL,
    history text NOT NULL COLLATE "C" CHECK (history IN ('events', 'leases')),
    through bigint NOT NULL,
    PRIMARY KEY (project, history)
);

-- Open locks under the names and columns that the queries of older tools use.
CREATE VIEW tenure.task_locks AS
SELECT project, resource_id AS task_id,
       holder_id AS runner_id,
       to_char(to_timestamp(acquired_at / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS acquired_at,
       to_char(to_timestamp(expires_at / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS expires_at,
       to_char(to_timestamp(heartbeat_at / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS heartbeat_at
FROM tenure.leases WHERE ended_at IS NULL AND resource_kind = 'task';

CREATE VIEW tenure.section_locks AS
SELECT project, resource_id AS section_id,
       holder_id AS runner_id,
       to_char(to_timestamp(acquired_at / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS acquired_at,
       to_char(to_timestamp(expires_at / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS expires_at
FROM tenure.leases WHERE ended_at IS NULL AND resource_kind = 'section';
