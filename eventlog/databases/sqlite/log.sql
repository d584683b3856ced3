-- The log's everyday. Texts are cast, because SQLite lets a column hold what it likes; a time may have any form that julianday reads.

-- one_moment: begins a transaction, which sees one moment from its first reading on
BEGIN;

-- waiting_rows: the waiting rows among those asked for, in the order asked for.
-- Values longer than :plain bytes are only told by their length, and fetched by their rows' numbers where there is room.
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
            THEN length(CAST(waiting./* new_value */new_value AS blob)) END/* transaction *//* context */
FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND /* among */(1 = 1)
ORDER BY /* order */record_id
LIMIT :limit;

-- among_due: condition: rows whose time has come; rows without a readable time are for the rules to judge
(julianday(waiting./* event_time */event_time) IS NULL
 OR julianday(waiting./* event_time */event_time) <= julianday(/* local */CURRENT_TIMESTAMP));

-- among_noted: condition: rows with these numbers
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
INSERT INTO /* outcomes */event_log_outcome (record_id, status, reason, note, answers, finished_at)
SELECT json_extract(value, '$.id'), json_extract(value, '$.status'), json_extract(value, '$.reason'),
       json_extract(value, '$.note'), json_extract(value, '$.answers'), /* now */CURRENT_TIMESTAMP
FROM json_each(:records)
WHERE EXISTS (SELECT 1 FROM /* log */event_log
              WHERE /* record_id */record_id = json_extract(value, '$.id') AND /* status */status = 'N')
ON CONFLICT (record_id) DO UPDATE
SET status = excluded.status, reason = excluded.reason, note = excluded.note, answers = excluded.answers,
    finished_at = excluded.finished_at;

-- count_by_status: how many rows carry each status
SELECT /* status */status, count(*) FROM /* log */event_log GROUP BY 1;
