-- The journal: what was sealed, how far each output is, what is planned, parked, held and said.
-- docs/decisions/0055-the-journal.md says what the tables mean.

-- journal_lock: waits for who writes the journal, and says how often holds have changed, and what the last transaction of
-- the journal has written; where no `journal_enter` does it
SELECT holding.value, written.value
FROM /* marks */event_log_mark holding, /* marks */event_log_mark written
WHERE holding.name = 'holding' AND written.name = 'written' FOR UPDATE;

-- journal_stamp: the same, without waiting for anybody
SELECT value, (SELECT written.value FROM /* marks */event_log_mark written WHERE written.name = 'written')
FROM /* marks */event_log_mark WHERE name = 'holding';

-- batches_read: every batch that some output has ahead of it
SELECT id, records, weight FROM /* batches */event_log_batch ORDER BY id;

-- batch_make: seals rows
INSERT INTO /* batches */event_log_batch (id, records, weight) VALUES (:id, :records, :weight);

-- batch_less: takes rows out of a batch that wait no longer
UPDATE /* batches */event_log_batch SET records = :records WHERE id = :id;

-- batch_drop: no output has it ahead any more
DELETE FROM /* batches */event_log_batch WHERE id = :id;

-- outputs_read: every output
SELECT name, position, plans, plan, target_plan, paused, transactions, warning, recent, restored FROM /* outputs */event_log_output
ORDER BY name;

-- output_make: a new output
INSERT INTO /* outputs */event_log_output (name, position, plans) VALUES (:name, :position, :plans);

-- output_move: how far an output is
UPDATE /* outputs */event_log_output
SET position = :position, plans = :plans, plan = :plan, target_plan = :target_plan, transactions = :transactions,
    warning = :warning, recent = :recent,
    restored = :restored
WHERE name = :name;

-- output_pause: nothing goes to the output until somebody resumes it
UPDATE /* outputs */event_log_output SET paused = :paused WHERE name = :name;

-- output_forget: an output is gone for good
DELETE FROM /* outputs */event_log_output WHERE name = :name;

-- output_rename: an output goes on under another name
UPDATE /* outputs */event_log_output SET name = :name WHERE name = :former;

-- planned_rename: so do its documents
UPDATE /* planned */event_log_planned SET output = :name WHERE output = :former;

-- parked_rename: and its rows that wait
UPDATE /* parked */event_log_parked SET output = :name WHERE output = :former;

-- answer_rename: and its answers
UPDATE /* answers */event_log_answer SET output = :name WHERE output = :former;

-- planned_records: the rows that may be on their way
SELECT output, plan, place, records FROM /* planned */event_log_planned;

-- planned_read: what an output was given and may have, in its order
SELECT plan, place, details, objects, covers, body, route, attempts, due
FROM /* planned */event_log_planned WHERE output = :output ORDER BY plan, place;

-- planned_make: documents that may be on their way from now on
INSERT INTO /* planned */event_log_planned
  (output, plan, place, documents, records, details, objects, covers, body, route, attempts, due)
VALUES (:output, :plan, :place, :documents, :records, :details, :objects, :covers, :body, :route, :attempts, 0);

-- planned_less: takes rows out of documents that wait no longer; the documents stay as they are
UPDATE /* planned */event_log_planned SET records = :records, details = :details
WHERE output = :output AND plan = :plan AND place = :place;

-- planned_drop: a document is over
DELETE FROM /* planned */event_log_planned WHERE output = :output AND plan = :plan AND place = :place;

-- planned_later: nobody could read what was answered, so the document goes again as it is
UPDATE /* planned */event_log_planned SET due = :due, attempts = :attempts
WHERE output = :output AND plan = :plan AND place = :place;

-- planned_forget: the documents of an output that is gone
DELETE FROM /* planned */event_log_planned WHERE output = :output;

-- parked_make: a row waits
INSERT INTO /* parked */event_log_parked (output, record_id, object, reason, note, attempts, due)
VALUES (:output, :record_id, :object, :reason, :note, :attempts, :due);

