-- The least that each of three users needs. A trigger stands in the schema of its table and runs with the rights of that
-- schema's owner, so that owner gets the right to insert into the log, and writers get none.

-- installer_on_schema: makes the log and its companions, which need a quota on the tablespace besides
GRANT CREATE SESSION, CREATE TABLE, CREATE SEQUENCE, CREATE TRIGGER, CREATE PROCEDURE TO /* role */installer;

-- installer_on_standing_log: reads and fills a log that it did not make
GRANT SELECT, INSERT ON /* table */event_log TO /* role */installer;

-- installer_on_sequence: draws a number of a log that a sequence numbers, to try whether it takes rows
GRANT SELECT ON /* sequence */event_log_seq TO /* role */installer;

-- installer_on_place: makes triggers and their packages in the schemas of others. Where their owners run the script of
-- `eventlog track --sql` themselves, nobody needs this.
GRANT CREATE ANY TRIGGER, ALTER ANY TRIGGER, DROP ANY TRIGGER, CREATE ANY PROCEDURE, DROP ANY PROCEDURE TO /* role */installer;

-- installer_on_table: reflects the table; its owner's triggers write into the log
GRANT READ ON /* table */usr TO /* role */installer;

-- owner_on_log: what its tables' triggers write with
GRANT INSERT ON /* table */event_log TO /* owner */app;

-- owner_on_sequence: what they number the rows with
GRANT SELECT ON /* sequence */event_log_seq TO /* owner */app;

-- publisher_on_schema: connects
GRANT CREATE SESSION TO /* role */publisher;

-- publisher_on_table: reads rows back, and locks none; Oracle gives no right to read some columns alone
GRANT READ ON /* table */usr TO /* role */publisher;

-- publisher_on_registry: sees what is tracked, and which migration the log has; only the log's owner says so
GRANT READ ON /* table */event_log_version TO /* role */publisher;

-- held_rights: what a user may do to a table of this owner: by a grant of its own, of PUBLIC or of a role that it has, also
-- by way of other roles; by rights on any table; and as the owner
WITH held (name) AS (
  SELECT :role FROM dual
  UNION ALL SELECT dba_role_privs.granted_role FROM dba_role_privs JOIN held ON dba_role_privs.grantee = held.name
)
SELECT privilege FROM dba_tab_privs
WHERE owner = :schema AND table_name = :table AND (grantee = 'PUBLIC' OR grantee IN (SELECT name FROM held))
UNION SELECT privilege FROM dba_sys_privs
WHERE grantee IN (SELECT name FROM held)
  AND privilege IN ('SELECT ANY TABLE', 'READ ANY TABLE', 'INSERT ANY TABLE', 'UPDATE ANY TABLE', 'DELETE ANY TABLE')
UNION SELECT 'own' FROM dual WHERE :role = :schema
ORDER BY 1;

-- held_rights_seen: the same as the owner of the table sees it, who is not told which user has which role: any might
SELECT privilege FROM all_tab_privs
WHERE table_schema = :schema AND table_name = :table AND grantee IN (:role, 'PUBLIC')
UNION SELECT privilege || ' if it has the role ' || grantee FROM all_tab_privs
WHERE table_schema = :schema AND table_name = :table AND grantee <> 'PUBLIC'
  AND grantee NOT IN (SELECT username FROM all_users)
UNION SELECT 'own' FROM dual WHERE :role = :schema
ORDER BY 1;

-- given_rights: how much was given, to see whether a statement gave something
SELECT (SELECT COUNT(*) FROM all_tab_privs) + (SELECT COUNT(*) FROM all_col_privs) + (SELECT COUNT(*) FROM dba_sys_privs) FROM dual;

-- given_rights_seen: the same without what only a DBA sees, the rights that are about no table
SELECT (SELECT COUNT(*) FROM all_tab_privs) + (SELECT COUNT(*) FROM all_col_privs) FROM dual;
