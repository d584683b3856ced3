-- The status page: lists that read a bounded stretch of the log, by its numbers or by the index of waiting rows.

-- list_rows: the rows of a stretch that are asked for, the newest first, with how they ended or what they wait for
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
       CASE WHEN entry./* status */status = 'N' THEN CASE WHEN holds.record_id IS NOT NULL THEN 'held' ELSE NULLIF(waits.reason, 'new') END
            WHEN entry./* status */status = 'S' AND kept.reason IS NULL THEN 'published'
            ELSE kept.reason END AS reason,
       CASE WHEN entry./* status */status = 'N' THEN coalesce(holds.note, waits.note) ELSE kept.note END AS note,
       waits.attempts AS attempts,
       waits.due AS next_attempt,
       kept.document AS document
FROM /* entries */event_log entry
LEFT JOIN /* outcomes */event_log_outcome kept ON kept.record_id = entry./* record_id */record_id
LEFT JOIN /* holds */event_log_hold holds
  ON entry./* status */status = 'N' AND holds.record_id = entry./* record_id */record_id
LEFT JOIN /* parked */event_log_parked waits
  ON entry./* status */status = 'N' AND waits.record_id = entry./* record_id */record_id
  AND CASE waits.reason WHEN 'behind' THEN '2' ELSE '1' END || waits.output = (
      SELECT MIN(CASE one.reason WHEN 'behind' THEN '2' ELSE '1' END || one.output) FROM /* parked */event_log_parked one
      WHERE one.record_id = entry./* record_id */record_id)
WHERE /* stretch */(1 = 1) AND entry./* record_id */record_id < :before
  AND (:any_status = 1 OR entry./* status */status IN (:letter_1, :letter_2, :letter_3, :letter_4, :letter_5))
  AND /* since */(1 = 1)
  AND (:any_table = 1 OR LOWER(entry./* table_name */table_name) = LOWER(:named))
  AND (:any_key = 1 OR entry./* table_key */table_key = :key)
  AND (:any_text = 1 OR LOWER(entry./* table_key */table_key) LIKE :pattern ESCAPE '!'
            OR LOWER(entry./* column_name */column_name) LIKE :pattern ESCAPE '!'
            OR LOWER(entry./* old_value */old_value) LIKE :pattern ESCAPE '!'
            OR LOWER(entry./* new_value */new_value) LIKE :pattern ESCAPE '!'
            OR LOWER(CASE WHEN entry./* status */status = 'N' THEN coalesce(holds.note, waits.note) ELSE kept.note END) LIKE :pattern ESCAPE '!')
  AND (:any_reason = 1 OR CASE WHEN entry./* status */status = 'N' THEN CASE WHEN holds.record_id IS NOT NULL THEN 'held' ELSE NULLIF(waits.reason, 'new') END
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
