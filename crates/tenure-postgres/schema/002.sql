-- Schema 2. Events are numbered by a sequence, so that nobody waits for anybody else's number.
CREATE SEQUENCE tenure.event_numbers AS bigint CACHE 1;
SELECT setval('tenure.event_numbers', coalesce(max(last_event), 0) + 1, false) FROM tenure.projects;
ALTER TABLE tenure.projects DROP COLUMN last_event;

-- Whoever may draw a fence may draw one of these.
DO $$
DECLARE
    who text;
BEGIN
    FOR who IN
        SELECT CASE WHEN given.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(given.grantee)) END
        FROM pg_class, aclexplode(relacl) AS given
        WHERE pg_class.oid = 'tenure.fences'::regclass AND given.privilege_type = 'USAGE'
    LOOP
        EXECUTE format('GRANT USAGE ON SEQUENCE tenure.event_numbers TO %s', who);
    END LOOP;
END $$;

-- One index says how many tasks have a status, and whether anything is left to do in a section.
DROP INDEX tenure.tasks_status, tenure.tasks_open;
CREATE INDEX tasks_status ON tenure.tasks (project, status, section_id);

-- Behind the project these would serve any question about a project's leases, and be taken for it while there are few.
ALTER TABLE tenure.attempts DROP CONSTRAINT attempts_project_fence_fkey;
ALTER TABLE tenure.leases DROP CONSTRAINT leases_pkey, DROP CONSTRAINT leases_project_lease_id_key,
    ADD PRIMARY KEY (fence, project), ADD UNIQUE (lease_id, project);
ALTER TABLE tenure.attempts ADD FOREIGN KEY (project, fence) REFERENCES tenure.leases (project, fence);
-- The same holds for these, and a condition has its price for every lease that is written.
DROP INDEX tenure.leases_history, tenure.leases_holder;
CREATE INDEX leases_history ON tenure.leases (resource_id, resource_kind, project, fence);
CREATE INDEX leases_holder ON tenure.leases (holder_id, project, ended_at);

-- Whoever closes a task or opens it again counts for those that wait for it. A trigger's condition, too, has its price for
-- every change of a task.
DROP TRIGGER task_counted ON tenure.tasks;
DROP FUNCTION tenure.count_task();
