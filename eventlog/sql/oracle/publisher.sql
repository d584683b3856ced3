-- One publisher a log, and what it must know between two batches: who holds the lock, which rows wait, what is retried.

-- except_passed: condition: rows of objects that are passed over from a row of theirs on
(NOT EXISTS (SELECT 1
             FROM JSON_TABLE(:passed, '$[*]' COLUMNS (name VARCHAR2(4000) PATH '$[0]', object VARCHAR2(4000) PATH '$[1]',
                                                      first NUMBER PATH '$[2]')) passed
             WHERE passed.first <= waiting./* record_id */record_id
               AND passed.name = waiting./* table_name */table_name
               AND passed.object = waiting./* table_key */table_key));

-- unread_tables: condition: tables whose rows may not be read back are passed over
(NOT EXISTS (SELECT 1 FROM JSON_TABLE(:unread, '$[*]' COLUMNS (name VARCHAR2(4000) PATH '$')) unread
             WHERE unread.name = waiting./* table_name */table_name));

-- anything_waiting: finds one row that could be read now, from the index of waiting rows where there is one
SELECT 1 FROM /* log */event_log waiting
WHERE waiting./* status */status = 'N' AND /* waiting_number */waiting.record_id IS NOT NULL
  AND /* among */(1 = 1)
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > SYS_EXTRACT_UTC(SYSTIMESTAMP)))
  AND ROWNUM = 1;

-- anything_beyond: finds one row above a number that could be read now, and is of no object that is passed over
SELECT 1 FROM /* log */event_log waiting
WHERE waiting./* status */status = 'N' AND /* waiting_number */waiting.record_id > :beyond
  AND /* except */(1 = 1)
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > SYS_EXTRACT_UTC(SYSTIMESTAMP)))
  AND ROWNUM = 1;

-- late_numbers: numbers of rows in the gaps between those that were seen, each gap by the index
SELECT record_id FROM (
    SELECT waiting./* record_id */record_id AS record_id
    FROM JSON_TABLE(:gaps, '$[*]' COLUMNS (first NUMBER PATH '$[0]', last NUMBER PATH '$[1]')) gap
    JOIN /* log */event_log waiting ON waiting./* record_id */record_id BETWEEN gap.first AND gap.last
    WHERE waiting./* status */status = 'N' AND /* waiting_number */waiting.record_id IS NOT NULL
      AND /* except */(1 = 1) AND /* unread */(1 = 1)
      AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > SYS_EXTRACT_UTC(SYSTIMESTAMP)))
    ORDER BY /* waiting_number */waiting.record_id
) WHERE ROWNUM <= :limit;

-- passed_runs: rows of objects that are passed over, as runs of numbers without gaps: of each object in a run its first and
-- last number. Between them lie rows of other objects that are passed over as well.
SELECT MIN(place.id), MAX(place.id), MIN(place.name), MIN(place.object)
FROM (SELECT found.id, found.name, found.object, found.id - ROW_NUMBER() OVER (ORDER BY found.id) AS island
      FROM (SELECT * FROM (SELECT waiting./* record_id */record_id AS id, waiting./* table_name */table_name AS name,
                   waiting./* table_key */table_key AS object
            FROM /* log */event_log waiting
            WHERE waiting./* status */status = 'N' AND /* waiting_number */waiting.record_id > :above
              AND /* waiting_number */waiting.record_id <= :upto
              AND NOT /* except */(1 = 1)
            ORDER BY /* waiting_number */waiting.record_id) WHERE ROWNUM <= :limit) found) place
GROUP BY place.island, place.name, place.object;

-- count_some: how many rows could be read now, counted up to a limit
SELECT COUNT(*) FROM /* log */event_log waiting
WHERE waiting./* status */status = 'N' AND /* waiting_number */waiting.record_id IS NOT NULL
  AND /* among */(1 = 1)
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > SYS_EXTRACT_UTC(SYSTIMESTAMP)))
  AND ROWNUM <= :limit;

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

-- still_waiting: which of these rows wait, held or not
SELECT tried./* record_id */record_id
FROM /* log */event_log tried
WHERE tried./* record_id */record_id IN
      (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed)
  AND tried./* status */status = 'N';

-- note_waiting: records why rows go on waiting that were read
MERGE INTO /* outcomes */event_log_outcome kept
USING (SELECT waiting./* record_id */record_id AS record_id FROM /* log */event_log waiting
       WHERE waiting./* record_id */record_id IN
             (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed)
         AND waiting./* status */status = 'N') given
ON (kept.record_id = given.record_id)
WHEN MATCHED THEN UPDATE SET kept.status = 'N', kept.reason = 'held', kept.note = :note
WHEN NOT MATCHED THEN INSERT (record_id, status, reason, note) VALUES (given.record_id, 'N', 'held', :note);

