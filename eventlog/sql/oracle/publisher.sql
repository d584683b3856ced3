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
(NOT EXISTS (SELECT 1 FROM /* log */event_log tried
             WHERE tried./* record_id */record_id IN
      (SELECT listed.n FROM JSON_TABLE(:retried, '$[*]' COLUMNS (n NUMBER PATH '$')) listed)
               AND tried./* status */status = 'N'
               AND tried./* table_name */table_name = waiting./* table_name */table_name
               AND tried./* table_key */table_key = waiting./* table_key */table_key));

-- anything_waiting: finds one row that could be read now, from the index of waiting rows where there is one
SELECT 1 FROM /* log */event_log waiting
WHERE waiting./* status */status = 'N' AND /* among */(1 = 1)
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > SYS_EXTRACT_UTC(SYSTIMESTAMP)))
  AND ROWNUM = 1;

-- retried_rows: rows that were offered and not taken: their object, the attempts, the seconds to the next one
SELECT tried./* record_id */record_id, tried./* table_name */table_name, tried./* table_key */table_key,
       kept.attempts, (CAST(kept.next_attempt AS DATE) - CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE)) * 86400
FROM /* log */event_log tried
JOIN /* outcomes */event_log_outcome kept ON kept.record_id = tried./* record_id */record_id
WHERE tried./* record_id */record_id IN
      (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed)
  AND tried./* status */status = 'N' AND kept.next_attempt IS NOT NULL;

-- held_rows: waiting rows that somebody holds, with their objects
SELECT tried./* record_id */record_id, tried./* table_name */table_name, tried./* table_key */table_key
FROM /* log */event_log tried
JOIN /* outcomes */event_log_outcome kept ON kept.record_id = tried./* record_id */record_id
WHERE tried./* record_id */record_id IN
      (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed)
  AND tried./* status */status = 'N' AND kept.held <> 0;

-- note_waiting: records why rows go on waiting that were read
MERGE INTO /* outcomes */event_log_outcome kept
USING (SELECT waiting./* record_id */record_id AS record_id FROM /* log */event_log waiting
       WHERE waiting./* record_id */record_id IN
             (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed)
         AND waiting./* status */status = 'N') given
ON (kept.record_id = given.record_id)
WHEN MATCHED THEN UPDATE SET kept.status = 'N', kept.reason = 'held', kept.note = :note
WHEN NOT MATCHED THEN INSERT (record_id, status, reason, note) VALUES (given.record_id, 'N', 'held', :note);

-- note_behind: records of rows that nobody reads yet which row of their object they wait for
INSERT INTO /* outcomes */event_log_outcome (record_id, status, reason, note)
SELECT behind./* record_id */record_id, 'N', 'held',
       'row ' || MIN(ahead./* record_id */record_id) || ' of the same object comes first.'
FROM /* log */event_log ahead
JOIN /* log */event_log behind
  ON behind./* table_name */table_name = ahead./* table_name */table_name
 AND behind./* table_key */table_key = ahead./* table_key */table_key
 AND behind./* record_id */record_id > ahead./* record_id */record_id
WHERE ahead./* record_id */record_id IN
      (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed)
  AND ahead./* status */status = 'N' AND behind./* status */status = 'N'
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome kept
                  WHERE kept.record_id = behind./* record_id */record_id)
GROUP BY behind./* record_id */record_id;

-- seat_mark: makes or replaces a mark if the seat is still ours
MERGE INTO /* marks */event_log_mark kept
USING (SELECT :name AS name FROM /* marks */event_log_mark seat
       WHERE seat.name = 'publisher' AND seat.value LIKE '% ' || :token) given
ON (kept.name = given.name)
WHEN MATCHED THEN UPDATE SET kept.value = :value
WHEN NOT MATCHED THEN INSERT (name, value) VALUES (given.name, :value);

-- seat_mark_soon: as `seat_mark`; every transaction is on disk before it returns
MERGE INTO /* marks */event_log_mark kept
USING (SELECT :name AS name FROM /* marks */event_log_mark seat
       WHERE seat.name = 'publisher' AND seat.value LIKE '% ' || :token) given
ON (kept.name = given.name)
WHEN MATCHED THEN UPDATE SET kept.value = :value
WHEN NOT MATCHED THEN INSERT (name, value) VALUES (given.name, :value);

-- seat_take_in_hand: notes the batch in hand as `seat_mark_soon` does, unless rows were held or released meanwhile
MERGE INTO /* marks */event_log_mark kept
USING (SELECT 'in hand' AS name FROM /* marks */event_log_mark seat
       WHERE seat.name = 'publisher' AND seat.value LIKE '% ' || :token
         AND NOT EXISTS (SELECT 1 FROM /* marks */event_log_mark held
                         WHERE held.name = 'holding' AND held.value NOT LIKE :holding)) given
ON (kept.name = given.name)
WHEN MATCHED THEN UPDATE SET kept.value = :value
WHEN NOT MATCHED THEN INSERT (name, value) VALUES (given.name, :value);

-- seat_lock: the package that locks for a session needs a grant of its own; the mark below is a lease

-- seat_enter: becomes the one publisher for :lease seconds, if nobody is or the lease of who was has run out; one that
-- ends further off than any lease lasts was given before the clock was set back
MERGE INTO /* marks */event_log_mark kept
USING (SELECT 'publisher' AS name,
              TO_CHAR(SYS_EXTRACT_UTC(SYSTIMESTAMP) + NUMTODSINTERVAL(:lease, 'SECOND'), 'YYYY-MM-DD"T"HH24:MI:SS.FF3')
              || ' ' || :token AS value FROM dual) given
ON (kept.name = given.name)
WHEN MATCHED THEN UPDATE SET kept.value = given.value
    WHERE DBMS_LOB.SUBSTR(kept.value, 23, 1) < TO_CHAR(SYS_EXTRACT_UTC(SYSTIMESTAMP), 'YYYY-MM-DD"T"HH24:MI:SS.FF3')
       OR DBMS_LOB.SUBSTR(kept.value, 23, 1)
          > TO_CHAR(SYS_EXTRACT_UTC(SYSTIMESTAMP) + NUMTODSINTERVAL(3601, 'SECOND'), 'YYYY-MM-DD"T"HH24:MI:SS.FF3')
       OR kept.value LIKE '% ' || :token
WHEN NOT MATCHED THEN INSERT (name, value) VALUES (given.name, given.value);

-- seat_keep: renews the lease of the one publisher if it is still this one; nobody else changes it before the commit
UPDATE /* marks */event_log_mark
SET value = TO_CHAR(SYS_EXTRACT_UTC(SYSTIMESTAMP) + NUMTODSINTERVAL(:lease, 'SECOND'), 'YYYY-MM-DD"T"HH24:MI:SS.FF3')
            || ' ' || :token
WHERE name = 'publisher' AND value LIKE '% ' || :token;

-- seat_leave: says that nobody publishes any more
DELETE FROM /* marks */event_log_mark WHERE name = 'publisher' AND value LIKE '% ' || :token;

-- listen: nobody can be notified here

-- session_limits: a session has none here; the driver ends a call that takes too long, also one that waits for a lock
