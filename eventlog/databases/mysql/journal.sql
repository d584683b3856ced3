-- The journal: what takes lists, and what looks at the status of rows, which most collations compare too loosely.

-- parked_rows: the rows that wait of some objects, in their order
SELECT kept.record_id, kept.object, kept.reason, kept.attempts, kept.due
FROM JSON_TABLE(:objects, '$[*]' COLUMNS (object VARCHAR(400) PATH '$')) AS listed
     STRAIGHT_JOIN /* parked */event_log_parked AS kept
     ON kept.output = :output AND kept.object = listed.object COLLATE utf8mb4_bin
ORDER BY kept.record_id LIMIT :limit;

-- parked_first: the first row that waits of each of these objects
SELECT kept.record_id, kept.due
FROM JSON_TABLE(:objects, '$[*]' COLUMNS (object VARCHAR(400) PATH '$')) AS listed
     STRAIGHT_JOIN /* parked */event_log_parked AS kept
     ON kept.output = :output AND kept.record_id = (
         SELECT MIN(waiting.record_id) FROM /* parked */event_log_parked AS waiting
         WHERE waiting.output = :output AND waiting.object = listed.object COLLATE utf8mb4_bin);

-- parked_objects: of which of these objects rows wait
SELECT DISTINCT kept.object
FROM JSON_TABLE(:objects, '$[*]' COLUMNS (object VARCHAR(400) PATH '$')) AS listed
     STRAIGHT_JOIN /* parked */event_log_parked AS kept
     ON kept.output = :output AND kept.object = listed.object COLLATE utf8mb4_bin;

-- parked_transactions: of which of these transactions rows between two numbers wait for an output, but for these rows; and
-- when their objects may go
SELECT kept.source_transaction, (SELECT MIN(leader.due) FROM /* parked */event_log_parked AS leader
                                 WHERE leader.output = :output AND leader.object = kept.object)
FROM (SELECT DISTINCT waiting.object, entry./* transaction_number */eventlog_transaction AS source_transaction
      FROM /* parked */event_log_parked AS waiting
      JOIN /* log */event_log AS entry ON entry./* record_id */record_id = waiting.record_id AND entry./* status */status = 'N'
      WHERE waiting.output = :output AND waiting.record_id BETWEEN :first AND :last
        AND waiting.record_id NOT IN (SELECT listed.id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed)
        AND entry./* transaction_number */eventlog_transaction IN
            (SELECT listed.id FROM JSON_TABLE(:transactions, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed)
     ) AS kept;

-- association_read: what a receiver calls these objects
SELECT kept.object, kept.whole_name, kept.association, kept.awaiting, kept.is_over
FROM JSON_TABLE(:objects, '$[*]' COLUMNS (object VARCHAR(400) PATH '$')) AS listed
     STRAIGHT_JOIN /* associations */event_log_association AS kept
     ON kept.output = :output AND kept.object = listed.object COLLATE utf8mb4_bin;

-- parked_elsewhere: which of these rows wait for another output
SELECT DISTINCT kept.record_id
FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed
     STRAIGHT_JOIN /* parked */event_log_parked AS kept ON kept.record_id = listed.id
WHERE kept.output <> :output;

-- parked_among: which of these rows wait for any output
SELECT DISTINCT kept.record_id
FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed
     STRAIGHT_JOIN /* parked */event_log_parked AS kept ON kept.record_id = listed.id;

-- held_among: which of these rows are held
SELECT kept.record_id
FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed
     STRAIGHT_JOIN /* holds */event_log_hold AS kept ON kept.record_id = listed.id;

-- parked_copy: a new output lacks what another one has waiting
INSERT INTO /* parked */event_log_parked (output, record_id, object, reason, note, attempts, due)
SELECT :name, record_id, object, reason, note, 0, CASE WHEN due IS NULL THEN due ELSE 0 END
FROM /* parked */event_log_parked AS former WHERE former.output = :former;

-- hold_make: holds rows of a run that wait, of which several may have one number
INSERT INTO /* holds */event_log_hold (record_id, note)
SELECT entry./* record_id */record_id, :note FROM /* log */event_log AS entry
LEFT JOIN /* holds */event_log_hold AS kept ON kept.record_id = entry./* record_id */record_id
WHERE entry./* record_id */record_id BETWEEN :first AND :last
  AND entry./* status */status = 'N' AND CAST(entry./* status */status AS BINARY) = 'N' AND kept.record_id IS NULL
GROUP BY entry./* record_id */record_id;

-- hold_gone: holds of rows that wait no longer
DELETE kept FROM /* holds */event_log_hold AS kept WHERE NOT EXISTS (
    SELECT 1 FROM /* log */event_log AS entry
    WHERE entry./* record_id */record_id = kept.record_id
      AND entry./* status */status = 'N' AND CAST(entry./* status */status AS BINARY) = 'N');

-- parked_gone: rows that wait and that somebody has taken away, or settled
SELECT DISTINCT kept.record_id FROM /* parked */event_log_parked AS kept
WHERE (kept.due IS NOT NULL OR kept.reason IN ('held', 'restored')) AND NOT EXISTS (
    SELECT 1 FROM /* log */event_log AS entry
    WHERE entry./* record_id */record_id = kept.record_id
      AND entry./* status */status = 'N' AND CAST(entry./* status */status AS BINARY) = 'N')
ORDER BY 1 LIMIT :limit;

-- parked_make_many: rows of one object wait for the same reason
INSERT INTO /* parked */event_log_parked (output, record_id, object, reason, note, attempts, due)
SELECT :output, listed.id, :object, :reason, :note, :attempts, :due
FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed;

-- parked_drop_many: rows wait no longer
DELETE kept FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed
     STRAIGHT_JOIN /* parked */event_log_parked AS kept ON kept.output = :output AND kept.record_id = listed.id;

-- unsealed_numbers: rows between two numbers that wait and that no output has parked
SELECT waiting./* record_id */record_id FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N'
  AND waiting./* record_id */record_id BETWEEN :first AND :last
  AND NOT EXISTS (SELECT 1 FROM /* parked */event_log_parked AS kept
                  WHERE kept.record_id = waiting./* record_id */record_id)
ORDER BY 1 LIMIT :limit;

-- count_between: how many rows of a row_range wait
SELECT COUNT(*) FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N'
  AND waiting./* record_id */record_id BETWEEN :first AND :last;

-- journal_note: what this transaction of the journal has written
UPDATE /* marks */event_log_mark SET value = :value WHERE name = 'written';
