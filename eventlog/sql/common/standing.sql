-- The journal as those see it who look after a log: what rows wait for, where one row is, what somebody else has changed.

-- parked_ahead: what each object waits for: 0 nothing, 1 another attempt, 2 its table, 3 somebody who holds it, 4 its time.
-- The rows that have a time of their own say it for their objects; they are few, and found by an index.
-- A row whose next attempt has just become due still waits for the same: an alert that wants that
-- for minutes would never fire otherwise.
(SELECT output, object,
        MAX(CASE WHEN due IS NULL THEN 3 WHEN due <= :late THEN 0 WHEN reason IN ('no right', 'locked', 'damaged') THEN 2
                 WHEN reason = 'retry' THEN 1 WHEN due <= :now THEN 0 WHEN reason = 'not due' THEN 4
                 ELSE 1 END) AS kind
 FROM /* parked */event_log_parked WHERE due IS NOT NULL OR reason IN ('held', 'restored')
 GROUP BY output, object);

-- parked_by_kind: how many rows of each kind wait for each output, with the first and the last; counted in the order of an
-- index, object by object
SELECT grouped.output, ahead.kind, SUM(grouped.many), MIN(grouped.first_row), MAX(grouped.last_row)
FROM (SELECT output, object, COUNT(*) AS many, MIN(record_id) AS first_row, MAX(record_id) AS last_row
      FROM /* parked */event_log_parked GROUP BY output, object) grouped
JOIN /* ahead */event_log_parked ahead ON ahead.output = grouped.output AND ahead.object = grouped.object
GROUP BY grouped.output, ahead.kind;

-- parked_held: held rows that wait behind others of their objects, by what those wait for
SELECT kept.output, ahead.kind, COUNT(*), MIN(kept.record_id), MAX(kept.record_id)
FROM /* holds */event_log_hold own
JOIN /* parked */event_log_parked kept ON kept.record_id = own.record_id
JOIN /* ahead */event_log_parked ahead ON ahead.output = kept.output AND ahead.object = kept.object
WHERE ahead.kind <> 3 GROUP BY kept.output, ahead.kind;

-- parked_once: how many rows of each kind wait for any output, each by the kind that asks most for somebody
SELECT kind, COUNT(*), MIN(record_id) FROM (
    SELECT kept.record_id, MAX(CASE WHEN own.record_id IS NULL THEN ahead.kind ELSE 3 END) AS kind
    FROM /* ahead */event_log_parked ahead
    JOIN /* parked */event_log_parked kept ON kept.output = ahead.output AND kept.object = ahead.object
    LEFT JOIN /* holds */event_log_hold own ON own.record_id = kept.record_id
    GROUP BY kept.record_id
) grouped GROUP BY kind;

-- parked_within: how many rows between two numbers wait for an output
SELECT COUNT(*) FROM /* parked */event_log_parked WHERE output = :output AND record_id BETWEEN :first AND :last;

-- parked_last: the last rows between two numbers that wait for an output
SELECT record_id, object, reason, attempts, due FROM /* parked */event_log_parked
WHERE output = :output AND record_id BETWEEN :first AND :last ORDER BY record_id DESC LIMIT :limit;

-- parked_of_output: the rows that wait for an output
SELECT record_id FROM /* parked */event_log_parked WHERE output = :output ORDER BY record_id;

-- parked_row: why one row waits, for each output, and behind which row of its object
SELECT kept.output, kept.reason, kept.note, kept.attempts, kept.due, ahead.record_id, ahead.reason, ahead.due
FROM /* parked */event_log_parked kept
LEFT JOIN /* parked */event_log_parked ahead
       ON ahead.output = kept.output AND ahead.object = kept.object
      AND (ahead.due IS NOT NULL OR ahead.reason IN ('held', 'restored')) AND ahead.record_id < kept.record_id
WHERE kept.record_id = :record_id ORDER BY kept.output, ahead.record_id;

