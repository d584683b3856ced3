-- The status page: lists that read a bounded stretch of the log, by its numbers or by the index of waiting rows.

-- list_rows: the rows of a stretch that are asked for, the newest first, with what the companion table says of them
SELECT * FROM (
SELECT entry./* record_id */record_id AS record_id,
       entry./* status */status AS status,
       TO_CHAR(entry./* event_type */event_type) AS event_type,
       TO_CHAR(CAST(entry./* event_time */event_time AS TIMESTAMP), 'YYYY-MM-DD HH24:MI:SS.FF6') AS event_time,
       entry./* perpetrator */perpetrator AS perpetrator,
       entry./* table_name */table_name AS table_name,
       entry./* table_key */table_key AS table_key,
       entry./* column_name */column_name AS column_name,
       SUBSTR(entry./* old_value */old_value, 1, :width) AS old_value,
       SUBSTR(entry./* new_value */new_value, 1, :width) AS new_value,
       CASE WHEN entry./* status */status = 'N' AND kept.held <> 0 THEN 'held'
            WHEN entry./* status */status = 'S' AND kept.reason IS NULL THEN 'published'
            ELSE kept.reason END AS reason,
       kept.note AS note,
       kept.attempts AS attempts,
       TO_CHAR(kept.next_attempt, 'YYYY-MM-DD HH24:MI:SS.FF6') AS next_attempt,
       kept.document AS document
FROM /* entries */event_log entry
LEFT JOIN /* outcomes */event_log_outcome kept ON kept.record_id = entry./* record_id */record_id
WHERE /* stretch */(1 = 1) AND entry./* record_id */record_id < :before
  AND (:any_status = 1 OR entry./* status */status IN (:letter_1, :letter_2, :letter_3, :letter_4, :letter_5))
  AND /* since */(1 = 1)
  AND (:any_table = 1 OR LOWER(entry./* table_name */table_name) = LOWER(:named))
  AND (:any_key = 1 OR entry./* table_key */table_key = :key)
  AND (:any_text = 1 OR LOWER(entry./* table_key */table_key) LIKE :pattern ESCAPE '!'
            OR LOWER(entry./* column_name */column_name) LIKE :pattern ESCAPE '!'
            OR LOWER(entry./* old_value */old_value) LIKE :pattern ESCAPE '!'
            OR LOWER(entry./* new_value */new_value) LIKE :pattern ESCAPE '!'
            OR LOWER(kept.note) LIKE :pattern ESCAPE '!')
  AND (:any_reason = 1 OR CASE WHEN entry./* status */status = 'N' AND kept.held <> 0 THEN 'held'
            WHEN entry./* status */status = 'S' AND kept.reason IS NULL THEN 'published'
            ELSE kept.reason END = :reason)
ORDER BY entry./* record_id */record_id DESC
) WHERE ROWNUM <= :limit;

-- list_low: where a stretch of so many rows before a number begins, and how many rows it has
SELECT MIN(n), COUNT(*) FROM (SELECT n FROM (
    SELECT entry./* record_id */record_id AS n FROM /* log */event_log entry
    WHERE /* among */(1 = 1) AND entry./* record_id */record_id < :before
    ORDER BY entry./* record_id */record_id DESC
) WHERE ROWNUM <= :reach);

-- list_since: condition: rows from a time on, by the clock of the log
(CAST(entry./* event_time */event_time AS TIMESTAMP) >= TO_TIMESTAMP(:since, 'YYYY-MM-DD HH24:MI:SS.FF6'));
