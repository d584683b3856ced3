-- The status page: lists that read a bounded stretch of the log, by its numbers or by the index of waiting rows.

-- list_rows: the rows of a stretch that are asked for, the newest first, with how they ended or what they wait for
SELECT entry./* record_id */record_id AS record_id,
       entry./* status */status AS status,
       CAST(entry./* event_type */event_type AS CHAR) AS event_type,
       IF(MICROSECOND(entry./* event_time */event_time) = 0,
          CAST(CAST(entry./* event_time */event_time AS DATETIME) AS CHAR),
          CAST(entry./* event_time */event_time AS CHAR)) AS event_time,
       entry./* perpetrator */perpetrator AS perpetrator,
       entry./* table_name */table_name AS table_name,
       entry./* table_key */table_key AS table_key,
       entry./* column_name */column_name AS column_name,
       substr(entry./* old_value */old_value, 1, :width) AS old_value,
       substr(entry./* new_value */new_value, 1, :width) AS new_value,
       CASE WHEN CAST(entry./* status */status AS BINARY) = 'N' THEN CASE WHEN holds.record_id IS NOT NULL THEN 'held' ELSE NULLIF(waits.reason, 'new') END
            WHEN CAST(entry./* status */status AS BINARY) = 'S' AND kept.reason IS NULL THEN 'published'
            ELSE kept.reason END AS reason,
       CASE WHEN CAST(entry./* status */status AS BINARY) = 'N' THEN coalesce(holds.note, waits.note) ELSE kept.note END AS note,
       waits.attempts AS attempts,
       waits.due AS next_attempt,
       kept.document AS document
FROM /* entries */event_log AS entry
LEFT JOIN /* outcomes */event_log_outcome AS kept ON kept.record_id = entry./* record_id */record_id
LEFT JOIN /* holds */event_log_hold AS holds
  ON CAST(entry./* status */status AS BINARY) = 'N' AND holds.record_id = entry./* record_id */record_id
LEFT JOIN /* parked */event_log_parked AS waits
  ON CAST(entry./* status */status AS BINARY) = 'N' AND waits.record_id = entry./* record_id */record_id
  AND CONCAT(CASE waits.reason WHEN 'behind' THEN 2 ELSE 1 END, waits.output) = (
      SELECT MIN(CONCAT(CASE one.reason WHEN 'behind' THEN 2 ELSE 1 END, one.output)) FROM /* parked */event_log_parked AS one
      WHERE one.record_id = entry./* record_id */record_id)
WHERE /* stretch */(1 = 1) AND entry./* record_id */record_id < :before
  AND (:any_status = 1
       OR CAST(entry./* status */status AS BINARY) IN (:letter_1, :letter_2, :letter_3, :letter_4, :letter_5))
  AND /* since */(1 = 1)
  AND (:any_table = 1 OR lower(entry./* table_name */table_name) = lower(:named))
  AND (:any_key = 1 OR CAST(entry./* table_key */table_key AS BINARY) = CAST(:key AS BINARY))
  AND (:any_text = 1 OR lower(entry./* table_key */table_key) LIKE :pattern ESCAPE '!'
            OR lower(entry./* column_name */column_name) LIKE :pattern ESCAPE '!'
            OR lower(entry./* old_value */old_value) LIKE :pattern ESCAPE '!'
            OR lower(entry./* new_value */new_value) LIKE :pattern ESCAPE '!'
            OR lower(CASE WHEN CAST(entry./* status */status AS BINARY) = 'N' THEN coalesce(holds.note, waits.note) ELSE kept.note END) LIKE :pattern ESCAPE '!')
  AND (:any_reason = 1 OR CASE WHEN CAST(entry./* status */status AS BINARY) = 'N' THEN CASE WHEN holds.record_id IS NOT NULL THEN 'held' ELSE NULLIF(waits.reason, 'new') END
            WHEN CAST(entry./* status */status AS BINARY) = 'S' AND kept.reason IS NULL THEN 'published'
            ELSE kept.reason END = :reason)
ORDER BY entry./* record_id */record_id DESC
LIMIT :limit;

-- list_waiting: condition: rows that wait
(entry./* status */status = 'N' AND CAST(entry./* status */status AS BINARY) = 'N');

-- list_waiting_numbers: condition: the waiting rows of a stretch of numbers
(entry./* status */status = 'N' AND CAST(entry./* status */status AS BINARY) = 'N'
 AND entry./* record_id */record_id >= :low);

-- list_since: condition: rows from a time on, by the clock of the log
(entry./* event_time */event_time >= CAST(:since AS DATETIME(6)));