-- parked_unread: the tables whose rows wait because they cannot be read, with the first of those rows. The row that has
-- tried the table most often comes first, and has the newest reason.
SELECT entry./* table_name */table_name, kept.reason, MIN(kept.record_id) FROM /* parked */event_log_parked kept
JOIN /* log */event_log entry ON entry./* record_id */record_id = kept.record_id AND entry./* status */status = 'N'
WHERE kept.reason IN ('no right', 'locked', 'damaged') AND entry./* table_name */table_name IS NOT NULL
GROUP BY entry./* table_name */table_name, kept.reason ORDER BY MAX(kept.attempts) DESC;

-- kept_unparked: condition: rows that no output has parked and that nobody holds
(NOT EXISTS (SELECT 1 FROM /* parked */event_log_parked kept
             WHERE kept.record_id = waiting./* record_id */record_id)
 AND NOT EXISTS (SELECT 1 FROM /* holds */event_log_hold own
                 WHERE own.record_id = waiting./* record_id */record_id));

-- hold_first: the first row that somebody holds
SELECT MIN(record_id) FROM /* holds */event_log_hold;

-- hold_unparked: rows that somebody holds and that no output has parked yet
SELECT own.record_id FROM /* holds */event_log_hold own
WHERE NOT EXISTS (SELECT 1 FROM /* parked */event_log_parked kept WHERE kept.record_id = own.record_id)
ORDER BY own.record_id;

-- hold_row: what is noted of the hold of one row
SELECT note FROM /* holds */event_log_hold WHERE record_id = :record_id;

-- hold_numbers: rows between two numbers that somebody holds
SELECT record_id FROM /* holds */event_log_hold
WHERE record_id BETWEEN :first AND :last ORDER BY record_id LIMIT :limit;

-- waiting_numbers: rows between two numbers that wait
SELECT /* record_id */record_id FROM /* log */event_log
WHERE /* status */status = 'N' AND /* record_id */record_id BETWEEN :first AND :last
ORDER BY /* record_id */record_id LIMIT :limit;

-- requeue_numbers: processed rows between two numbers that would wait again
SELECT /* record_id */record_id FROM /* log */event_log
WHERE /* record_id */record_id BETWEEN :first AND :last AND /* processed */(1 = 1)
  AND /* status */status IN (:status_1, :status_2, :status_3, :status_4, :status_5)
  AND (:any_table = 1 OR lower(/* table_name */table_name) = lower(:named))
ORDER BY /* record_id */record_id LIMIT :limit;

-- parked_finished: some rows that wait for an output, and in the log do not
SELECT kept.output, MIN(kept.record_id), COUNT(*) FROM /* parked */event_log_parked kept
WHERE NOT EXISTS (SELECT 1 FROM /* log */event_log entry
                  WHERE entry./* record_id */record_id = kept.record_id AND entry./* status */status = 'N')
GROUP BY kept.output ORDER BY kept.output;

-- hold_settled: held rows that do not wait in the log
SELECT MIN(kept.record_id), COUNT(*) FROM /* holds */event_log_hold kept
WHERE NOT EXISTS (SELECT 1 FROM /* log */event_log entry
                  WHERE entry./* record_id */record_id = kept.record_id AND entry./* status */status = 'N');

-- planned_all: what may be on its way, as it is written
SELECT output, plan, place, records, details, objects, covers, CASE WHEN body IS NULL THEN 1 ELSE 0 END
FROM /* planned */event_log_planned ORDER BY output, plan, place;

-- parked_outputs: the outputs for which rows wait
SELECT output, COUNT(*), MIN(record_id) FROM /* parked */event_log_parked GROUP BY output;

-- answer_outputs: the outputs whose answers are kept
SELECT output, COUNT(*), MIN(record_id) FROM /* answers */event_log_answer GROUP BY output;

-- answer_words: the answers, without the rows
SELECT status, reason, MIN(record_id) FROM /* answers */event_log_answer GROUP BY status, reason;

-- waiting_last: the highest number of a row that waits
SELECT MAX(/* record_id */record_id) FROM /* log */event_log WHERE /* status */status = 'N';

-- objects_between: waiting rows between two numbers, with what names their objects
SELECT /* record_id */record_id, /* event_type */event_type, /* table_name */table_name, /* table_key */table_key
FROM /* log */event_log
WHERE /* status */status = 'N' AND /* record_id */record_id BETWEEN :first AND :last
ORDER BY /* record_id */record_id LIMIT :limit;