-- parked_drop_run: no output has these rows waiting any more, for they are gone or have a status
DELETE FROM /* parked */event_log_parked WHERE record_id BETWEEN :first AND :last;

-- parked_forget: the rows that wait for an output that is gone
DELETE FROM /* parked */event_log_parked WHERE output = :output;

-- parked_lead: a row without a time may go, unless somebody holds it
UPDATE /* parked */event_log_parked SET due = 0
WHERE output = :output AND record_id = :record_id AND due IS NULL
  AND reason NOT IN ('held', 'restored');

-- parked_try_first: a row tries again whether its table can be read
UPDATE /* parked */event_log_parked SET due = 0 WHERE output = :output AND record_id = :record_id;

-- parked_newest: the highest number that waits
SELECT MAX(record_id) FROM /* parked */event_log_parked;

-- parked_any: whether any row waits
SELECT MIN(record_id) FROM /* parked */event_log_parked;

-- parked_numbers: the first rows that wait for any output
SELECT record_id FROM /* parked */event_log_parked ORDER BY record_id LIMIT :limit;

-- parked_copy: a new output lacks what another one has waiting
INSERT INTO /* parked */event_log_parked (output, record_id, object, reason, note, attempts, due)
SELECT CAST(:name AS text), record_id, object, reason, note, 0, CASE WHEN due IS NULL THEN due ELSE 0 END
FROM /* parked */event_log_parked WHERE output = :former;

-- parked_leaderless: objects of which rows wait and none may go first, with the row that is to
SELECT output, object, MIN(record_id) FROM /* parked */event_log_parked
GROUP BY output, object HAVING COUNT(due) = 0 AND MAX(CASE WHEN reason IN ('held', 'restored') THEN 1 ELSE 0 END) = 0;

-- parked_retried: when the last row may be offered again that a receiver did not take. That `due` is a number is said
-- as a range here and below: by that servers without statistics pass over a million rows without a time.
SELECT MAX(due) FROM /* parked */event_log_parked WHERE output = :output AND due >= 0 AND reason = 'retry';

-- parked_again: the first row of each object that a receiver did not take; of '*', behind which they have lost their name, all
SELECT object, MIN(record_id) FROM /* parked */event_log_parked
WHERE output = :output AND attempts > 0 AND (due IS NOT NULL OR object = '*')
GROUP BY object, CASE WHEN object = '*' THEN record_id ELSE 0 END;

-- parked_readable: rows of tables that could not be read are tried again
UPDATE /* parked */event_log_parked SET due = 0
WHERE output = :output AND due > 0 AND reason IN ('no right', 'locked', 'damaged');

-- parked_first_unread: the first row that waits because its table cannot be read
SELECT MIN(kept.record_id) FROM /* parked */event_log_parked kept
JOIN /* log */event_log entry ON entry./* record_id */record_id = kept.record_id AND entry./* status */status = 'N'
WHERE kept.output = :output AND kept.due >= 0 AND kept.reason IN ('no right', 'locked', 'damaged')
  AND entry./* table_name */table_name = :table;

-- parked_read_again: rows of a table that could not be read, and now can, may go
UPDATE /* parked */event_log_parked SET due = 0
WHERE output = :output AND due > 0 AND reason IN ('no right', 'locked', 'damaged')
  AND record_id IN (SELECT entry./* record_id */record_id FROM /* log */event_log entry
                    WHERE entry./* status */status = 'N' AND entry./* table_name */table_name = :table);

-- parked_offered_again: the first row that each output's receiver did not take
SELECT output, MIN(record_id) FROM /* parked */event_log_parked WHERE reason = 'retry' GROUP BY output ORDER BY output;

-- parked_soonest: when the next row may go
SELECT MIN(due) FROM /* parked */event_log_parked WHERE output = :output;

-- parked_reasons: why rows wait, for each output
SELECT output, reason, COUNT(*), MIN(record_id), MIN(due) FROM /* parked */event_log_parked
GROUP BY output, reason ORDER BY output, reason;

