-- The least that each of three users needs. A trigger stands in the schema of its table and runs with the rights of that
-- schema's owner, so that owner gets the right to insert into the log, and writers get none.

-- installer_on_schema: makes the log and its companions, which need a quota on the tablespace besides
GRANT CREATE SESSION, CREATE TABLE, CREATE SEQUENCE, CREATE TRIGGER, CREATE PROCEDURE TO /* role */installer;

-- installer_on_standing_log: reads and fills a log that it did not make
GRANT SELECT, INSERT ON /* table */event_log TO /* role */installer;

-- installer_on_place: makes triggers and their procedures in the schemas of the tables
GRANT CREATE ANY TRIGGER, ALTER ANY TRIGGER, DROP ANY TRIGGER, CREATE ANY PROCEDURE, DROP ANY PROCEDURE TO /* role */installer;

-- installer_on_table: reflects the table; its owner's triggers write into the log
GRANT SELECT ON /* table */usr TO /* role */installer;

-- owner_on_log: what its tables' triggers write with
GRANT INSERT ON /* table */event_log TO /* owner */app;

-- publisher_on_schema: connects
GRANT CREATE SESSION TO /* role */publisher;

-- held_rights: what a user may do to a table by a grant of its own or of PUBLIC, and with rights on any table
SELECT privilege FROM all_tab_privs
WHERE grantee IN (:role, 'PUBLIC') AND table_name = :table
UNION SELECT privilege FROM dba_sys_privs
WHERE grantee = :role AND privilege IN ('SELECT ANY TABLE', 'INSERT ANY TABLE', 'UPDATE ANY TABLE', 'DELETE ANY TABLE')
ORDER BY 1;

-- given_rights: how much was given, to see whether a statement gave something
SELECT (SELECT COUNT(*) FROM all_tab_privs) + (SELECT COUNT(*) FROM all_col_privs) + (SELECT COUNT(*) FROM dba_sys_privs) FROM dual;
