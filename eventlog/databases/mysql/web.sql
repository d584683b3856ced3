-- The status page: lists that read a bounded row_range of the log, by its numbers or by the index of waiting rows.

-- list_rows: as everywhere, by statuses that are told apart in any collation
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
       /* reason */('') AS reason,
       /* note */('') AS note,
       (SELECT parked.attempts FROM /* parked */event_log_parked AS parked
        WHERE CAST(entry./* status */status AS BINARY) = 'N' AND parked.record_id = entry./* record_id */record_id
        ORDER BY parked.reason = 'behind', parked.output LIMIT 1) AS attempts,
       (SELECT parked.due FROM /* parked */event_log_parked AS parked
        WHERE CAST(entry./* status */status AS BINARY) = 'N' AND parked.record_id = entry./* record_id */record_id
        ORDER BY parked.reason = 'behind', parked.output LIMIT 1) AS next_attempt,
       /* context */(NULL) AS context
FROM (SELECT * FROM /* entries */event_log AS entry
      WHERE /* row_range */(1 = 1) AND entry./* record_id */record_id < :before
        AND (:any_status = 1
             OR CAST(entry./* status */status AS BINARY) IN (:status_1, :status_2, :status_3, :status_4, :status_5))
        AND /* since */(1 = 1) AND /* by */(1 = 1)
        AND (:any_table = 1 OR lower(entry./* table_name */table_name) = lower(:named))
        AND (:any_key = 1 OR CAST(entry./* table_key */table_key AS BINARY) = CAST(:key AS BINARY))
        AND (:any_text = 1 OR lower(entry./* table_key */table_key) LIKE :pattern ESCAPE '!'
                  OR lower(entry./* column_name */column_name) LIKE :pattern ESCAPE '!'
                  OR lower(entry./* old_value */old_value) LIKE :pattern ESCAPE '!'
                  OR lower(entry./* new_value */new_value) LIKE :pattern ESCAPE '!'
                  OR lower(/* note */('')) LIKE :pattern ESCAPE '!')
        AND (:any_reason = 1 OR /* reason */('') = :reason)
      ORDER BY entry./* record_id */record_id DESC
      LIMIT :limit) AS entry
ORDER BY entry./* record_id */record_id DESC;

-- list_reason: expression: how a row ended, or what it waits for; at several outputs, `behind` comes last
(CASE WHEN CAST(entry./* status */status AS BINARY) = 'N' THEN
           CASE WHEN (SELECT holds.record_id FROM /* holds */event_log_hold AS holds
                      WHERE holds.record_id = entry./* record_id */record_id LIMIT 1) IS NOT NULL THEN 'held'
                ELSE (SELECT NULLIF(parked.reason, 'new') FROM /* parked */event_log_parked AS parked
                      WHERE parked.record_id = entry./* record_id */record_id
                      ORDER BY parked.reason = 'behind', parked.output LIMIT 1) END
      ELSE coalesce((SELECT ended.reason FROM /* outcomes */event_log_outcome AS ended
                     WHERE ended.record_id = entry./* record_id */record_id),
                    CASE WHEN CAST(entry./* status */status AS BINARY) = 'S' THEN 'published' END) END);

-- list_note: expression: what was noted about that
(CASE WHEN CAST(entry./* status */status AS BINARY) = 'N' THEN
           coalesce((SELECT holds.note FROM /* holds */event_log_hold AS holds WHERE holds.record_id = entry./* record_id */record_id),
                    (SELECT parked.note FROM /* parked */event_log_parked AS parked
                     WHERE parked.record_id = entry./* record_id */record_id
                     ORDER BY parked.reason = 'behind', parked.output LIMIT 1))
      ELSE (SELECT ended.note FROM /* outcomes */event_log_outcome AS ended
            WHERE ended.record_id = entry./* record_id */record_id) END);

-- list_waiting: condition: rows that wait
(entry./* status */status = 'N' AND CAST(entry./* status */status AS BINARY) = 'N');

-- list_waiting_numbers: condition: the waiting rows of a row_range of numbers
(entry./* status */status = 'N' AND CAST(entry./* status */status AS BINARY) = 'N'
 AND entry./* record_id */record_id >= :low);

-- list_since: condition: rows from a time on, by the clock of the log
(entry./* event_time */event_time >= CAST(:since AS DATETIME(6)));

-- list_by: condition: rows of a user of the database, or of whoever the application named, which is bytes
(lower(entry./* perpetrator */perpetrator) LIKE :by ESCAPE '!'
 OR lower(CONVERT(entry./* context_column */eventlog_context USING utf8mb4)) LIKE :by ESCAPE '!');
