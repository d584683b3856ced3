-- The least that each of three users needs. A trigger stands in the schema of its table and runs with the rights of that
-- schema's owner, so that owner gets the right to insert into the log, and writers get none.

-- role_at_host: Oracle's users have no hosts

-- guard_function: the procedure that a trigger runs stands beside it, and nobody was given it

-- installer_on_schema: makes the log and its companions, which need a quota on the tablespace besides
GRANT CREATE SESSION, CREATE TABLE, CREATE SEQUENCE, CREATE TRIGGER, CREATE PROCEDURE TO /* role */installer;

-- installer_on_log: what it makes it owns

-- installer_on_standing_log: reads and fills a log that it did not make
GRANT SELECT, INSERT ON /* table */event_log TO /* role */installer;

-- installer_on_companion: what it makes it owns

-- installer_on_place: makes triggers and their procedures in the schemas of the tables
GRANT CREATE ANY TRIGGER, ALTER ANY TRIGGER, DROP ANY TRIGGER, CREATE ANY PROCEDURE, DROP ANY PROCEDURE TO /* role */installer;

-- installer_on_table: reflects the table; its owner's triggers write into the log
GRANT SELECT ON /* table */usr TO /* role */installer;

-- owner_on_log: what its tables' triggers write with
GRANT INSERT ON /* table */event_log TO /* owner */app;

-- writer_on_log: nothing was given; Oracle refuses to take what was not

-- writer_on_companion: the same

-- publisher_on_schema: connects
GRANT CREATE SESSION TO /* role */publisher;

-- publisher_on_log: reads rows, gives them their letter, deletes them when it is told to
GRANT SELECT, UPDATE (/* status */status), DELETE ON /* table */event_log TO /* role */publisher;

-- publisher_on_companion: keeps its own books
GRANT SELECT, INSERT, UPDATE, DELETE ON /* table */event_log_outcome TO /* role */publisher;

-- publisher_on_version: sees which migration the log has
GRANT SELECT ON /* table */event_log_version TO /* role */publisher;

-- publisher_on_place: a schema needs no right to be named

-- publisher_on_table: reads rows back
GRANT SELECT ON /* table */usr TO /* role */publisher;

-- table_owner: who owns a table is said by its schema

-- held_rights: what a user may do to a table by a grant of its own or of PUBLIC, and with rights on any table
SELECT privilege FROM all_tab_privs
WHERE grantee IN (:role, 'PUBLIC') AND table_name = :table
UNION SELECT privilege FROM dba_sys_privs
WHERE grantee = :role AND privilege IN ('SELECT ANY TABLE', 'INSERT ANY TABLE', 'UPDATE ANY TABLE', 'DELETE ANY TABLE')
ORDER BY 1;
