-- The status page: lists that read a bounded row_range of the log, by its numbers or by the index of waiting rows.

-- list_rows: as everywhere
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
       /* reason */('') AS reason,
       /* note */('') AS note,
       (SELECT MIN(parked.attempts) KEEP (DENSE_RANK FIRST ORDER BY CASE parked.reason WHEN 'behind' THEN 2 ELSE 1 END, parked.output)
        FROM /* parked */event_log_parked parked
        WHERE entry./* status */status = 'N' AND parked.record_id = entry./* record_id */record_id) AS attempts,
       (SELECT MIN(parked.due) KEEP (DENSE_RANK FIRST ORDER BY CASE parked.reason WHEN 'behind' THEN 2 ELSE 1 END, parked.output)
        FROM /* parked */event_log_parked parked
        WHERE entry./* status */status = 'N' AND parked.record_id = entry./* record_id */record_id) AS next_attempt,
       /* context */(NULL) AS context
FROM (SELECT * FROM (
      SELECT entry.* FROM /* entries */event_log entry
      WHERE /* row_range */(1 = 1) AND entry./* record_id */record_id < :before
        AND (:any_status = 1 OR entry./* status */status IN (:status_1, :status_2, :status_3, :status_4, :status_5))
        AND /* since */(1 = 1) AND /* by */(1 = 1)
        AND (:any_table = 1 OR LOWER(entry./* table_name */table_name) = LOWER(:named))
        AND (:any_key = 1 OR entry./* table_key */table_key = :key)
        AND (:any_text = 1 OR LOWER(entry./* table_key */table_key) LIKE :pattern ESCAPE '!'
                  OR LOWER(entry./* column_name */column_name) LIKE :pattern ESCAPE '!'
                  OR LOWER(entry./* old_value */old_value) LIKE :pattern ESCAPE '!'
                  OR LOWER(entry./* new_value */new_value) LIKE :pattern ESCAPE '!'
                  OR LOWER(/* note */('')) LIKE :pattern ESCAPE '!')
        AND (:any_reason = 1 OR /* reason */('') = :reason)
      ORDER BY entry./* record_id */record_id DESC
      ) WHERE ROWNUM <= :limit) entry
ORDER BY entry./* record_id */record_id DESC;

-- list_reason: expression: as everywhere
(CASE WHEN entry./* status */status = 'N' THEN
           CASE WHEN EXISTS (SELECT 1 FROM /* holds */event_log_hold holds WHERE holds.record_id = entry./* record_id */record_id) THEN 'held'
                ELSE (SELECT NULLIF(MIN(parked.reason) KEEP (DENSE_RANK FIRST ORDER BY CASE parked.reason WHEN 'behind' THEN 2 ELSE 1 END, parked.output), 'new')
                      FROM /* parked */event_log_parked parked WHERE parked.record_id = entry./* record_id */record_id) END
      ELSE coalesce((SELECT ended.reason FROM /* outcomes */event_log_outcome ended
                     WHERE ended.record_id = entry./* record_id */record_id),
                    CASE WHEN entry./* status */status = 'S' THEN 'published' END) END);

-- list_note: expression: as everywhere. A note is a CLOB, which no aggregate takes: the row of it is found first.
(CASE WHEN entry./* status */status = 'N' THEN
           coalesce((SELECT holds.note FROM /* holds */event_log_hold holds WHERE holds.record_id = entry./* record_id */record_id),
                    (SELECT parked.note FROM /* parked */event_log_parked parked
                     WHERE parked.record_id = entry./* record_id */record_id
                       AND parked.output = (SELECT MIN(told.output) KEEP (DENSE_RANK FIRST ORDER BY CASE told.reason WHEN 'behind' THEN 2 ELSE 1 END, told.output)
                                            FROM /* parked */event_log_parked told WHERE told.record_id = parked.record_id)))
      ELSE (SELECT ended.note FROM /* outcomes */event_log_outcome ended
            WHERE ended.record_id = entry./* record_id */record_id) END);

-- list_low: where a row_range of so many rows before a number begins, and how many rows it has
SELECT MIN(n), COUNT(*) FROM (SELECT n FROM (
    SELECT entry./* record_id */record_id AS n FROM /* log */event_log entry
    WHERE /* among */(1 = 1) AND entry./* record_id */record_id < :before
    ORDER BY entry./* record_id */record_id DESC
) WHERE ROWNUM <= :reach);

-- list_since: condition: rows from a time on, by the clock of the log
(CAST(entry./* event_time */event_time AS TIMESTAMP) >= TO_TIMESTAMP(:since, 'YYYY-MM-DD HH24:MI:SS.FF6'));
