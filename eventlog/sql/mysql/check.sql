-- What `eventlog check` asks. A finding is a row of three texts: level (warning or failure), what was found, what mends it.
-- An attempt touches no row; it fails where the connected user lacks the right.

-- server_version: what runs
SELECT CONCAT(CASE WHEN VERSION() LIKE '%MariaDB%' THEN 'MariaDB ' ELSE 'MySQL ' END, VERSION());

-- server_states: findings about a server that does not write
SELECT 'failure', 'The server only reads: read_only is on.', 'Connect to the primary, or set read_only to off.'
FROM (SELECT 1 AS one) AS single WHERE @@GLOBAL.read_only <> 0;

-- making_triggers: findings about a server that lets the connected user make no triggers, though its rights on tables would
-- A role that is active may bring the right that counts; then nobody can tell before it is tried.
SELECT 'warning', 'The binary log is on, and without the right SUPER the connected user may make no triggers.',
       'Set log_bin_trust_function_creators to 1 on the server, or let an account that has SUPER track tables.'
FROM (SELECT CONCAT('''', LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER())
               - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1),
             '''@''', SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''') AS account) AS connected
WHERE @@GLOBAL.log_bin <> 0 AND @@GLOBAL.log_bin_trust_function_creators = 0
  AND COALESCE(CURRENT_ROLE(), 'NONE') = 'NONE'
  AND EXISTS (SELECT 1 FROM information_schema.user_privileges WHERE grantee = account AND privilege_type = 'TRIGGER'
              UNION ALL
              SELECT 1 FROM information_schema.schema_privileges WHERE grantee = account AND privilege_type = 'TRIGGER'
              UNION ALL
              SELECT 1 FROM information_schema.table_privileges WHERE grantee = account AND privilege_type = 'TRIGGER')
  AND NOT EXISTS (SELECT 1 FROM information_schema.user_privileges WHERE grantee = account AND privilege_type = 'SUPER');

-- long_transactions: who may see other sessions may do too much else

-- numbers: findings about a sequence of which every server of a cluster keeps numbers in hand; on one server numbers come in order
SELECT 'warning', CONCAT('The log is numbered by ', column_default, ', and several servers write: each may have numbers of its'
       ' own in hand, and a later change a lower one.'),
       'Let all writers use one server, or number the log by AUTO_INCREMENT.'
FROM information_schema.columns
WHERE table_schema = COALESCE(:log_schema, DATABASE()) AND table_name = :log_table AND column_name = :record_id
  AND column_default LIKE '%nextval(%' AND @@GLOBAL.auto_increment_increment > 1;

-- owner_states: a view runs with the rights that it says; tables have no owners, and reading them runs nobody's code

-- make_index: what a DBA runs where polling would read all rows; writers go on meanwhile
CREATE INDEX /* index */event_log_new ON /* log */event_log (/* status */status, /* record_id */record_id);

-- attempt_read: reads every column of the log
SELECT /* record_id */record_id, /* status */status, /* event_type */event_type, /* event_time */event_time,
       /* perpetrator */perpetrator, /* table_name */table_name, /* table_key */table_key, /* column_name */column_name,
       /* old_value */old_value, /* new_value */new_value
FROM /* log */event_log WHERE 1 = 0;

-- attempt_mark: gives rows their letter
UPDATE /* log */event_log SET /* status */status = /* status */status WHERE 1 = 0;

-- attempt_delete: removes rows
DELETE FROM /* log */event_log WHERE 1 = 0;

-- attempt_outcome: writes the books about rows
INSERT INTO /* outcomes */event_log_outcome (record_id, held) SELECT record_id, held FROM /* outcomes */event_log_outcome WHERE 1 = 0;
UPDATE /* outcomes */event_log_outcome SET note = note WHERE 1 = 0;

-- attempt_mark_write: writes what survives a crash
INSERT INTO /* marks */event_log_mark (name, value) SELECT name, value FROM /* marks */event_log_mark WHERE 1 = 0;
UPDATE /* marks */event_log_mark SET value = value WHERE 1 = 0;
DELETE FROM /* marks */event_log_mark WHERE 1 = 0;

-- attempt_table: reads every column of a captured table
SELECT * FROM /* target */usr WHERE 1 = 0;
