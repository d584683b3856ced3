-- Lists of the status page and of `eventlog log`, which read a bounded row_range of the log: by its numbers, or by the index of waiting rows.

-- list_rows: the rows of a row_range that are asked for, the newest first, with how they ended or what they wait for.
-- Which rows are shown is decided first: the other tables are asked about these, and about others only where the
-- filters need it.
SELECT entry./* record_id */record_id AS record_id,
       CAST(entry./* status */status AS text) AS status,
       CAST(entry./* event_type */event_type AS text) AS event_type,
       CAST(entry./* event_time */event_time AS text) AS event_time,
       CAST(entry./* perpetrator */perpetrator AS text) AS perpetrator,
       CAST(entry./* table_name */table_name AS text) AS table_name,
       CAST(entry./* table_key */table_key AS text) AS table_key,
       CAST(entry./* column_name */column_name AS text) AS column_name,
       substr(CAST(entry./* old_value */old_value AS text), 1, CAST(:width AS integer)) AS old_value,
       substr(CAST(entry./* new_value */new_value AS text), 1, CAST(:width AS integer)) AS new_value,
       /* reason */('') AS reason,
       /* note */('') AS note,
       (SELECT parked.attempts FROM /* parked */event_log_parked AS parked
        WHERE entry./* status */status = 'N' AND parked.record_id = entry./* record_id */record_id
        ORDER BY parked.reason = 'behind', parked.output LIMIT 1) AS attempts,
       (SELECT parked.due FROM /* parked */event_log_parked AS parked
        WHERE entry./* status */status = 'N' AND parked.record_id = entry./* record_id */record_id
        ORDER BY parked.reason = 'behind', parked.output LIMIT 1) AS next_attempt,
       /* context */(NULL) AS context
FROM (SELECT * FROM /* entries */event_log AS entry
      WHERE /* row_range */(1 = 1) AND entry./* record_id */record_id < CAST(:before AS bigint)
        AND (:any_status = 1 OR entry./* status */status IN (:status_1, :status_2, :status_3, :status_4, :status_5))
        AND /* since */(1 = 1) AND /* by */(1 = 1)
        AND (:any_table = 1 OR lower(entry./* table_name */table_name) = lower(:named))
        AND (:any_key = 1 OR CAST(entry./* table_key */table_key AS text) = :key)
        AND (:any_text = 1 OR lower(CAST(entry./* table_key */table_key AS text)) LIKE CAST(:pattern AS text) ESCAPE '!'
                  OR lower(CAST(entry./* column_name */column_name AS text)) LIKE CAST(:pattern AS text) ESCAPE '!'
                  OR lower(CAST(entry./* old_value */old_value AS text)) LIKE CAST(:pattern AS text) ESCAPE '!'
                  OR lower(CAST(entry./* new_value */new_value AS text)) LIKE CAST(:pattern AS text) ESCAPE '!'
                  OR lower(/* note */('')) LIKE CAST(:pattern AS text) ESCAPE '!')
        AND (:any_reason = 1 OR /* reason */('') = :reason)
      ORDER BY entry./* record_id */record_id DESC
      LIMIT :limit) AS entry
ORDER BY entry./* record_id */record_id DESC;

-- list_reason: expression: how a row ended, or what it waits for; at several outputs, `behind` comes last
(CASE WHEN entry./* status */status = 'N' THEN
           CASE WHEN (SELECT holds.record_id FROM /* holds */event_log_hold AS holds
                      WHERE holds.record_id = entry./* record_id */record_id LIMIT 1) IS NOT NULL THEN 'held'
                ELSE (SELECT NULLIF(parked.reason, 'new') FROM /* parked */event_log_parked AS parked
                      WHERE parked.record_id = entry./* record_id */record_id
                      ORDER BY parked.reason = 'behind', parked.output LIMIT 1) END
      ELSE coalesce((SELECT ended.reason FROM /* outcomes */event_log_outcome AS ended
                     WHERE ended.record_id = entry./* record_id */record_id LIMIT 1),
                    CASE WHEN entry./* status */status = 'S' THEN 'published' END) END);

-- list_note: expression: what was noted about that
(CASE WHEN entry./* status */status = 'N' THEN
           coalesce((SELECT holds.note FROM /* holds */event_log_hold AS holds WHERE holds.record_id = entry./* record_id */record_id LIMIT 1),
                    (SELECT parked.note FROM /* parked */event_log_parked AS parked
                     WHERE parked.record_id = entry./* record_id */record_id
                     ORDER BY parked.reason = 'behind', parked.output LIMIT 1))
      ELSE (SELECT ended.note FROM /* outcomes */event_log_outcome AS ended
            WHERE ended.record_id = entry./* record_id */record_id LIMIT 1) END);

-- list_low: where a row_range of so many rows before a number begins, and how many rows it has
SELECT min(n), count(*) FROM (
    SELECT entry./* record_id */record_id AS n FROM /* log */event_log AS entry
    WHERE /* among */(1 = 1) AND entry./* record_id */record_id < :before
    ORDER BY entry./* record_id */record_id DESC LIMIT :reach
) AS row_range;

-- list_log: where rows are read from
/* log */event_log;

-- list_no_context: expression: nobody, in a log without a column for that
(NULL);

-- list_context: expression: who the application said is behind a row
(entry./* context_column */eventlog_context);

-- list_by_user: condition: rows of a user of the database
(lower(entry./* perpetrator */perpetrator) LIKE :by ESCAPE '!');

-- list_by: condition: rows of a user of the database, or of whoever the application named
(lower(entry./* perpetrator */perpetrator) LIKE :by ESCAPE '!' OR lower(entry./* context_column */eventlog_context) LIKE :by ESCAPE '!');

-- list_every: condition: any row
(1 = 1);

-- list_by_anybody: condition: rows of anybody
(1 = 1);

-- list_ever: condition: rows of any time
(1 = 1);

-- list_waiting: condition: rows that wait
(entry./* status */status = 'N');

-- list_numbers: condition: a row_range of numbers
(entry./* record_id */record_id >= :low);

-- list_waiting_numbers: condition: the waiting rows of a row_range of numbers
(entry./* status */status = 'N' AND entry./* record_id */record_id >= :low);

-- count_reasons: how many rows ended with each status and reason
SELECT status, reason, COUNT(*) FROM /* outcomes */event_log_outcome WHERE status <> 'N' GROUP BY status, reason;
