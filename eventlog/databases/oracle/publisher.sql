-- One publisher a log, and what it must know between two turns: who holds the lock, and which rows wait.

-- anything_waiting: finds one row that could be read now, from the index of waiting rows where there is one
SELECT 1 FROM /* log */event_log waiting
WHERE waiting./* status */status = 'N' AND /* waiting_number */waiting.record_id IS NOT NULL
  AND /* among */(1 = 1)
  AND ROWNUM = 1;

-- late_numbers: numbers of rows in these gaps that no output has parked, each gap by the index
SELECT record_id FROM (
    SELECT waiting./* record_id */record_id AS record_id
    FROM JSON_TABLE(:gaps, '$[*]' COLUMNS (first NUMBER PATH '$[0]', last NUMBER PATH '$[1]')) gap
    JOIN /* log */event_log waiting ON waiting./* record_id */record_id BETWEEN gap.first AND gap.last
    WHERE waiting./* status */status = 'N' AND /* waiting_number */waiting.record_id IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM /* parked */event_log_parked kept
                      WHERE kept.record_id = waiting./* record_id */record_id)
    ORDER BY /* waiting_number */waiting.record_id
) WHERE ROWNUM <= :limit;

-- still_waiting: which of these rows wait, held or not
SELECT tried./* record_id */record_id
FROM /* log */event_log tried
WHERE tried./* record_id */record_id IN
      (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed)
  AND tried./* status */status = 'N';

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

-- make_durable: has commits of this session be on disk when they return, whatever it or the server says
ALTER SESSION SET COMMIT_WAIT = 'FORCE_WAIT';
