-- One publisher a log, and what it must know between two batches: who has the seat, whether rows wait, what is retried.

-- marks_read: every mark
SELECT name, value FROM /* marks */event_log_mark;

-- notes_clear: takes the notes about the batch in hand away
DELETE FROM /* marks */event_log_mark WHERE name LIKE 'note: %';

-- batch_clear: lets go of the batch in hand, notes and all
DELETE FROM /* marks */event_log_mark WHERE name = 'in hand' OR name LIKE 'note: %';

-- except_none: condition: no object is passed over
(1 = 1);

-- except_retried: condition: objects of which a row waits for its next attempt are passed over, whole
(NOT EXISTS (SELECT 1 FROM /* log */event_log AS tried
             WHERE tried./* record_id */record_id = ANY (CAST(translate(:retried, '[]', '{}') AS bigint[]))
               AND tried./* status */status = 'N'
               AND tried./* table_name */table_name = waiting./* table_name */table_name
               AND tried./* table_key */table_key = waiting./* table_key */table_key));

-- anything_waiting: finds one row that could be read now, from the index of waiting rows where there is one. In order,
-- for else a log whose statistics still speak of many waiting rows is read as a whole.
SELECT 1 FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND /* among */(1 = 1)
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))
ORDER BY waiting./* record_id */record_id LIMIT 1;

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

-- note_waiting: records why rows go on waiting that were read
INSERT INTO /* outcomes */event_log_outcome (record_id, status, reason, note)
SELECT waiting./* record_id */record_id, 'N', 'held', CAST(:note AS text) FROM /* log */event_log AS waiting
WHERE waiting./* record_id */record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]))
  AND waiting./* status */status = 'N'
ON CONFLICT (record_id) DO UPDATE SET status = excluded.status, reason = excluded.reason, note = excluded.note;

-- note_behind: records of rows that nobody reads yet which row of their object they wait for
INSERT INTO /* outcomes */event_log_outcome (record_id, status, reason, note)
SELECT behind./* record_id */record_id, 'N', 'held',
       'row ' || min(ahead./* record_id */record_id) || ' of the same object comes first.'
FROM /* log */event_log AS ahead
JOIN /* log */event_log AS behind
  ON behind./* table_name */table_name = ahead./* table_name */table_name
 AND behind./* table_key */table_key = ahead./* table_key */table_key
 AND behind./* record_id */record_id > ahead./* record_id */record_id
WHERE ahead./* record_id */record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]))
  AND ahead./* status */status = 'N' AND behind./* status */status = 'N'
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = behind./* record_id */record_id)
GROUP BY behind./* record_id */record_id
ON CONFLICT (record_id) DO NOTHING;

-- seat_mark: makes or replaces a mark if the seat is still ours; nobody else takes it before the commit
INSERT INTO /* marks */event_log_mark (name, value)
SELECT CAST(:name AS text), CAST(:value AS text)
WHERE EXISTS (SELECT 1 FROM /* marks */event_log_mark
              WHERE name = 'publisher' AND value LIKE '% ' || CAST(:token AS text) FOR SHARE)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- seat_mark_soon: as `seat_mark`, on disk only with the next transaction, which comes before any document
INSERT INTO /* marks */event_log_mark (name, value)
SELECT CAST(:name AS text), CAST(:value AS text)
FROM set_config('synchronous_commit', 'off', true)
WHERE EXISTS (SELECT 1 FROM /* marks */event_log_mark
              WHERE name = 'publisher' AND value LIKE '% ' || CAST(:token AS text) FOR SHARE)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- seat_take_in_hand: notes the batch in hand as `seat_mark_soon` does, unless rows were held or released meanwhile
INSERT INTO /* marks */event_log_mark (name, value)
SELECT 'in hand', CAST(:value AS text)
FROM set_config('synchronous_commit', 'off', true)
WHERE EXISTS (SELECT 1 FROM /* marks */event_log_mark
              WHERE name = 'publisher' AND value LIKE '% ' || CAST(:token AS text) FOR SHARE)
  AND NOT EXISTS (SELECT 1 FROM /* marks */event_log_mark WHERE name = 'holding' AND value <> CAST(:holding AS text))
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- seat_lock: takes the lock of the one publisher for as long as this session lives; says whether it was free
SELECT pg_try_advisory_lock(CAST(1702257011 AS bigint) << 32 | CAST(CAST(CAST(:log AS regclass) AS oid) AS bigint));

-- seat_enter: says who publishes now; the lock above keeps everybody else out
INSERT INTO /* marks */event_log_mark (name, value)
VALUES ('publisher', CAST(/* now */CURRENT_TIMESTAMP AS text) || ' ' || CAST(:token AS text))
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- seat_keep: touches the mark of the one publisher if it is still this one; nobody else changes it before the commit.
-- What is settled is on disk with the next note: should it be lost, the batch comes again with the plan of before.
UPDATE /* marks */event_log_mark SET value = value FROM set_config('synchronous_commit', 'off', true)
WHERE name = 'publisher' AND value LIKE '% ' || CAST(:token AS text);

-- seat_leave: says that nobody publishes any more
DELETE FROM /* marks */event_log_mark WHERE name = 'publisher' AND value LIKE '% ' || CAST(:token AS text);

-- listen: hears what a trigger or a person notifies on the channel of the log
LISTEN /* channel */event_log;

-- session_limits: no statement runs, and none waits for a lock, for ever
SELECT set_config('statement_timeout', CAST(/* statement_ms */300000 AS text), false),
       set_config('lock_timeout', CAST(/* lock_ms */30000 AS text), false);
