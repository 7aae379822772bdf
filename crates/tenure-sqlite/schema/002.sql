-- Schema 2. What these counted, the store counts where it changes the rows: a trigger is parsed by every process that opens
-- the database, and planned into every statement that it might concern, also into those that count nothing.

DROP TRIGGER task_added;
DROP TRIGGER task_removed;
DROP TRIGGER task_moved;
DROP TRIGGER task_finished;
DROP TRIGGER task_reopened;
DROP TRIGGER dependency_added;
DROP TRIGGER dependency_removed;
DROP TRIGGER item_added;
DROP TRIGGER item_moved;
DROP TRIGGER item_removed;
