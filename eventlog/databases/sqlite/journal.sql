-- The journal: what takes lists.

-- parked_rows: the rows that wait of some objects, in their order
SELECT record_id, object, reason, attempts, due FROM /* parked */event_log_parked
WHERE output = :output AND object IN (SELECT value FROM json_each(:objects))
ORDER BY record_id LIMIT :limit;

-- parked_first: the first row that waits of each of these objects
SELECT kept.record_id, kept.due FROM json_each(:objects) AS listed
CROSS JOIN /* parked */event_log_parked AS kept
ON kept.output = :output AND kept.record_id = (SELECT MIN(waiting.record_id) FROM /* parked */event_log_parked AS waiting
                                               WHERE waiting.output = :output AND waiting.object = listed.value);

-- parked_objects: of which of these objects rows wait
SELECT listed.value FROM json_each(:objects) AS listed
WHERE EXISTS (SELECT 1 FROM /* parked */event_log_parked AS waiting
              WHERE waiting.output = :output AND waiting.object = listed.value);

-- parked_transactions: of which of these transactions rows between two numbers wait for an output, but for these rows; and
-- when their objects may go
SELECT kept.source_transaction, (SELECT MIN(leader.due) FROM /* parked */event_log_parked AS leader
                                 WHERE leader.output = :output AND leader.object = kept.object)
FROM (SELECT DISTINCT waiting.object, entry./* transaction_number */eventlog_transaction AS source_transaction
      FROM /* parked */event_log_parked AS waiting
      JOIN /* log */event_log AS entry ON entry./* record_id */record_id = waiting.record_id AND entry./* status */status = 'N'
      WHERE waiting.output = :output AND waiting.record_id BETWEEN :first AND :last
        AND waiting.record_id NOT IN (SELECT value FROM json_each(:ids))
        AND entry./* transaction_number */eventlog_transaction IN (SELECT value FROM json_each(:transactions))
     ) AS kept;

-- association_read: what a receiver calls these objects
SELECT kept.object, kept.whole_name, kept.association, kept.awaiting, kept.is_over
FROM json_each(:objects) AS listed
JOIN /* associations */event_log_association AS kept ON kept.output = :output AND kept.object = listed.value;

-- parked_elsewhere: which of these rows wait for another output
SELECT DISTINCT record_id FROM /* parked */event_log_parked
WHERE output <> :output AND record_id IN (SELECT value FROM json_each(:ids));

-- parked_among: which of these rows wait for any output
SELECT DISTINCT record_id FROM /* parked */event_log_parked WHERE record_id IN (SELECT value FROM json_each(:ids));

-- held_among: which of these rows are held
SELECT record_id FROM /* holds */event_log_hold WHERE record_id IN (SELECT value FROM json_each(:ids));

-- parked_make_many: rows of one object wait for the same reason
INSERT INTO /* parked */event_log_parked (output, record_id, object, reason, note, attempts, due)
SELECT :output, value, :object, :reason, :note, :attempts, :due FROM json_each(:ids);

-- parked_drop_many: rows wait no longer
DELETE FROM /* parked */event_log_parked
WHERE output = :output AND record_id IN (SELECT value FROM json_each(:ids));

-- journal_enter: renews the lease if the lock is still ours, and says how often holds have changed, and what the last
-- transaction of the journal has written; one transaction writes at a time, so nobody else does before the commit
UPDATE /* marks */event_log_mark SET value = /* until */'2026-11-21T02:00:45.123' || ' ' || :token
WHERE name = 'publisher' AND value LIKE '% ' || :token
RETURNING (SELECT value FROM /* marks */event_log_mark WHERE name = 'holding'),
          (SELECT value FROM /* marks */event_log_mark WHERE name = 'written');

-- journal_note: what this transaction of the journal has written
UPDATE /* marks */event_log_mark SET value = :value WHERE name = 'written';

