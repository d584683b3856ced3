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
             WHERE tried./* record_id */record_id IN
      (SELECT listed.id FROM JSON_TABLE(:retried, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed)
               AND tried./* status */status = 'N' AND CAST(tried./* status */status AS BINARY) = 'N'
               AND tried./* table_name */table_name = waiting./* table_name */table_name
               AND tried./* table_key */table_key = waiting./* table_key */table_key));

-- anything_waiting: finds one row that could be read now, from the index of waiting rows where there is one
SELECT 1 FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N' AND /* among */(1 = 1)
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))
LIMIT 1;

-- retried_rows: rows that were offered and not taken: their object, the attempts, the seconds to the next one
SELECT tried./* record_id */record_id, tried./* table_name */table_name, tried./* table_key */table_key,
       kept.attempts, TIMESTAMPDIFF(MICROSECOND, /* now */CURRENT_TIMESTAMP, kept.next_attempt) / 1000000
FROM /* log */event_log AS tried
JOIN /* outcomes */event_log_outcome AS kept ON kept.record_id = tried./* record_id */record_id
WHERE tried./* record_id */record_id IN
      (SELECT listed.id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed)
  AND tried./* status */status = 'N' AND CAST(tried./* status */status AS BINARY) = 'N' AND kept.next_attempt IS NOT NULL;

-- held_rows: waiting rows that somebody holds, with their objects
SELECT tried./* record_id */record_id, tried./* table_name */table_name, tried./* table_key */table_key
FROM /* log */event_log AS tried
JOIN /* outcomes */event_log_outcome AS kept ON kept.record_id = tried./* record_id */record_id
WHERE tried./* record_id */record_id IN
      (SELECT listed.id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed)
  AND tried./* status */status = 'N' AND CAST(tried./* status */status AS BINARY) = 'N' AND kept.held <> 0;

-- note_waiting: records why rows go on waiting that were read
INSERT INTO /* outcomes */event_log_outcome (record_id, status, reason, note)
SELECT waiting./* record_id */record_id, 'N', 'held', :note
FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed
STRAIGHT_JOIN /* log */event_log AS waiting ON waiting./* record_id */record_id = listed.id
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N'
ON DUPLICATE KEY UPDATE status = 'N', reason = 'held', note = :note;

-- note_behind: records of rows that nobody reads yet which row of their object they wait for
INSERT IGNORE INTO /* outcomes */event_log_outcome (record_id, status, reason, note)
SELECT behind./* record_id */record_id, 'N', 'held',
       CONCAT('row ', MIN(ahead./* record_id */record_id), ' of the same object comes first.')
FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed
STRAIGHT_JOIN /* log */event_log AS ahead ON ahead./* record_id */record_id = listed.id
JOIN /* log */event_log AS behind
  ON behind./* table_name */table_name = ahead./* table_name */table_name
 AND behind./* table_key */table_key = ahead./* table_key */table_key
 AND behind./* record_id */record_id > ahead./* record_id */record_id
WHERE ahead./* status */status = 'N' AND CAST(ahead./* status */status AS BINARY) = 'N'
  AND behind./* status */status = 'N' AND CAST(behind./* status */status AS BINARY) = 'N'
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = behind./* record_id */record_id)
GROUP BY behind./* record_id */record_id;

-- seat_mark: makes or replaces a mark if the seat is still ours; nobody else takes it before the commit
INSERT INTO /* marks */event_log_mark (name, value)
SELECT :name, :value FROM /* marks */event_log_mark AS seat
WHERE seat.name = 'publisher' AND seat.value LIKE CONCAT('% ', :token) LOCK IN SHARE MODE
ON DUPLICATE KEY UPDATE value = :value;

-- seat_mark_soon: as `seat_mark`; every transaction is on disk before it returns
INSERT INTO /* marks */event_log_mark (name, value)
SELECT :name, :value FROM /* marks */event_log_mark AS seat
WHERE seat.name = 'publisher' AND seat.value LIKE CONCAT('% ', :token) LOCK IN SHARE MODE
ON DUPLICATE KEY UPDATE value = :value;

-- seat_take_in_hand: notes the batch in hand as `seat_mark_soon` does, unless rows were held or released meanwhile
INSERT INTO /* marks */event_log_mark (name, value)
SELECT 'in hand', :value FROM /* marks */event_log_mark AS seat
WHERE seat.name = 'publisher' AND seat.value LIKE CONCAT('% ', :token)
  AND NOT EXISTS (SELECT 1 FROM /* marks */event_log_mark AS held WHERE held.name = 'holding' AND held.value <> :holding)
LOCK IN SHARE MODE
ON DUPLICATE KEY UPDATE value = :value;

-- seat_lock: takes the lock of the one publisher for as long as this session lives; says whether it was free
-- A lock's name has 64 characters at most. MySQL has no MD5 any more, which did this before.
SELECT GET_LOCK(CONCAT('eventlog ', LEFT(SHA2(CONCAT(COALESCE(DATABASE(), ''), '.', :log), 256), 40)), 0);

-- seat_enter: says who publishes now; the lock above keeps everybody else out
INSERT INTO /* marks */event_log_mark (name, value)
VALUES ('publisher', CONCAT(/* now */CURRENT_TIMESTAMP, ' ', :token))
ON DUPLICATE KEY UPDATE value = CONCAT(/* now */CURRENT_TIMESTAMP, ' ', :token);

-- seat_keep: touches the mark of the one publisher if it is still this one; nobody else changes it before the commit
UPDATE /* marks */event_log_mark SET value = CONCAT(/* now */CURRENT_TIMESTAMP, ' ', :token)
WHERE name = 'publisher' AND value LIKE CONCAT('% ', :token);

-- seat_leave: says that nobody publishes any more
DELETE FROM /* marks */event_log_mark WHERE name = 'publisher' AND value LIKE CONCAT('% ', :token);

-- listen: nobody can be notified here

-- session_limits: nothing waits for a lock for ever, and no statement runs for ever; MySQL limits only those that read
SET SESSION lock_wait_timeout = /* lock_s */30, innodb_lock_wait_timeout = /* lock_s */30
/*M!, max_statement_time = /* statement_s */300.0 */ /*!80000 , max_execution_time = /* statement_ms */300000 */;
