-- One publisher a log, and what it must know between two turns: who holds the lock, and which rows wait.

-- anything_waiting: finds one row that could be read now, from the index of waiting rows where there is one. In order,
-- for else a log whose statistics still speak of many waiting rows is read as a whole.
SELECT 1 FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND /* among */(1 = 1)
ORDER BY waiting./* record_id */record_id LIMIT 1;

-- late_numbers: numbers of rows in these gaps that no output has parked, each gap by the index. What is parked is looked up
-- row by row: a join as the server likes it would read a million parked rows for an empty gap.
SELECT waiting./* record_id */record_id
FROM jsonb_array_elements(CAST(:gaps AS jsonb)) AS gap (ends)
CROSS JOIN LATERAL (
      SELECT late./* record_id */record_id FROM /* log */event_log AS late
      LEFT JOIN LATERAL (SELECT 1 AS there FROM /* parked */event_log_parked AS kept
                         WHERE kept.record_id = late./* record_id */record_id LIMIT 1) AS parked ON true
      WHERE late./* status */status = 'N' AND parked.there IS NULL
        AND late./* record_id */record_id BETWEEN CAST(ends ->> 0 AS bigint) AND CAST(ends ->> 1 AS bigint)
      ORDER BY late./* record_id */record_id LIMIT :limit
) AS waiting
ORDER BY waiting./* record_id */record_id LIMIT :limit;

-- log_writers: the transactions that may have drawn a number of the log and not committed their row yet, and whether they
-- are prepared and draw no more
SELECT DISTINCT virtualtransaction, pid IS NULL FROM pg_locks
WHERE locktype = 'relation' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND relation = CAST(/* log_text */'event_log' AS regclass) AND mode = 'RowExclusiveLock' AND granted;

-- still_waiting: which of these rows wait, held or not
SELECT tried./* record_id */record_id
FROM /* log */event_log AS tried
WHERE tried./* record_id */record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]))
  AND tried./* status */status = 'N';

-- lock_mark: makes or replaces a mark if the lock is still ours; nobody else takes it before the commit. With :soon the
-- transaction is on disk only with the next one.
INSERT INTO /* marks */event_log_mark (name, value)
SELECT CAST(:name AS text), CAST(:value AS text)
FROM set_config('synchronous_commit', CASE WHEN :soon THEN 'off' ELSE /* durable */'on' END, true)
WHERE EXISTS (SELECT 1 FROM /* marks */event_log_mark
              WHERE name = 'publisher' AND value LIKE '% ' || CAST(:token AS text) FOR SHARE)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- lock_read: the mark of who holds the lock, if there is one, and the database's clock
SELECT (SELECT value FROM /* marks */event_log_mark WHERE name = 'publisher'),
       to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS');

-- lock_until: expression: when a lease ends that begins now
to_char(clock_timestamp() AT TIME ZONE 'UTC' + make_interval(secs => CAST(:lease AS double precision)),
        'YYYY-MM-DD"T"HH24:MI:SS.MS');

-- lock_grasp: keeps others from changing the mark, unless somebody does that at this moment, who is not waited for
SELECT 1 FROM /* marks */event_log_mark WHERE name = 'publisher' FOR UPDATE SKIP LOCKED;

-- lock_silent: ends the session that has locked the mark, if its client has said nothing for :seconds. The server's own
-- limit forgets one that was frozen right behind several statements sent as one: the driver ends these with a flush, which
-- has the server wait for more without a limit.
SELECT pg_terminate_backend(silent.pid)
FROM /* marks */event_log_mark AS mark
JOIN pg_locks AS kept ON kept.locktype = 'transactionid' AND kept.granted AND kept.transactionid = mark.xmax
JOIN pg_stat_activity AS silent ON silent.pid = kept.pid
WHERE mark.name = 'publisher' AND silent.usename = current_user AND silent.state = 'idle in transaction'
  AND silent.state_change < clock_timestamp() - make_interval(secs => CAST(:seconds AS double precision));

-- lock_make: takes the lock for :lease seconds where there is no mark
INSERT INTO /* marks */event_log_mark (name, value)
VALUES ('publisher', /* until */'2026-11-21T02:00:45.123' || ' ' || CAST(:token AS text))
ON CONFLICT (name) DO NOTHING;

-- lock_replace: takes the lock for :lease seconds if the mark is still as it was read
UPDATE /* marks */event_log_mark
SET value = /* until */'2026-11-21T02:00:45.123' || ' ' || CAST(:token AS text)
WHERE name = 'publisher' AND value = CAST(:former AS text);

-- listen: hears what a trigger or a person notifies on the channel of the log
LISTEN /* channel */event_log;

-- session_limits: no statement runs, and none waits for a lock, for ever
SELECT set_config('statement_timeout', CAST(/* statement_ms */300000 AS text), false),
       set_config('lock_timeout', CAST(/* lock_ms */30000 AS text), false);

-- lease_limits: a client that is frozen or cut off holds no row for longer than two leases
SELECT set_config('idle_in_transaction_session_timeout', CAST(/* idle_ms */10000 AS text), false),
       set_config('tcp_keepalives_idle', CAST(/* silent_s */5 AS text), false),
       set_config('tcp_keepalives_interval', CAST(/* probe_s */2 AS text), false),
       set_config('tcp_keepalives_count', CAST(/* probes */3 AS text), false),
       set_config('tcp_user_timeout', CAST(/* unheard_ms */10000 AS text), false);

-- durability: findings about a server that may lose what it has acknowledged, whatever a session asks for
SELECT 'failure', 'The server may lose what it has acknowledged: fsync is off.', 'Set it to on.'
FROM pg_settings WHERE name = 'fsync' AND setting = 'off';
