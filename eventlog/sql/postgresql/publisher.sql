-- One publisher a log, and what it must know between two batches: who holds the lock, which rows wait, what is retried.

-- except_passed: condition: rows of objects that are passed over from a row of theirs on. Those rows may be very many, so
-- each is looked up in one object, and none is joined: the rows stay in the order of their index.
coalesce(waiting./* record_id */record_id
         < CAST((SELECT jsonb_object_agg((one ->> 0) || chr(31) || (one ->> 1), one -> 2)
                 FROM jsonb_array_elements(CAST(:passed AS jsonb)) AS passed (one))
                ->> (waiting./* table_name */table_name || chr(31) || waiting./* table_key */table_key) AS bigint),
         true);

-- unread_tables: condition: tables whose rows may not be read back are passed over
coalesce(waiting./* table_name */table_name <> ALL (ARRAY(SELECT json_array_elements_text(CAST(:unread AS json)))), true);

-- anything_waiting: finds one row that could be read now, from the index of waiting rows where there is one. In order,
-- for else a log whose statistics still speak of many waiting rows is read as a whole.
SELECT 1 FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND /* among */(1 = 1)
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))
ORDER BY waiting./* record_id */record_id LIMIT 1;

-- anything_beyond: finds one row above a number that could be read now, and is of no object that is passed over
SELECT 1 FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND waiting./* record_id */record_id > :beyond AND /* except */(1 = 1)
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))
ORDER BY waiting./* record_id */record_id LIMIT 1;

-- late_numbers: numbers of rows in the gaps between those that were seen, each gap by the index
SELECT waiting./* record_id */record_id
FROM jsonb_array_elements(CAST(:gaps AS jsonb)) AS gap (ends)
CROSS JOIN LATERAL (
      SELECT late.* FROM /* log */event_log AS late
      WHERE late./* status */status = 'N'
        AND late./* record_id */record_id BETWEEN CAST(ends ->> 0 AS bigint) AND CAST(ends ->> 1 AS bigint)
      ORDER BY late./* record_id */record_id OFFSET 0
) AS waiting
WHERE /* except */(1 = 1) AND /* unread */(1 = 1)
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))
ORDER BY waiting./* record_id */record_id LIMIT :limit;

-- passed_runs: rows of objects that are passed over, as runs of numbers without gaps: of each object in a run its first and
-- last number. Between them lie rows of other objects that are passed over as well.
SELECT MIN(place.id), MAX(place.id), MIN(place.name), MIN(place.object)
FROM (SELECT found.id, found.name, found.object, found.id - ROW_NUMBER() OVER (ORDER BY found.id) AS island
      FROM (SELECT waiting./* record_id */record_id AS id, waiting./* table_name */table_name AS name,
                   waiting./* table_key */table_key AS object
            FROM /* log */event_log AS waiting
            WHERE waiting./* status */status = 'N'
              AND waiting./* record_id */record_id > :above AND waiting./* record_id */record_id <= :upto
              AND NOT /* except */(1 = 1)
            ORDER BY waiting./* record_id */record_id
            LIMIT :limit) AS found) AS place
GROUP BY place.island, place.name, place.object;

-- count_some: how many rows could be read now, counted up to a limit
SELECT COUNT(*) FROM (
    SELECT 1 FROM /* log */event_log AS waiting
    WHERE waiting./* status */status = 'N' AND /* among */(1 = 1)
      AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                      WHERE kept.record_id = waiting./* record_id */record_id
                        AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))
    ORDER BY waiting./* record_id */record_id LIMIT :limit) AS found;

-- retried_rows: rows that were offered and not taken: their object, the attempts, the seconds to the next one
SELECT tried./* record_id */record_id, tried./* table_name */table_name, tried./* table_key */table_key,
       kept.attempts, CAST(EXTRACT(EPOCH FROM kept.next_attempt - /* now */CURRENT_TIMESTAMP) AS double precision)
FROM /* log */event_log AS tried
JOIN /* outcomes */event_log_outcome AS kept ON kept.record_id = tried./* record_id */record_id
WHERE tried./* record_id */record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]))
  AND tried./* status */status = 'N' AND kept.next_attempt IS NOT NULL;

-- held_rows: waiting rows that somebody holds, with their objects
SELECT tried./* record_id */record_id, tried./* table_name */table_name, tried./* table_key */table_key
FROM /* log */event_log AS tried
JOIN /* outcomes */event_log_outcome AS kept ON kept.record_id = tried./* record_id */record_id
WHERE tried./* record_id */record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]))
  AND tried./* status */status = 'N' AND kept.held <> 0;

-- still_waiting: which of these rows wait, held or not
SELECT tried./* record_id */record_id
FROM /* log */event_log AS tried
WHERE tried./* record_id */record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]))
  AND tried./* status */status = 'N';

-- note_waiting: records why rows go on waiting that were read
INSERT INTO /* outcomes */event_log_outcome (record_id, status, reason, note)
SELECT waiting./* record_id */record_id, 'N', 'held', CAST(:note AS text) FROM /* log */event_log AS waiting
WHERE waiting./* record_id */record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]))
  AND waiting./* status */status = 'N'