-- parked_released: rows that waited because they were held may go
UPDATE /* parked */event_log_parked SET due = 0
WHERE reason = 'held' AND record_id BETWEEN :first AND :last;

-- parked_resumed: rows that waited because something was restored may go
UPDATE /* parked */event_log_parked SET due = 0 WHERE output = :output AND reason = 'restored';

-- parked_no_later: what would wait longer than the longest wait was given its time by a clock that was set back since
UPDATE /* parked */event_log_parked SET due = :now
WHERE output = :output AND due > :latest AND due > CASE WHEN reason IN ('no right', 'locked', 'damaged') THEN :rested ELSE :latest END;

-- planned_no_later: the same of documents whose answer nobody could read
UPDATE /* planned */event_log_planned SET due = :now WHERE due > :latest;

-- parked_try_now: rows that a receiver did not take may go again
UPDATE /* parked */event_log_parked SET due = 0 WHERE output = :output AND due > 0 AND reason = 'retry';

-- planned_try_now: documents whose answer nobody could read may go again
UPDATE /* planned */event_log_planned SET due = 0 WHERE output = :output AND due > 0;

-- hold_make: holds rows of a run that wait, of which several may have one number. The run is named twice: else a server
-- may read all holds for each piece.
INSERT INTO /* holds */event_log_hold (record_id, note)
SELECT entry./* record_id */record_id, :note FROM /* log */event_log AS entry
WHERE entry./* record_id */record_id BETWEEN :first AND :last AND entry./* status */status = 'N'
  AND NOT EXISTS (SELECT 1 FROM /* holds */event_log_hold AS kept
                  WHERE kept.record_id = entry./* record_id */record_id AND kept.record_id BETWEEN :first AND :last)
GROUP BY entry./* record_id */record_id;

-- hold_drop: lets rows go
DELETE FROM /* holds */event_log_hold WHERE record_id BETWEEN :first AND :last;

-- hold_count: how many rows of a run are held
SELECT COUNT(*) FROM /* holds */event_log_hold WHERE record_id BETWEEN :first AND :last;

-- hold_any: whether any row is held
SELECT MIN(record_id) FROM /* holds */event_log_hold;

-- hold_gone: holds of rows that wait no longer
DELETE FROM /* holds */event_log_hold AS kept WHERE NOT EXISTS (
    SELECT 1 FROM /* log */event_log AS entry
    WHERE entry./* record_id */record_id = kept.record_id AND entry./* status */status = 'N');

-- answer_read: outputs' answers about rows that others do not have yet
SELECT record_id, output, status, reason, note FROM /* answers */event_log_answer
WHERE record_id BETWEEN :first AND :last;

-- answer_make: an output's answer about a row
INSERT INTO /* answers */event_log_answer (record_id, output, status, reason, note)
VALUES (:record_id, :output, :status, :reason, :note);

-- answer_before: keeps how rows had ended that are sent again: an error or a warning counts beside what is answered now
INSERT INTO /* answers */event_log_answer (record_id, output, status, reason, note)
SELECT kept.record_id, '-', kept.status, kept.reason, kept.note FROM /* outcomes */event_log_outcome kept
WHERE kept.record_id BETWEEN :first AND :last AND kept.status IN ('W', 'E')
  AND EXISTS (SELECT 1 FROM /* log */event_log entry
              WHERE entry./* record_id */record_id = kept.record_id AND entry./* status */status = kept.status)
  AND NOT EXISTS (SELECT 1 FROM /* answers */event_log_answer answer WHERE answer.record_id = kept.record_id AND answer.output = '-');

-- answer_again: forgets answers about rows that are sent to the output again
DELETE FROM /* answers */event_log_answer WHERE output = :output AND record_id BETWEEN :first AND :last;

-- answer_drop: forgets answers about rows that have their status or are gone
DELETE FROM /* answers */event_log_answer WHERE record_id BETWEEN :first AND :last;

-- answer_forget: the answers of an output that is gone
DELETE FROM /* answers */event_log_answer WHERE output = :output;