-- note_behind: records of rows that nobody reads yet which row of their object they wait for;
-- only of those that have waited longest, for there may be very many
INSERT INTO /* outcomes */event_log_outcome (record_id, status, reason, note)
SELECT behind./* record_id */record_id, 'N', 'held',
       'row ' || MIN(ahead./* record_id */record_id) || ' of the same object comes first.'
FROM /* log */event_log ahead
JOIN (
      SELECT * FROM (
        SELECT waiting./* record_id */record_id, waiting./* table_name */table_name, waiting./* table_key */table_key
        FROM /* log */event_log waiting
        WHERE waiting./* status */status = 'N' AND /* waiting_number */waiting.record_id IS NOT NULL
        ORDER BY /* waiting_number */waiting.record_id
      ) WHERE ROWNUM <= :most
) behind
  ON behind./* table_name */table_name = ahead./* table_name */table_name
 AND behind./* table_key */table_key = ahead./* table_key */table_key
 AND behind./* record_id */record_id > ahead./* record_id */record_id
WHERE ahead./* record_id */record_id IN
      (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed)
  AND ahead./* status */status = 'N'
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome kept
                  WHERE kept.record_id = behind./* record_id */record_id)
GROUP BY behind./* record_id */record_id;

-- lock_hold: locks the row of the lease if the lock is still ours: nobody else takes it before the commit. A MERGE would only
-- read that row, as it was before somebody who is about to commit took the lock.
SELECT 1 FROM /* marks */event_log_mark WHERE name = 'publisher' AND value LIKE '% ' || :token FOR UPDATE;

-- lock_mark: makes or replaces a mark if the lock is still ours, after `lock_hold`
MERGE INTO /* marks */event_log_mark kept
USING (SELECT :name AS name FROM /* marks */event_log_mark own
       WHERE own.name = 'publisher' AND own.value LIKE '% ' || :token) given
ON (kept.name = given.name)
WHEN MATCHED THEN UPDATE SET kept.value = :value
WHEN NOT MATCHED THEN INSERT (name, value) VALUES (given.name, :value);

-- lock_mark_soon: as `lock_mark`; every transaction is on disk before it returns
MERGE INTO /* marks */event_log_mark kept
USING (SELECT :name AS name FROM /* marks */event_log_mark own
       WHERE own.name = 'publisher' AND own.value LIKE '% ' || :token) given
ON (kept.name = given.name)
WHEN MATCHED THEN UPDATE SET kept.value = :value
WHEN NOT MATCHED THEN INSERT (name, value) VALUES (given.name, :value);

-- lock_take_in_hand: notes the batch in hand as `lock_mark_soon` does, unless rows were held or released meanwhile
MERGE INTO /* marks */event_log_mark kept
USING (SELECT 'in hand' AS name FROM /* marks */event_log_mark own
       WHERE own.name = 'publisher' AND own.value LIKE '% ' || :token
         AND NOT EXISTS (SELECT 1 FROM /* marks */event_log_mark held
                         WHERE held.name = 'holding' AND held.value NOT LIKE :holding)) given
ON (kept.name = given.name)
WHEN MATCHED THEN UPDATE SET kept.value = :value
WHEN NOT MATCHED THEN INSERT (name, value) VALUES (given.name, :value);

-- lock_read: the mark of who holds the lock, if there is one, and the database's clock
SELECT (SELECT TO_CHAR(SUBSTR(value, 1, 2000)) FROM /* marks */event_log_mark WHERE name = 'publisher'),
       TO_CHAR(SYS_EXTRACT_UTC(SYSTIMESTAMP), 'YYYY-MM-DD"T"HH24:MI:SS.FF3') FROM dual;

-- lock_until: expression: when a lease ends that begins now
TO_CHAR(SYS_EXTRACT_UTC(SYSTIMESTAMP) + NUMTODSINTERVAL(:lease, 'SECOND'), 'YYYY-MM-DD"T"HH24:MI:SS.FF3');

-- lock_grasp: keeps others from changing the mark, unless somebody does that at this moment, who is not waited for
SELECT 1 FROM /* marks */event_log_mark WHERE name = 'publisher' FOR UPDATE SKIP LOCKED;

-- lock_make: takes the lock for :lease seconds where there is no mark
BEGIN
    INSERT INTO /* marks */event_log_mark (name, value)
    VALUES ('publisher', /* until */'2026-11-21T02:00:45.123' || ' ' || :token);
EXCEPTION WHEN DUP_VAL_ON_INDEX THEN NULL;
END;
/

-- lock_replace: takes the lock for :lease seconds if the mark is still as it was read
UPDATE /* marks */event_log_mark
SET value = /* until */'2026-11-21T02:00:45.123' || ' ' || :token
WHERE name = 'publisher' AND TO_CHAR(SUBSTR(value, 1, 2000)) = :former;
