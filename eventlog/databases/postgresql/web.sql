-- Lists read by the two indexes of the log, of its waiting rows and of its processed ones, or by one of all numbers, or
-- else by the pages of the table. LATERAL has the rows of the other tables looked up one by one,
-- and what only waiting rows have is looked up for these.

-- list_rows: the rows of a stretch that are asked for, the newest first, with how they ended or what they wait for
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
       CASE WHEN entry./* status */status = 'N' THEN CASE WHEN holds.record_id IS NOT NULL THEN 'held' ELSE NULLIF(waits.reason, 'new') END
            WHEN entry./* status */status = 'S' AND kept.reason IS NULL THEN 'published'
            ELSE kept.reason END AS reason,
       CASE WHEN entry./* status */status = 'N' THEN coalesce(holds.note, waits.note) ELSE kept.note END AS note,
       waits.attempts AS attempts,
       waits.due AS next_attempt,
       kept.document AS document
FROM /* entries */event_log AS entry
LEFT JOIN LATERAL (SELECT * FROM /* outcomes */event_log_outcome AS noted
                   WHERE noted.record_id = entry./* record_id */record_id LIMIT 1) AS kept ON true
LEFT JOIN LATERAL (SELECT * FROM /* holds */event_log_hold AS one
                   WHERE entry./* status */status = 'N' AND one.record_id = entry./* record_id */record_id
                   LIMIT 1) AS holds ON true
LEFT JOIN LATERAL (SELECT reason, note, attempts, due FROM /* parked */event_log_parked AS one
                   WHERE entry./* status */status = 'N' AND one.record_id = entry./* record_id */record_id
                   ORDER BY one.reason = 'behind', one.output LIMIT 1) AS waits ON true
WHERE /* stretch */(1 = 1) AND entry./* record_id */record_id < CAST(:before AS bigint)
  AND (:any_status = 1 OR entry./* status */status IN (:letter_1, :letter_2, :letter_3, :letter_4, :letter_5))
  AND /* since */(1 = 1)
  AND (:any_table = 1 OR lower(entry./* table_name */table_name) = lower(:named))
  AND (:any_key = 1 OR CAST(entry./* table_key */table_key AS text) = :key)
  AND (:any_text = 1 OR lower(CAST(entry./* table_key */table_key AS text)) LIKE CAST(:pattern AS text) ESCAPE '!'
            OR lower(CAST(entry./* column_name */column_name AS text)) LIKE CAST(:pattern AS text) ESCAPE '!'
            OR lower(CAST(entry./* old_value */old_value AS text)) LIKE CAST(:pattern AS text) ESCAPE '!'
            OR lower(CAST(entry./* new_value */new_value AS text)) LIKE CAST(:pattern AS text) ESCAPE '!'
            OR lower(CASE WHEN entry./* status */status = 'N' THEN coalesce(holds.note, waits.note) ELSE kept.note END) LIKE CAST(:pattern AS text) ESCAPE '!')
  AND (:any_reason = 1 OR CASE WHEN entry./* status */status = 'N' THEN CASE WHEN holds.record_id IS NOT NULL THEN 'held' ELSE NULLIF(waits.reason, 'new') END
            WHEN entry./* status */status = 'S' AND kept.reason IS NULL THEN 'published'
            ELSE kept.reason END = :reason)
ORDER BY entry./* record_id */record_id DESC
LIMIT :limit;

-- list_low: where a stretch of so many rows before a number begins, and how many rows it has
SELECT min(n), count(*) FROM (
    SELECT entry./* record_id */record_id AS n FROM /* log */event_log AS entry
    WHERE /* among */(1 = 1) AND entry./* record_id */record_id < CAST(:before AS bigint)
    ORDER BY entry./* record_id */record_id DESC LIMIT :reach
) AS stretch;

-- list_low_of_all: the same of all rows; each half is read from the end of its index, and no more of it than is asked for
SELECT min(n), count(*) FROM (
    SELECT n FROM (
        (SELECT entry./* record_id */record_id AS n FROM /* log */event_log AS entry
         WHERE entry./* status */status = 'N' AND entry./* record_id */record_id < CAST(:before AS bigint)
         ORDER BY entry./* record_id */record_id DESC LIMIT :reach)
        UNION ALL
        (SELECT entry./* record_id */record_id AS n FROM /* log */event_log AS entry
         WHERE entry./* status */status IS DISTINCT FROM 'N' AND entry./* record_id */record_id < CAST(:before AS bigint)
         ORDER BY entry./* record_id */record_id DESC LIMIT :reach)
    ) AS halves
    ORDER BY n DESC LIMIT :reach
) AS stretch;

-- list_numbers: condition: a stretch of numbers
(entry./* record_id */record_id >= CAST(:low AS bigint));

-- list_halves: the rows of a stretch of numbers, each half by its index; joined so, they come in order without being sorted
(SELECT * FROM /* log */event_log AS waiting
 WHERE waiting./* status */status = 'N' AND waiting./* record_id */record_id >= CAST(:low AS bigint)
 UNION ALL
 SELECT * FROM /* log */event_log AS done
 WHERE done./* status */status IS DISTINCT FROM 'N' AND done./* record_id */record_id >= CAST(:low AS bigint));

-- list_waiting_numbers: condition: the waiting rows of a stretch of numbers
(entry./* status */status = 'N' AND entry./* record_id */record_id >= CAST(:low AS bigint));

-- list_places: condition: a stretch of the table as it lies on the disk
(entry.ctid >= CAST(:first_place AS tid) AND entry.ctid < CAST(:last_place AS tid));

-- list_end: where the table ends on the disk, in pages, and how many of them are looked through at once
SELECT greatest(pg_relation_size(CAST(CAST(:log AS text) AS regclass)), max(pg_relation_size(relid)))
       / CAST(current_setting('block_size') AS bigint), 512
FROM pg_partition_tree(CAST(CAST(:log AS text) AS regclass));

-- list_bounds: two ends of a stretch on the disk as conditions have them
SELECT '(' || CAST(:first_place AS bigint) || ',0)', '(' || CAST(:last_place AS bigint) || ',0)';

-- list_since: condition: rows from a time on, by the clock of the log
(entry./* event_time */event_time >= CAST(:since AS timestamp));
