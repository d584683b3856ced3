-- One publisher a log, and what it must know between two batches: who holds the lock, which rows wait, what is retried.

-- except_passed: condition: rows of objects that are passed over from a row of theirs on
(NOT EXISTS (SELECT 1
             FROM JSON_TABLE(:passed, '$[*]' COLUMNS (name LONGTEXT PATH '$[0]', object LONGTEXT PATH '$[1]',
                                                      first BIGINT PATH '$[2]')) AS passed
             WHERE passed.first <= waiting./* record_id */record_id
               AND CAST(passed.name AS BINARY)
                   = CAST(CONVERT(waiting./* table_name */table_name USING utf8mb4) AS BINARY)
               AND CAST(passed.object AS BINARY)
                   = CAST(CONVERT(waiting./* table_key */table_key USING utf8mb4) AS BINARY)));

-- unread_tables: condition: tables whose rows may not be read back are passed over
(NOT EXISTS (SELECT 1 FROM JSON_TABLE(:unread, '$[*]' COLUMNS (name LONGTEXT PATH '$')) AS unread
             WHERE CAST(unread.name AS BINARY)
                   = CAST(CONVERT(waiting./* table_name */table_name USING utf8mb4) AS BINARY)));

-- anything_waiting: finds one row that could be read now, from the index of waiting rows where there is one
SELECT 1 FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N' AND /* among */(1 = 1)
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))
LIMIT 1;

-- anything_beyond: finds one row above a number that could be read now, and is of no object that is passed over
SELECT 1 FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N' AND waiting./* record_id */record_id > :beyond AND /* except */(1 = 1)
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))
LIMIT 1;

-- late_numbers: numbers of rows in the gaps between those that were seen. Ranges are found by constants only: joined with
-- a list of gaps, the index would be read as a whole for each of them.
SELECT waiting./* record_id */record_id FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N'
  AND /* except */(1 = 1) AND /* unread */(1 = 1)
  AND (waiting./* record_id */record_id BETWEEN :from_0 AND :to_0
       OR waiting./* record_id */record_id BETWEEN :from_1 AND :to_1
       OR waiting./* record_id */record_id BETWEEN :from_2 AND :to_2
       OR waiting./* record_id */record_id BETWEEN :from_3 AND :to_3
       OR waiting./* record_id */record_id BETWEEN :from_4 AND :to_4
       OR waiting./* record_id */record_id BETWEEN :from_5 AND :to_5
       OR waiting./* record_id */record_id BETWEEN :from_6 AND :to_6
       OR waiting./* record_id */record_id BETWEEN :from_7 AND :to_7
       OR waiting./* record_id */record_id BETWEEN :from_8 AND :to_8
       OR waiting./* record_id */record_id BETWEEN :from_9 AND :to_9
       OR waiting./* record_id */record_id BETWEEN :from_10 AND :to_10
       OR waiting./* record_id */record_id BETWEEN :from_11 AND :to_11
       OR waiting./* record_id */record_id BETWEEN :from_12 AND :to_12
       OR waiting./* record_id */record_id BETWEEN :from_13 AND :to_13
       OR waiting./* record_id */record_id BETWEEN :from_14 AND :to_14
       OR waiting./* record_id */record_id BETWEEN :from_15 AND :to_15
       OR waiting./* record_id */record_id BETWEEN :from_16 AND :to_16
       OR waiting./* record_id */record_id BETWEEN :from_17 AND :to_17
       OR waiting./* record_id */record_id BETWEEN :from_18 AND :to_18
       OR waiting./* record_id */record_id BETWEEN :from_19 AND :to_19
       OR waiting./* record_id */record_id BETWEEN :from_20 AND :to_20
       OR waiting./* record_id */record_id BETWEEN :from_21 AND :to_21
       OR waiting./* record_id */record_id BETWEEN :from_22 AND :to_22
       OR waiting./* record_id */record_id BETWEEN :from_23 AND :to_23
       OR waiting./* record_id */record_id BETWEEN :from_24 AND :to_24
       OR waiting./* record_id */record_id BETWEEN :from_25 AND :to_25
       OR waiting./* record_id */record_id BETWEEN :from_26 AND :to_26
       OR waiting./* record_id */record_id BETWEEN :from_27 AND :to_27
       OR waiting./* record_id */record_id BETWEEN :from_28 AND :to_28
       OR waiting./* record_id */record_id BETWEEN :from_29 AND :to_29
       OR waiting./* record_id */record_id BETWEEN :from_30 AND :to_30
       OR waiting./* record_id */record_id BETWEEN :from_31 AND :to_31)
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
            WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N'
              AND waiting./* record_id */record_id > :above AND waiting./* record_id */record_id <= :upto
              AND NOT /* except */(1 = 1)
            ORDER BY waiting./* record_id */record_id
            LIMIT :limit) AS found) AS place
GROUP BY place.island, CAST(place.name AS BINARY), CAST(place.object AS BINARY);

-- count_some: how many rows could be read now, counted up to a limit
SELECT COUNT(*) FROM (
    SELECT 1 FROM /* log */event_log AS waiting
    WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N' AND /* among */(1 = 1)
      AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                      WHERE kept.record_id = waiting./* record_id */record_id
                        AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))
    LIMIT :limit) AS found;

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

-- still_waiting: which of these rows wait, held or not
SELECT tried./* record_id */record_id
FROM /* log */event_log AS tried
WHERE tried./* record_id */record_id IN
      (SELECT listed.id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed)
  AND tried./* status */status = 'N' AND CAST(tried./* status */status AS BINARY) = 'N';

