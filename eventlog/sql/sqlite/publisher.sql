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
             WHERE tried./* record_id */record_id IN (SELECT value FROM json_each(:retried))
               AND tried./* status */status = 'N'
               AND tried./* table_name */table_name = waiting./* table_name */table_name
               AND tried./* table_key */table_key = waiting./* table_key */table_key));

-- anything_waiting: finds one row that could be read now, from the index of waiting rows where there is one
SELECT 1 FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND /* among */(1 = 1)
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))
LIMIT 1;

-- retried_rows: rows that were offered and not taken: their object, the attempts, the seconds to the next one
SELECT tried./* record_id */record_id, CAST(tried./* table_name */table_name AS text), CAST(tried./* table_key */table_key AS text),
       kept.attempts, (julianday(kept.next_attempt) - julianday(/* now */CURRENT_TIMESTAMP)) * 86400.0
FROM /* log */event_log AS tried
JOIN /* outcomes */event_log_outcome AS kept ON kept.record_id = tried./* record_id */record_id
WHERE tried./* record_id */record_id IN (SELECT value FROM json_each(:ids))
  AND tried./* status */status = 'N' AND kept.next_attempt IS NOT NULL;

-- held_rows: waiting rows that somebody holds, with their objects
SELECT tried./* record_id */record_id, CAST(tried./* table_name */table_name AS text), CAST(tried./* table_key */table_key AS text)
FROM /* log */event_log AS tried
JOIN /* outcomes */event_log_outcome AS kept ON kept.record_id = tried./* record_id */record_id
WHERE tried./* record_id */record_id IN (SELECT value FROM json_each(:ids))
  AND tried./* status */status = 'N' AND kept.held <> 0;

-- note_waiting: records why rows go on waiting that were read
INSERT INTO /* outcomes */event_log_outcome (record_id, status, reason, note)
SELECT waiting./* record_id */record_id, 'N', 'held', :note FROM /* log */event_log AS waiting
WHERE waiting./* record_id */record_id IN (SELECT value FROM json_each(:ids)) AND waiting./* status */status = 'N'
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
WHERE ahead./* record_id */record_id IN (SELECT value FROM json_each(:ids))
  AND ahead./* status */status = 'N' AND behind./* status */status = 'N'
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = behind./* record_id */record_id)
GROUP BY behind./* record_id */record_id
ON CONFLICT (record_id) DO NOTHING;

-- seat_mark: makes or replaces a mark if the seat is still ours; nobody else takes it before the commit
INSERT INTO /* marks */event_log_mark (name, value)
SELECT :name, :value
WHERE EXISTS (SELECT 1 FROM /* marks */event_log_mark WHERE name = 'publisher' AND value LIKE '% ' || :token)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- seat_mark_soon: as `seat_mark`; every transaction is on disk before it returns
INSERT INTO /* marks */event_log_mark (name, value)
SELECT :name, :value
WHERE EXISTS (SELECT 1 FROM /* marks */event_log_mark WHERE name = 'publisher' AND value LIKE '% ' || :token)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- seat_take_in_hand: notes the batch in hand as `seat_mark_soon` does, unless rows were held or released meanwhile
INSERT INTO /* marks */event_log_mark (name, value)
SELECT 'in hand', :value
WHERE EXISTS (SELECT 1 FROM /* marks */event_log_mark WHERE name = 'publisher' AND value LIKE '% ' || :token)
  AND NOT EXISTS (SELECT 1 FROM /* marks */event_log_mark WHERE name = 'holding' AND value <> :holding)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- seat_lock: no lock lives and dies with a session here; the mark below is a lease

-- seat_enter: becomes the one publisher for :lease seconds, if nobody is or the lease of who was has run out; one that
-- ends further off than any lease lasts was given before the clock was set back
INSERT INTO /* marks */event_log_mark AS former (name, value)
VALUES ('publisher', strftime('%Y-%m-%dT%H:%M:%f', 'now', :lease || ' seconds') || ' ' || :token)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
WHERE former.value < strftime('%Y-%m-%dT%H:%M:%f', 'now') OR former.value LIKE '% ' || :token
   OR former.value > strftime('%Y-%m-%dT%H:%M:%f', 'now', '3601 seconds');

-- seat_keep: renews the lease of the one publisher if it is still this one; nobody else changes it before the commit
UPDATE /* marks */event_log_mark
SET value = strftime('%Y-%m-%dT%H:%M:%f', 'now', :lease || ' seconds') || ' ' || :token
WHERE name = 'publisher' AND value LIKE '% ' || :token;

-- seat_leave: says that nobody publishes any more
DELETE FROM /* marks */event_log_mark WHERE name = 'publisher' AND value LIKE '% ' || :token;

-- listen: nobody can be notified here

-- session_limits: nothing waits for a lock for ever; a statement cannot be limited here
PRAGMA busy_timeout = /* lock_ms */30000;
