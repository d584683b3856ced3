-- What `eventlog check` asks. A finding is a row of three texts: level (warning or failure), what was found, what mends it.
-- An attempt touches no row; it fails where the connected user lacks the right.

-- server_version: what runs
SELECT 'PostgreSQL ' || current_setting('server_version');

-- server_states: findings about a server that does not write, or whose triggers are silent
SELECT 'failure', 'The server is a standby that only reads.', 'Connect to the primary.' WHERE pg_is_in_recovery()
UNION ALL
SELECT 'failure', 'Transactions of this user only read: default_transaction_read_only is on.',
       'Set it to off for this user and database.'
WHERE NOT pg_is_in_recovery() AND current_setting('default_transaction_read_only') = 'on'
UNION ALL
SELECT 'warning', format('Sessions%s%s run with %s, in which triggers are silent.', ' of ' || nullif(setrole, 0)::regrole,
       ' in ' || datname, setting), 'Take that setting away, unless these sessions only repeat what was captured elsewhere.'
FROM pg_db_role_setting CROSS JOIN unnest(setconfig) AS setting LEFT JOIN pg_database ON pg_database.oid = setdatabase
WHERE setting = 'session_replication_role=replica' AND (datname IS NULL OR datname = current_database())
UNION ALL
SELECT 'warning', format('What the subscription %s repeats from another server fires no triggers%s.', subname,
       (SELECT ': ' || string_agg(srrelid::regclass::text, ', ' ORDER BY srrelid::regclass::text)
        FROM pg_subscription_rel WHERE srsubid = pg_subscription.oid)),
       'Publish these changes where they are made, or nowhere.'
FROM pg_subscription JOIN pg_database ON pg_database.oid = subdbid AND datname = current_database();

-- long_transactions: findings about transactions whose rows, or the end of whose snapshot, the publisher waits for
SELECT 'warning', format('Process %s of %s%s has had a transaction open for %s s (%s).', pid, usename, ' in ' || nullif(application_name, ''),
       round(EXTRACT(EPOCH FROM clock_timestamp() - xact_start)), state),
       'What it wrote is published when it commits, and no vacuum cleans the log before; end it.'
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
  AND xact_start < clock_timestamp() - :seconds * INTERVAL '1 second'
UNION ALL
SELECT 'warning', format('The prepared transaction %s of %s waits for its end since %s.', gid, owner, prepared),
       'COMMIT PREPARED or ROLLBACK PREPARED it.'
FROM pg_prepared_xacts
WHERE database = current_database() AND prepared < clock_timestamp() - :seconds * INTERVAL '1 second'
UNION ALL
SELECT 'ok', format('Sessions of other users that are hidden from this one: %s.', count(*)),
       'A member of pg_read_all_stats would see them.'
FROM pg_stat_activity
WHERE datname = current_database() AND usename <> current_user AND backend_type IS NULL
HAVING count(*) > 0;

-- old_snapshots: findings about who has the server keep versions of rows of the log, where these are many; and how many
WITH kept AS (
    SELECT format('Process %s of %s%s (%s)', pid, usename, ' in ' || nullif(application_name, ''), state) AS who,
           age(backend_xmin) AS transactions, format('End it: SELECT pg_terminate_backend(%s).', pid) AS mend
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xmin IS NOT NULL
    UNION ALL
    SELECT format('The prepared transaction %s of %s', gid, owner), age(transaction),
           format('End it: COMMIT PREPARED %L or ROLLBACK PREPARED %L.', gid, gid)
    FROM pg_prepared_xacts WHERE database = current_database()
    UNION ALL
    SELECT format('The replication slot %s%s', slot_name, CASE WHEN NOT active THEN ', which nobody uses,' END), age(xmin),
           format('Where nobody needs it: SELECT pg_drop_replication_slot(%L).', slot_name)
    FROM pg_replication_slots WHERE xmin IS NOT NULL
    UNION ALL
    SELECT format('The standby %s, by hot_standby_feedback,', coalesce(nullif(application_name, ''), host(client_addr))),
           age(backend_xmin), 'End the long transaction there.'
    FROM pg_stat_replication WHERE backend_xmin IS NOT NULL
)
SELECT 'warning', format('%s keeps what rows were for the last %s transactions: %s versions in the log that nobody needs. Looks for waiting rows pass over them.',
       who, transactions, n_dead_tup), mend