-- answer_any: whether any answer is kept
SELECT MIN(record_id) FROM /* answers */event_log_answer;

-- parked_due: objects whose turn it is, with the row that lets them go. In the order of the index: in that of the
-- numbers a million rows without a time would be looked at.
SELECT object, record_id FROM /* parked */event_log_parked
WHERE output = :output AND due <= :now ORDER BY due, record_id LIMIT :limit;

-- parked_gone: rows that wait and that somebody has taken away, or settled
SELECT DISTINCT kept.record_id FROM /* parked */event_log_parked AS kept
WHERE (kept.due IS NOT NULL OR kept.reason IN ('held', 'restored')) AND NOT EXISTS (
    SELECT 1 FROM /* log */event_log AS entry
    WHERE entry./* record_id */record_id = kept.record_id AND entry./* status */status = 'N')
ORDER BY 1 LIMIT :limit;

-- unsealed_numbers: rows between two numbers that wait and that no output has parked
SELECT waiting./* record_id */record_id FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND waiting./* record_id */record_id BETWEEN :first AND :last
  AND NOT EXISTS (SELECT 1 FROM /* parked */event_log_parked AS kept
                  WHERE kept.record_id = waiting./* record_id */record_id)
ORDER BY 1 LIMIT :limit;

-- outcome_last: the highest number of which is recorded how its row ended
SELECT MAX(record_id) FROM /* outcomes */event_log_outcome;

-- outcome_drop: forgets how rows ended before
DELETE FROM /* outcomes */event_log_outcome WHERE record_id BETWEEN :first AND :last;

-- count_between: how many rows of a row_range wait
SELECT COUNT(*) FROM /* log */event_log waiting
WHERE waiting./* status */status = 'N' AND waiting./* record_id */record_id BETWEEN :first AND :last;

-- behind_held: waiting rows between two numbers that come after a held one of the same object
SELECT DISTINCT later./* record_id */record_id
FROM /* holds */event_log_hold kept
JOIN /* log */event_log held ON held./* record_id */record_id = kept.record_id AND held./* status */status = 'N'
JOIN /* log */event_log later ON later./* table_name */table_name = held./* table_name */table_name
     AND later./* table_key */table_key = held./* table_key */table_key
     AND later./* record_id */record_id > held./* record_id */record_id AND later./* status */status = 'N'
WHERE later./* record_id */record_id BETWEEN :first AND :last;

-- parked_some: how many rows wait for an output, as far as it is counted
SELECT COUNT(*) FROM (SELECT 1 AS one FROM /* parked */event_log_parked WHERE output = :output LIMIT :limit) AS waiting;

-- parked_below: how many rows wait for an output that are before a row
SELECT COUNT(*) FROM /* parked */event_log_parked WHERE output = :output AND record_id < :record_id;

-- association_rename: an output goes on under another name, with what its receiver calls objects
UPDATE /* associations */event_log_association SET output = :name WHERE output = :former;

-- association_forget: what the receiver of an output called objects that is gone
DELETE FROM /* associations */event_log_association WHERE output = :output;

-- association_drop: what a receiver calls an object is to be written anew
DELETE FROM /* associations */event_log_association WHERE output = :output AND object = :object;

-- association_make: what a receiver calls an object, and who waits for that
INSERT INTO /* associations */event_log_association (output, object, whole_name, association, awaiting, is_over)
VALUES (:output, :object, :whole_name, :association, :awaiting, :is_over);

-- association_find: the objects that a receiver calls so
SELECT object, whole_name FROM /* associations */event_log_association
WHERE output = :output AND association = :association ORDER BY object;

-- association_awaited: the objects for which somebody waits
SELECT object, whole_name, association, awaiting, is_over FROM /* associations */event_log_association
WHERE output = :output AND awaiting IS NOT NULL;

-- association_all: what a receiver calls objects
SELECT object, whole_name, association FROM /* associations */event_log_association
WHERE output = :output AND association IS NOT NULL AND is_over = 0;
