-- What people ask about single rows.

-- row_status: the status and the object's texts of one row
SELECT /* status */status, /* table_name */table_name, /* table_key */table_key
FROM /* log */event_log WHERE /* record_id */record_id = :record_id;

-- keys_between: whose rows a row_range of the log has, of waiting ones or of the others
SELECT /* record_id */record_id, /* table_name */table_name, /* table_key */table_key
FROM /* log */event_log
WHERE /* record_id */record_id BETWEEN :first AND :last
  AND (CASE WHEN CAST(/* status */status AS BINARY) = 'N' THEN 1 ELSE 0 END) = :waiting
ORDER BY /* record_id */record_id;

-- rows_numbered: some rows of the log, waiting ones or the others, as `waiting_rows` has them
SELECT /* record_id */record_id, /* event_type */event_type,
       /* table_name */table_name, /* table_key */table_key,
       /* column_name */column_name,
       /* old_value */old_value, /* new_value */new_value,
       IF(MICROSECOND(/* event_time */event_time) = 0,
          CAST(CAST(/* event_time */event_time AS DATETIME) AS CHAR), CAST(/* event_time */event_time AS CHAR)),
       /* perpetrator */perpetrator/* context */
FROM /* log */event_log
WHERE /* record_id */record_id IN :records
  AND (CASE WHEN CAST(/* status */status AS BINARY) = 'N' THEN 1 ELSE 0 END) = :waiting
ORDER BY /* record_id */record_id;

-- recorded: what the companion table says of one row
SELECT status, reason, note, CAST(finished_at AS CHAR), answers
FROM /* outcomes */event_log_outcome WHERE record_id = :record_id;

-- last_error: the newest row that ended as an error
SELECT record_id, status, reason, note, CAST(finished_at AS CHAR)
FROM /* outcomes */event_log_outcome WHERE status IN ('E', 'F') ORDER BY record_id DESC LIMIT 1;
