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

-- numbers: findings about a sequence of which every server of a cluster keeps numbers in hand; on one server numbers come in order
SELECT 'warning', CONCAT('The log is numbered by ', column_default, ', and several servers write: each may keep numbers for'
       ' later, and a later change may get a lower one.'),
       'Let all writers use one server, or number the log by AUTO_INCREMENT.'
FROM information_schema.columns
WHERE table_schema = COALESCE(:log_schema, DATABASE()) AND table_name = :log_table AND column_name = :record_id
  AND column_default LIKE '%nextval(%' AND @@GLOBAL.auto_increment_increment > 1;

-- clock: the database's own time, in the form that event_time has
SELECT UTC_TIMESTAMP(6);

-- database_zone: the zone of the database's clock by its name, and its offset now; a server that takes over the zone of its
-- machine has a short name for that, which does not say where it is. Sessions are set to UTC for reading, so the server is asked.
SELECT CASE WHEN @@GLOBAL.time_zone = 'SYSTEM' THEN @@system_time_zone ELSE @@GLOBAL.time_zone END,
  ROUND(TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), CONVERT_TZ(UTC_TIMESTAMP(6), '+00:00', @@GLOBAL.time_zone)));

-- table_holders: open transactions, the oldest first: which table each has the server tells nobody; one of them keeps
-- others from what a statement needs
SELECT CONCAT('connection ', entry.trx_mysql_thread_id, ' of ', COALESCE(session.user, '?'), ', with a transaction open for ',
              TIMESTAMPDIFF(SECOND, entry.trx_started, NOW()), ' s')
FROM information_schema.innodb_trx AS entry
LEFT JOIN information_schema.processlist AS session ON session.id = entry.trx_mysql_thread_id
WHERE entry.trx_mysql_thread_id <> CONNECTION_ID() AND COALESCE(:needing, '') IS NOT NULL
ORDER BY entry.trx_started;
