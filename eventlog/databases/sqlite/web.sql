-- Lists read by the log's numbers, by the index of waiting rows, or else by rowid.

-- list_rows: the rows of a stretch that are asked for, the newest first, with how they ended or what they wait for
SELECT entry./* record_id */record_id AS record_id,
       CAST(entry./* status */status AS text) AS status,
       CAST(entry./* event_type */event_type AS text) AS event_type,
       CAST(entry./* event_time */event_time AS text) AS event_time,
       CAST(entry./* perpetrator */perpetrator AS text) AS perpetrator,
       CAST(entry./* table_name */table_name AS text) AS table_name,
       CAST(entry./* table_key */table_key AS text) AS table_key,
       CAST(entry./* column_name */column_name AS text) AS column_name,
       substr(CAST(entry./* old_value */old_value AS text), 1, :width) AS old_value,
       substr(CAST(entry./* new_value */new_value AS text), 1, :width) AS new_value,
       CASE WHEN entry./* status */status = 'N' THEN CASE WHEN holds.record_id IS NOT NULL THEN 'held' ELSE NULLIF(waits.reason, 'new') END
            WHEN entry./* status */status = 'S' AND kept.reason IS NULL THEN 'published'
            ELSE kept.reason END AS reason,
       CASE WHEN entry./* status */status = 'N' THEN coalesce(holds.note, waits.note) ELSE kept.note END AS note,
       waits.attempts AS attempts,
       waits.due AS next_attempt,
       kept.document AS document
FROM /* entries */event_log AS entry
LEFT JOIN /* outcomes */event_log_outcome AS kept ON kept.record_id = entry./* record_id */record_id
LEFT JOIN /* holds */event_log_hold AS holds
  ON entry./* status */status = 'N' AND holds.record_id = entry./* record_id */record_id
LEFT JOIN /* parked */event_log_parked AS waits
  ON entry./* status */status = 'N' AND waits.record_id = entry./* record_id */record_id
  AND CASE waits.reason WHEN 'behind' THEN '2' ELSE '1' END || waits.output = (
      SELECT MIN(CASE one.reason WHEN 'behind' THEN '2' ELSE '1' END || one.output) FROM /* parked */event_log_parked AS one
      WHERE one.record_id = entry./* record_id */record_id)
WHERE /* stretch */(1 = 1) AND entry./* record_id */record_id < :before
  AND (:any_status = 1 OR entry./* status */status IN (:letter_1, :letter_2, :letter_3, :letter_4, :letter_5))
  AND /* since */(1 = 1)
  AND (:any_table = 1 OR lower(entry./* table_name */table_name) = lower(:named))
  AND (:any_key = 1 OR CAST(entry./* table_key */table_key AS text) = :key)
  AND (:any_text = 1 OR lower(CAST(entry./* table_key */table_key AS text)) LIKE :pattern ESCAPE '!'
            OR lower(CAST(entry./* column_name */column_name AS text)) LIKE :pattern ESCAPE '!'
            OR lower(CAST(entry./* old_value */old_value AS text)) LIKE :pattern ESCAPE '!'
            OR lower(CAST(entry./* new_value */new_value AS text)) LIKE :pattern ESCAPE '!'
            OR lower(CASE WHEN entry./* status */status = 'N' THEN coalesce(holds.note, waits.note) ELSE kept.note END) LIKE :pattern ESCAPE '!')
  AND (:any_reason = 1 OR CASE WHEN entry./* status */status = 'N' THEN CASE WHEN holds.record_id IS NOT NULL THEN 'held' ELSE NULLIF(waits.reason, 'new') END
            WHEN entry./* status */status = 'S' AND kept.reason IS NULL THEN 'published'
            ELSE kept.reason END = :reason)
ORDER BY entry./* record_id */record_id DESC
LIMIT :limit;

-- list_places: condition: a stretch of the table as it lies on the disk
(entry.rowid >= :first_place AND entry.rowid < :last_place);

-- list_end: where the table ends on the disk, and how many rows are looked through at once
SELECT coalesce(max(rowid), 0) + 1, 10000 FROM /* log */event_log;

-- list_bounds: two ends of a stretch on the disk as conditions have them
SELECT :first_place, :last_place;

-- list_since: condition: rows from a time on, by the clock of the log
(julianday(entry./* event_time */event_time) >= julianday(:since));
