-- The global directory, schema 1. Times are milliseconds since the Unix epoch, UTC.

CREATE TABLE known_projects (
    path          TEXT PRIMARY KEY,
    name          TEXT,
    registered_at INTEGER NOT NULL,
    last_seen_at  INTEGER NOT NULL,
    enabled       INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1))
) STRICT;

-- Under the name and columns that the queries of older tools use.
CREATE VIEW projects AS
SELECT path,
       name,
       datetime(registered_at / 1000, 'unixepoch') AS registered_at,
       datetime(last_seen_at / 1000, 'unixepoch') AS last_seen_at,
       enabled
FROM known_projects;
