-- The journal: what takes lists, and what takes a number of rows at most.

-- parked_rows: the rows that wait of some objects, in their order
SELECT * FROM (
    SELECT kept.record_id, kept.object, kept.reason, kept.attempts, kept.due
    FROM /* parked */event_log_parked kept
    WHERE kept.output = :output AND kept.object IN
          (SELECT listed.object FROM JSON_TABLE(:objects, '$[*]' COLUMNS (object VARCHAR2(400) PATH '$')) listed)
    ORDER BY kept.record_id
) WHERE ROWNUM <= :limit;

-- parked_first: the first row that waits of each of these objects
SELECT MIN(kept.record_id), MIN(kept.due) KEEP (DENSE_RANK FIRST ORDER BY kept.record_id)
FROM /* parked */event_log_parked kept
WHERE kept.output = :output AND kept.object IN
      (SELECT listed.object FROM JSON_TABLE(:objects, '$[*]' COLUMNS (object VARCHAR2(400) PATH '$')) listed)
GROUP BY kept.object;

-- parked_objects: of which of these objects rows wait
SELECT DISTINCT kept.object FROM /* parked */event_log_parked kept
WHERE kept.output = :output AND kept.object IN
      (SELECT listed.object FROM JSON_TABLE(:objects, '$[*]' COLUMNS (object VARCHAR2(400) PATH '$')) listed);

-- association_read: what a receiver calls these objects
SELECT kept.object, kept.whole_name, kept.association, kept.awaiting, kept.is_over
FROM /* associations */event_log_association kept
WHERE kept.output = :output AND kept.object IN
      (SELECT listed.object FROM JSON_TABLE(:objects, '$[*]' COLUMNS (object VARCHAR2(400) PATH '$')) listed);

-- parked_elsewhere: which of these rows wait for another output
SELECT DISTINCT kept.record_id FROM /* parked */event_log_parked kept
WHERE kept.output <> :output AND kept.record_id IN
      (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed);

-- parked_transactions: of which of these transactions rows between two numbers wait for an output, but for these rows; and
-- when their objects may go
SELECT kept.source_transaction, (SELECT MIN(leader.due) FROM /* parked */event_log_parked leader
                                 WHERE leader.output = :output AND leader.object = kept.object)
FROM (SELECT DISTINCT waiting.object, entry./* transaction_number */eventlog_transaction AS source_transaction
      FROM /* parked */event_log_parked waiting
      JOIN /* log */event_log entry ON entry./* record_id */record_id = waiting.record_id AND entry./* status */status = 'N'
      WHERE waiting.output = :output AND waiting.record_id BETWEEN :first AND :last
        AND waiting.record_id NOT IN (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed)
        AND entry./* transaction_number */eventlog_transaction IN
            (SELECT listed.n FROM JSON_TABLE(:transactions, '$[*]' COLUMNS (n NUMBER PATH '$')) listed)
     ) kept;

-- parked_among: which of these rows wait for any output
SELECT DISTINCT kept.record_id FROM /* parked */event_log_parked kept
WHERE kept.record_id IN (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed);

-- held_among: which of these rows are held
SELECT kept.record_id FROM /* holds */event_log_hold kept
WHERE kept.record_id IN (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed);

-- parked_copy: a new output lacks what another one has waiting
INSERT INTO /* parked */event_log_parked (output, record_id, object, reason, note, attempts, due)
SELECT :name, record_id, object, reason, note, 0, CASE WHEN due IS NULL THEN due ELSE 0 END
FROM /* parked */event_log_parked WHERE output = :former;

-- parked_due: objects whose turn it is, with the row that lets them go; in the order of the index
SELECT * FROM (
    SELECT object, record_id FROM /* parked */event_log_parked
    WHERE output = :output AND due <= :now ORDER BY due, record_id
) WHERE ROWNUM <= :limit;

-- hold_make: holds rows of a run that wait, of which several may have one number; the note stays out of what is grouped
INSERT INTO /* holds */event_log_hold (record_id, note)
SELECT held.number_held, :note FROM (
    SELECT DISTINCT entry./* record_id */record_id AS number_held FROM /* log */event_log entry
    WHERE entry./* record_id */record_id BETWEEN :first AND :last AND entry./* status */status = 'N'
      AND NOT EXISTS (SELECT 1 FROM /* holds */event_log_hold kept
                      WHERE kept.record_id = entry./* record_id */record_id AND kept.record_id BETWEEN :first AND :last)
) held;

-- hold_gone: holds of rows that wait no longer
DELETE FROM /* holds */event_log_hold kept WHERE NOT EXISTS (
    SELECT 1 FROM /* log */event_log entry
    WHERE entry./* record_id */record_id = kept.record_id AND entry./* status */status = 'N');

-- parked_gone: rows that wait and that somebody has taken away, or settled
SELECT * FROM (
    SELECT DISTINCT kept.record_id FROM /* parked */event_log_parked kept
    WHERE (kept.due IS NOT NULL OR kept.reason IN ('held', 'restored')) AND NOT EXISTS (
        SELECT 1 FROM /* log */event_log entry
        WHERE entry./* record_id */record_id = kept.record_id AND entry./* status */status = 'N')
    ORDER BY 1
) WHERE ROWNUM <= :limit;

-- parked_numbers: the first rows that wait for any output
SELECT * FROM (SELECT record_id FROM /* parked */event_log_parked ORDER BY record_id) WHERE ROWNUM <= :limit;

-- parked_some: how many rows wait for an output, as far as it is counted
SELECT COUNT(*) FROM /* parked */event_log_parked WHERE output = :output AND ROWNUM <= :limit;

-- parked_make_many: rows of one object wait for the same reason
INSERT INTO /* parked */event_log_parked (output, record_id, object, reason, note, attempts, due)
SELECT :output, listed.n, :object, :reason, :note, :attempts, :due
FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed;

-- parked_drop_many: rows wait no longer
DELETE FROM /* parked */event_log_parked
WHERE output = :output AND record_id IN
      (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed);

-- unsealed_numbers: rows between two numbers that wait and that no output has parked
SELECT * FROM (
    SELECT waiting./* record_id */record_id FROM /* log */event_log waiting
    WHERE waiting./* status */status = 'N' AND waiting./* record_id */record_id BETWEEN :first AND :last
      AND NOT EXISTS (SELECT 1 FROM /* parked */event_log_parked kept
                      WHERE kept.record_id = waiting./* record_id */record_id)
    ORDER BY 1
) WHERE ROWNUM <= :limit;

-- journal_note: what this transaction of the journal has written
UPDATE /* marks */event_log_mark SET value = :value WHERE name = 'written';