-- note_waiting: records why rows go on waiting that were read
INSERT INTO /* outcomes */event_log_outcome (record_id, status, reason, note)
SELECT waiting./* record_id */record_id, 'N', 'held', :note
FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed
STRAIGHT_JOIN /* log */event_log AS waiting ON waiting./* record_id */record_id = listed.id
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N'
ON DUPLICATE KEY UPDATE status = 'N', reason = 'held', note = :note;

-- note_behind: records of rows that nobody reads yet which row of their object they wait for;
-- only of those that have waited longest, for there may be very many
INSERT IGNORE INTO /* outcomes */event_log_outcome (record_id, status, reason, note)
SELECT behind./* record_id */record_id, 'N', 'held',
       CONCAT('row ', MIN(ahead./* record_id */record_id), ' of the same object comes first.')
FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed
STRAIGHT_JOIN /* log */event_log AS ahead ON ahead./* record_id */record_id = listed.id
JOIN (
      SELECT waiting./* record_id */record_id, waiting./* table_name */table_name, waiting./* table_key */table_key
      FROM /* log */event_log AS waiting
      WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N'
      ORDER BY waiting./* record_id */record_id LIMIT :most
) AS behind
  ON behind./* table_name */table_name = ahead./* table_name */table_name
 AND behind./* table_key */table_key = ahead./* table_key */table_key
 AND behind./* record_id */record_id > ahead./* record_id */record_id
WHERE ahead./* status */status = 'N' AND CAST(ahead./* status */status AS BINARY) = 'N'
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = behind./* record_id */record_id)
GROUP BY behind./* record_id */record_id;

-- lock_mark: makes or replaces a mark if the lock is still ours; nobody else takes it before the commit
INSERT INTO /* marks */event_log_mark (name, value)
SELECT :name, :value FROM /* marks */event_log_mark AS own
WHERE own.name = 'publisher' AND own.value LIKE CONCAT('% ', :token) LOCK IN SHARE MODE
ON DUPLICATE KEY UPDATE value = :value;

-- lock_mark_soon: as `lock_mark`; every transaction is on disk before it returns
INSERT INTO /* marks */event_log_mark (name, value)
SELECT :name, :value FROM /* marks */event_log_mark AS own
WHERE own.name = 'publisher' AND own.value LIKE CONCAT('% ', :token) LOCK IN SHARE MODE
ON DUPLICATE KEY UPDATE value = :value;

-- lock_take_in_hand: notes the batch in hand as `lock_mark_soon` does, unless rows were held or released meanwhile
INSERT INTO /* marks */event_log_mark (name, value)
SELECT 'in hand', :value FROM /* marks */event_log_mark AS own
WHERE own.name = 'publisher' AND own.value LIKE CONCAT('% ', :token)
  AND NOT EXISTS (SELECT 1 FROM /* marks */event_log_mark AS held WHERE held.name = 'holding' AND held.value <> :holding)
LOCK IN SHARE MODE
ON DUPLICATE KEY UPDATE value = :value;

-- lock_read: the mark of who holds the lock, if there is one, and the database's clock
SELECT (SELECT value FROM /* marks */event_log_mark WHERE name = 'publisher'),
       LEFT(DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%f'), 23);

-- lock_until: expression: when a lease ends that begins now
LEFT(DATE_FORMAT(UTC_TIMESTAMP(6) + INTERVAL :lease SECOND, '%Y-%m-%dT%H:%i:%s.%f'), 23);

-- lock_grasp: keeps others from changing the mark, unless somebody does that at this moment, who is not waited for
SELECT 1 FROM /* marks */event_log_mark WHERE name = 'publisher' FOR UPDATE SKIP LOCKED;

-- lock_make: takes the lock for :lease seconds where there is no mark
INSERT IGNORE INTO /* marks */event_log_mark (name, value)
VALUES ('publisher', CONCAT(/* until */'2026-11-21T02:00:45.123', ' ', :token));

-- lock_replace: takes the lock for :lease seconds if the mark is still as it was read
UPDATE /* marks */event_log_mark
SET value = CONCAT(/* until */'2026-11-21T02:00:45.123', ' ', :token)
WHERE name = 'publisher' AND value = :former;

-- lock_keep: renews the lease if the lock is still ours; nobody else changes the mark before the commit
UPDATE /* marks */event_log_mark
SET value = CONCAT(/* until */'2026-11-21T02:00:45.123', ' ', :token)
WHERE name = 'publisher' AND value LIKE CONCAT('% ', :token);

-- lock_keep_soon: as `lock_keep`; every transaction is on disk before it returns
UPDATE /* marks */event_log_mark
SET value = CONCAT(/* until */'2026-11-21T02:00:45.123', ' ', :token)
WHERE name = 'publisher' AND value LIKE CONCAT('% ', :token);

-- lock_leave: says that nobody publishes any more
DELETE FROM /* marks */event_log_mark WHERE name = 'publisher' AND value LIKE CONCAT('% ', :token);

-- session_limits: nothing waits for a lock for ever, and no statement runs for ever; MySQL limits only those that read
SET SESSION lock_wait_timeout = /* lock_s */30, innodb_lock_wait_timeout = /* lock_s */30
/*M!, max_statement_time = /* statement_s */300.0 */ /*!80000 , max_execution_time = /* statement_ms */300000 */;

-- lease_limits: a client that is frozen or cut off holds no row for longer than two leases; MySQL has no such limit
SET @eventlog_limited = 1 /*M! , SESSION idle_write_transaction_timeout = /* idle_s */10 */;