FROM kept CROSS JOIN pg_stat_all_tables
WHERE relid = to_regclass(:log) AND n_dead_tup >= :dead AND transactions >= :transactions
ORDER BY transactions DESC;

-- numbers: findings about sequences from which sessions take several numbers at once: a later change gets a lower one
WITH log AS (
    SELECT pg_class.oid, relname, attnum FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE pg_class.oid = to_regclass(:log) AND attname = :record_id
), cached AS (
    SELECT seqrelid, seqcache, '\m' || regexp_replace(relname, '(\W)', '\\\1', 'g') || '\M' AS word
    FROM pg_sequence JOIN pg_class ON pg_class.oid = seqrelid WHERE seqcache > 1
), program AS (
    SELECT DISTINCT pg_proc.oid, prosrc FROM log CROSS JOIN pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid
    WHERE prosrc ~* 'nextval' AND (tgrelid = log.oid OR strpos(prosrc, relname) > 0)
), drawn AS (
    SELECT objid AS sequence, 'numbers the log' AS use FROM pg_depend JOIN log ON refobjid = log.oid AND refobjsubid = attnum
    WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND deptype = 'i'
    UNION
    SELECT refobjid, 'numbers the log' FROM log JOIN pg_attrdef ON adrelid = log.oid AND adnum = attnum JOIN pg_depend ON objid = pg_attrdef.oid
    WHERE classid = 'pg_attrdef'::regclass AND refclassid = 'pg_class'::regclass
    UNION
    SELECT seqrelid, format('is drawn from by %s, which names the log,', program.oid::regprocedure) FROM cached JOIN program
        ON prosrc ~* ('nextval\s*\(\s*''[^'']*' || word)
)
SELECT 'warning', format('The sequence %s %s and gives each session %s numbers at once: where several sessions change an object,'
       ' a later change may get a lower number.', seqrelid::regclass, use, seqcache),
       format('ALTER SEQUENCE %s CACHE 1; then let writers connect again, for a session first uses the numbers that it has.', seqrelid::regclass)
FROM drawn JOIN cached ON seqrelid = sequence
ORDER BY 2;

-- owner_states: findings about who could run code of their own with whose rights: of tables that are captured, and of the log
WITH ours AS (
    SELECT DISTINCT tgrelid, proowner, pg_class.relowner
    FROM /* triggers */event_log_trigger AS entered
    JOIN pg_class AS registry ON registry.oid = to_regclass(/* registry */'public.event_log_trigger')
    JOIN pg_proc ON proname = entered.function_name AND pronamespace = registry.relnamespace AND prosecdef
    JOIN pg_trigger ON tgfoid = pg_proc.oid AND tgparentid = 0
    JOIN pg_class ON pg_class.oid = tgrelid
), foreign_ones AS (
    SELECT * FROM ours WHERE NOT pg_has_role(relowner, proowner, 'MEMBER')
)
SELECT 'warning', format('The triggers on %s, of which %s is the owner, run with the rights of %s, a superuser.',
       string_agg(DISTINCT tgrelid::regclass::text, ', '), pg_get_userbyid(relowner), rolname),
       'Give the log and these functions to a role that is none (`eventlog rights --installer ROLE`), and track again as that role.'
FROM foreign_ones JOIN pg_roles ON pg_roles.oid = proowner AND rolsuper GROUP BY relowner, rolname
UNION ALL
SELECT 'warning', format('To read %s runs what %s, the owner, put into it (%s), with the rights of %s.',
       string_agg(DISTINCT tgrelid::regclass::text, ', '), pg_get_userbyid(ours.relowner),
       'indexes, statistics' || CASE WHEN bool_or(relkind = 'v') THEN ', a view' ELSE '' END
       || CASE WHEN bool_or(relrowsecurity) THEN ', policies unless they forbid it' ELSE '' END, current_user),
       'Let a login that may only read do it: `eventlog rights --reader ROLE`, and source.reader.'
