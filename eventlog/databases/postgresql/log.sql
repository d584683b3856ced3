-- The log's everyday; status = 'N' also keeps marks and deletes on the partial index of waiting rows.
-- event_time is read as text: a time such as 'infinity' has no value in Python and must not stop the batch.

-- session: times in ISO form and UTC, other texts as triggers write them; plans made for the number of keys at hand, without compiling them first. Where a policy
-- would hide rows, reading fails: the functions of a policy are its owner's, and what is hidden would be told as deleted.
SELECT set_config('TimeZone', 'UTC', false), set_config('DateStyle', 'ISO, YMD', false), set_config('row_security', 'off', false),
       set_config('IntervalStyle', 'postgres', false), set_config('extra_float_digits', '1', false),
       set_config('bytea_output', 'hex', false),
       set_config('plan_cache_mode', 'force_custom_plan', false), set_config('jit', 'off', false);

-- one_moment: begins a transaction that sees one moment, and changes nothing
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;

-- waiting_rows: the waiting rows among those asked for, in the order asked for.
-- Values longer than :plain bytes are only told by their length, and fetched by their rows' numbers where there is room.
SELECT waiting./* record_id */record_id, waiting./* event_type */event_type,
       waiting./* table_name */table_name, waiting./* table_key */table_key,
       waiting./* column_name */column_name,
       CASE WHEN octet_length(waiting./* old_value */old_value) <= :plain THEN waiting./* old_value */old_value END,
       CASE WHEN octet_length(waiting./* new_value */new_value) <= :plain THEN waiting./* new_value */new_value END,
       CAST(waiting./* event_time */event_time AS text),
       waiting./* perpetrator */perpetrator,
       CASE WHEN octet_length(waiting./* old_value */old_value) > :plain THEN octet_length(waiting./* old_value */old_value) END,
       CASE WHEN octet_length(waiting./* new_value */new_value) > :plain THEN octet_length(waiting./* new_value */new_value) END/* transaction *//* context */
FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND /* among */(1 = 1)
ORDER BY /* order */record_id
LIMIT :limit;

-- transaction_known: column: the transaction that wrote the row as it stands, and when it was committed where the server keeps
-- that. A savepoint counts as a transaction here, and so does a requeue; what is written with the row knows better.
, CAST(CAST(waiting.xmin AS text) AS bigint), CASE WHEN current_setting('track_commit_timestamp') = 'on'
  THEN CAST(pg_xact_commit_timestamp(waiting.xmin) AT TIME ZONE 'UTC' AS text) END;

-- transaction_written: column: the same as the row itself says it, unless its writer said NULL.
-- A number that lies further back than half the circle of numbers would be taken for another transaction's.
, COALESCE(waiting./* transaction_number */eventlog_transaction, CAST(CAST(waiting.xmin AS text) AS bigint)),
  CASE WHEN current_setting('track_commit_timestamp') = 'on'
        AND COALESCE(waiting./* transaction_number */eventlog_transaction, 2 ^ 62)
            > txid_snapshot_xmax(txid_current_snapshot()) - 2000000000
  THEN CAST(pg_xact_commit_timestamp(COALESCE(
         CAST(CAST(waiting./* transaction_number */eventlog_transaction % 4294967296 AS text) AS xid), waiting.xmin)) AT TIME ZONE 'UTC' AS text)
  END;

-- transaction_ends: the last waiting row of each transaction that has rows from :first on, of those that begin there first
SELECT COALESCE(waiting./* transaction_number */eventlog_transaction, CAST(CAST(waiting.xmin AS text) AS bigint)),
       MAX(waiting./* record_id */record_id)
FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND waiting./* record_id */record_id >= :first
GROUP BY 1 ORDER BY MIN(waiting./* record_id */record_id)
LIMIT :most;

-- among_noted: condition: rows with these numbers
(waiting./* record_id */record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[])));

-- mark_rows: gives a status to rows that still wait
UPDATE /* log */event_log SET /* status */status = :status
WHERE /* record_id */record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[])) AND /* status */status = 'N';

-- delete_rows: removes rows that still wait
DELETE FROM /* log */event_log
WHERE /* record_id */record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[])) AND /* status */status = 'N';

-- note_outcome: records why waiting rows end as they do. One statement, for psycopg sends many in a
-- pipeline, whose last message stops the server's clock for sessions that are idle in a transaction (decision 55).
INSERT INTO /* outcomes */event_log_outcome (record_id, status, reason, note, answers, finished_at)
SELECT noted.id, noted.status, noted.reason, noted.note, noted.answers, /* now */CURRENT_TIMESTAMP
FROM jsonb_to_recordset(CAST(:records AS jsonb)) AS noted (id bigint, status text, reason text, note text, answers text)
CROSS JOIN LATERAL (SELECT 1 FROM /* log */event_log AS waiting
                    WHERE waiting./* record_id */record_id = noted.id AND waiting./* status */status = 'N'
                    LIMIT 1) AS still
ON CONFLICT (record_id) DO UPDATE
SET status = excluded.status, reason = excluded.reason, note = excluded.note, answers = excluded.answers,
    finished_at = excluded.finished_at;

-- count_by_status: how many rows carry each status
SELECT CAST(/* status */status AS text), count(*) FROM /* log */event_log GROUP BY 1;

-- each_half: condition: every row. A log has an index of the numbers of its waiting rows and one of all others, and the
-- server uses the two only where a condition names both.
(/* status */status = 'N' OR /* status */status IS DISTINCT FROM 'N');

-- processed: condition: rows that do not wait, as their index has it
(/* status */status IS DISTINCT FROM 'N');

-- newest_processed: the greatest number of a row that does not wait. For MAX the server reads all of them, as long as its
-- statistics are those of a log of which all rows wait: 50 ms in each batch behind 200,000 rows.
SELECT done./* record_id */record_id FROM /* log */event_log AS done WHERE done./* status */status IS DISTINCT FROM 'N'
ORDER BY 1 DESC LIMIT 1;

-- processed_among: those of these numbers that rows have which do not wait
SELECT DISTINCT done./* record_id */record_id FROM /* log */event_log AS done
WHERE done./* record_id */record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[])) AND done./* status */status IS DISTINCT FROM 'N';