ON CONFLICT (record_id) DO UPDATE SET status = excluded.status, reason = excluded.reason, note = excluded.note;

-- note_behind: records of rows that nobody reads yet which row of their object they wait for;
-- only of those that have waited longest, for there may be very many
INSERT INTO /* outcomes */event_log_outcome (record_id, status, reason, note)
SELECT behind./* record_id */record_id, 'N', 'held',
       'row ' || min(ahead./* record_id */record_id) || ' of the same object comes first.'
FROM /* log */event_log AS ahead
JOIN (
      SELECT waiting./* record_id */record_id, waiting./* table_name */table_name, waiting./* table_key */table_key
      FROM /* log */event_log AS waiting
      WHERE waiting./* status */status = 'N'
      ORDER BY waiting./* record_id */record_id LIMIT :most
) AS behind
  ON behind./* table_name */table_name = ahead./* table_name */table_name
 AND behind./* table_key */table_key = ahead./* table_key */table_key
 AND behind./* record_id */record_id > ahead./* record_id */record_id
WHERE ahead./* record_id */record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]))
  AND ahead./* status */status = 'N'
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = behind./* record_id */record_id)
GROUP BY behind./* record_id */record_id
ON CONFLICT (record_id) DO NOTHING;

-- lock_mark: makes or replaces a mark if the lock is still ours; nobody else takes it before the commit
INSERT INTO /* marks */event_log_mark (name, value)
SELECT CAST(:name AS text), CAST(:value AS text)
WHERE EXISTS (SELECT 1 FROM /* marks */event_log_mark
              WHERE name = 'publisher' AND value LIKE '% ' || CAST(:token AS text) FOR SHARE)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- lock_mark_soon: as `lock_mark`, on disk only with the next transaction, which comes before any document
INSERT INTO /* marks */event_log_mark (name, value)
SELECT CAST(:name AS text), CAST(:value AS text)
FROM set_config('synchronous_commit', 'off', true)
WHERE EXISTS (SELECT 1 FROM /* marks */event_log_mark
              WHERE name = 'publisher' AND value LIKE '% ' || CAST(:token AS text) FOR SHARE)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- lock_take_in_hand: notes the batch in hand as `lock_mark_soon` does, unless rows were held or released meanwhile
INSERT INTO /* marks */event_log_mark (name, value)
SELECT 'in hand', CAST(:value AS text)
FROM set_config('synchronous_commit', 'off', true)
WHERE EXISTS (SELECT 1 FROM /* marks */event_log_mark
              WHERE name = 'publisher' AND value LIKE '% ' || CAST(:token AS text) FOR SHARE)
  AND NOT EXISTS (SELECT 1 FROM /* marks */event_log_mark WHERE name = 'holding' AND value <> CAST(:holding AS text))
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- lock_read: the mark of who holds the lock, if there is one, and the database's clock
SELECT (SELECT value FROM /* marks */event_log_mark WHERE name = 'publisher'),
       to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS');

-- lock_until: expression: when a lease ends that begins now
to_char(clock_timestamp() AT TIME ZONE 'UTC' + make_interval(secs => CAST(:lease AS double precision)),
        'YYYY-MM-DD"T"HH24:MI:SS.MS');

-- lock_grasp: keeps others from changing the mark, unless somebody does that at this moment, who is not waited for
SELECT 1 FROM /* marks */event_log_mark WHERE name = 'publisher' FOR UPDATE SKIP LOCKED;

-- lock_make: takes the lock for :lease seconds where there is no mark
INSERT INTO /* marks */event_log_mark (name, value)
VALUES ('publisher', /* until */'2026-11-21T02:00:45.123' || ' ' || CAST(:token AS text))
ON CONFLICT (name) DO NOTHING;

-- lock_replace: takes the lock for :lease seconds if the mark is still as it was read
UPDATE /* marks */event_log_mark
SET value = /* until */'2026-11-21T02:00:45.123' || ' ' || CAST(:token AS text)
WHERE name = 'publisher' AND value = CAST(:former AS text);

-- lock_keep: renews the lease if the lock is still ours; nobody else changes the mark before the commit
UPDATE /* marks */event_log_mark
SET value = /* until */'2026-11-21T02:00:45.123' || ' ' || CAST(:token AS text)
WHERE name = 'publisher' AND value LIKE '% ' || CAST(:token AS text);

-- lock_keep_soon: as `lock_keep`, on disk only with the next transaction.
-- What is settled is on disk with the next note: should it be lost, the batch comes again with the plan of before.
UPDATE /* marks */event_log_mark
SET value = /* until */'2026-11-21T02:00:45.123' || ' ' || CAST(:token AS text)
FROM set_config('synchronous_commit', 'off', true)
WHERE name = 'publisher' AND value LIKE '% ' || CAST(:token AS text);

-- lock_leave: says that nobody publishes any more
DELETE FROM /* marks */event_log_mark WHERE name = 'publisher' AND value LIKE '% ' || CAST(:token AS text);

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
