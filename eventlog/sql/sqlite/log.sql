-- The log's everyday. Texts are cast, because SQLite lets a column hold what it likes; a time may have any form that julianday reads.

-- waiting_rows: the waiting rows among those asked for, in the order asked for; held rows and later attempts stay out.
-- Values longer than :plain bytes are only told by their length, and fetched by `large_values` where there is room.
SELECT waiting./* record_id */record_id, waiting./* event_type */event_type,
       CAST(waiting./* table_name */table_name AS text), CAST(waiting./* table_key */table_key AS text),
       CAST(waiting./* column_name */column_name AS text),
       CASE WHEN length(CAST(waiting./* old_value */old_value AS blob)) <= :plain
            THEN CAST(waiting./* old_value */old_value AS text) END,
       CASE WHEN length(CAST(waiting./* new_value */new_value AS blob)) <= :plain
            THEN CAST(waiting./* new_value */new_value AS text) END,
       CAST(waiting./* event_time */event_time AS text),
       CAST(waiting./* perpetrator */perpetrator AS text),
       CASE WHEN length(CAST(waiting./* old_value */old_value AS blob)) > :plain
            THEN length(CAST(waiting./* old_value */old_value AS blob)) END,
       CASE WHEN length(CAST(waiting./* new_value */new_value AS blob)) > :plain
            THEN length(CAST(waiting./* new_value */new_value AS blob)) END/* transaction */
FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND /* among */(1 = 1) AND /* except */(1 = 1)
  AND /* unread */(1 = 1)
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))
ORDER BY /* order */record_id
LIMIT :limit;

-- large_values: the values of waiting rows, whatever their length
SELECT waiting./* record_id */record_id, CAST(waiting./* old_value */old_value AS text),
       CAST(waiting./* new_value */new_value AS text)
FROM /* log */event_log AS waiting
WHERE waiting./* record_id */record_id IN (SELECT value FROM json_each(:ids))
  AND waiting./* status */status = 'N';

-- among_ahead: condition: rows above those that are handed out, while no other row has appeared below or between them.
-- All in one snapshot: a row that is seen while an earlier one of its object is not would overtake it.
(waiting./* record_id */record_id > :last
 AND NOT EXISTS (SELECT 1 FROM /* log */event_log AS late
                 WHERE late./* status */status = 'N'
                   AND late./* record_id */record_id < :first
                   AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                                   WHERE kept.record_id = late./* record_id */record_id
                                     AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP)))
 AND NOT EXISTS (SELECT 1 FROM /* log */event_log AS late
                 WHERE late./* status */status = 'N'
                   AND late./* record_id */record_id IN (SELECT value FROM json_each(:missing))
                   AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                                   WHERE kept.record_id = late./* record_id */record_id
                                     AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))));

-- among_due: condition: rows whose time has come; rows without a readable time are for the rules to judge
(julianday(waiting./* event_time */event_time) IS NULL
 OR julianday(waiting./* event_time */event_time) <= julianday(/* local */CURRENT_TIMESTAMP));

-- among_noted: condition: the rows of the batch in hand
(waiting./* record_id */record_id IN (SELECT value FROM json_each(:ids)));

-- order_by_time: order: as the events take effect
julianday(waiting./* event_time */event_time), waiting./* event_time */event_time, waiting./* record_id */record_id;

-- mark_rows: gives a status to rows that still wait
UPDATE /* log */event_log SET /* status */status = :status
WHERE /* record_id */record_id IN (SELECT value FROM json_each(:ids)) AND /* status */status = 'N';

-- delete_rows: removes rows that still wait
DELETE FROM /* log */event_log
WHERE /* record_id */record_id IN (SELECT value FROM json_each(:ids)) AND /* status */status = 'N';

-- note_outcome: records why waiting rows end as they do
INSERT INTO /* outcomes */event_log_outcome (record_id, status, reason, note, settled_at)
SELECT json_extract(value, '$.id'), json_extract(value, '$.status'), json_extract(value, '$.reason'),
       json_extract(value, '$.note'), /* now */CURRENT_TIMESTAMP
FROM json_each(:records)
WHERE EXISTS (SELECT 1 FROM /* log */event_log
              WHERE /* record_id */record_id = json_extract(value, '$.id') AND /* status */status = 'N')
ON CONFLICT (record_id) DO UPDATE
SET status = excluded.status, reason = excluded.reason, note = excluded.note, settled_at = excluded.settled_at,
    next_attempt = NULL;

-- note_attempt: counts an attempt of rows that go on waiting, and says from when on they are offered again
INSERT INTO /* outcomes */event_log_outcome AS kept (record_id, status, reason, note, attempts, next_attempt)
SELECT json_extract(value, '$.id'), json_extract(value, '$.status'), json_extract(value, '$.reason'),
       json_extract(value, '$.note'), 1,
       strftime('%Y-%m-%d %H:%M:%f', /* now */CURRENT_TIMESTAMP, json_extract(value, '$.delay') || ' seconds')
FROM json_each(:records)
WHERE EXISTS (SELECT 1 FROM /* log */event_log
              WHERE /* record_id */record_id = json_extract(value, '$.id') AND /* status */status = 'N')
ON CONFLICT (record_id) DO UPDATE
SET status = excluded.status, reason = excluded.reason, note = excluded.note, next_attempt = excluded.next_attempt,
    attempts = coalesce(kept.attempts, 0) + 1;

-- attempts_sooner: brings attempts nearer that lie further off than any may: a clock was set back since
UPDATE /* outcomes */event_log_outcome
SET next_attempt = strftime('%Y-%m-%d %H:%M:%f', /* now */CURRENT_TIMESTAMP, :delay || ' seconds')
WHERE next_attempt IS NOT NULL AND record_id IN (SELECT value FROM json_each(:ids));

-- end_attempts: closes the record of rows that were tried before, or waited for others, and now ended well
UPDATE /* outcomes */event_log_outcome
SET status = :status, reason = :reason, note = NULL, next_attempt = NULL, settled_at = /* now */CURRENT_TIMESTAMP
WHERE (next_attempt IS NOT NULL OR status = 'N') AND record_id IN (SELECT value FROM json_each(:ids));

-- count_by_status: how many rows carry each letter
SELECT /* status */status, count(*) FROM /* log */event_log GROUP BY 1;