FROM ours JOIN pg_class ON pg_class.oid = tgrelid
WHERE :reader = '' AND NOT pg_has_role(ours.relowner, current_user, 'MEMBER') GROUP BY ours.relowner
UNION ALL
SELECT 'warning', format('The log belongs to %s, whose triggers and defaults run with the rights of %s.', pg_get_userbyid(log.relowner),
       string_agg(DISTINCT pg_get_userbyid(proowner)::text, ', ')), 'Let the role that installs own the log.'
FROM ours JOIN pg_class AS log ON log.oid = to_regclass(:log)
WHERE NOT pg_has_role(log.relowner, proowner, 'MEMBER') GROUP BY log.relowner
UNION ALL
SELECT 'warning', format('The reader %s may %s rows of the log.', rolname, lower(privilege)),
       'Take that right from it: owners of captured tables have it too.'
FROM pg_roles CROSS JOIN unnest(ARRAY['INSERT', 'UPDATE', 'DELETE']) AS privilege
WHERE rolname = :reader AND has_table_privilege(pg_roles.oid, to_regclass(:log), privilege)
ORDER BY 2;

-- make_index: what a DBA runs where polling would read all rows; writers go on meanwhile
CREATE INDEX CONCURRENTLY /* index */event_log_new ON /* log */event_log (/* record_id */record_id) WHERE /* status */status = 'N';

-- make_number_index: what a DBA runs where the newest rows could only be found by reading the whole log
CREATE INDEX CONCURRENTLY /* index */event_log_done ON /* log */event_log (/* record_id */record_id) WHERE /* status */status IS DISTINCT FROM 'N';

-- clock: the database's own time, in the form that event_time has
SELECT (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');

-- database_zone: the zone of the database's clock by its name, and its offset now: as a session begins, for reading sets it to UTC
SELECT reset_val, CAST(EXTRACT(EPOCH FROM (now() AT TIME ZONE reset_val) - (now() AT TIME ZONE 'UTC')) AS integer)
FROM pg_settings WHERE name = 'TimeZone';

-- times_beyond: the times of the last rows that have a higher number; each half is read by its index
SELECT written FROM (
    (SELECT /* event_time */event_time AS written, /* record_id */record_id AS n FROM /* log */event_log
     WHERE /* status */status = 'N' AND /* record_id */record_id > :beyond ORDER BY n DESC LIMIT :limit)
    UNION ALL
    (SELECT /* event_time */event_time, /* record_id */record_id AS n FROM /* log */event_log
     WHERE /* status */status IS DISTINCT FROM 'N' AND /* record_id */record_id > :beyond ORDER BY n DESC LIMIT :limit)
) AS halves
ORDER BY n DESC LIMIT :limit;

-- table_holders: sessions that keep others from a table that a statement names, the oldest transaction first; only a
-- trigger that is made lets readers go on
SELECT format('connection %s of %s%s, %s for %s s, has %s', activity.pid, activity.usename,
              ' (' || nullif(activity.application_name, '') || ')', activity.state,
              floor(extract(epoch FROM clock_timestamp() - activity.xact_start)), string_agg(DISTINCT locked.relname, ', '))
FROM pg_locks AS held
JOIN pg_class AS locked ON locked.oid = held.relation AND locked.relkind IN ('r', 'p', 'v', 'f')
JOIN pg_stat_activity AS activity ON activity.pid = held.pid
WHERE held.granted AND held.locktype = 'relation' AND held.pid <> pg_backend_pid() AND activity.datname = current_database()
  AND CAST(:needing AS text) ~ ('(^|\W)' || regexp_replace(locked.relname, '(\W)', '\\\1', 'g') || '($|\W)')
  AND NOT (held.mode IN ('AccessShareLock', 'RowShareLock') AND CAST(:needing AS text) ~* '^\s*create ')
GROUP BY activity.pid, activity.usename, activity.application_name, activity.state, activity.xact_start
ORDER BY activity.xact_start;
