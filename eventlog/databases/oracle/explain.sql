-- What people ask about single rows. event_time is DATE or TIMESTAMP, so it is cast before it is written.

-- row_status: the status and the object's texts of one row
SELECT /* status */status, /* table_name */table_name, /* table_key */table_key
FROM /* log */event_log WHERE /* record_id */record_id = :record_id;

-- keys_between: whose rows a row_range of the log has, of waiting ones or of the others
SELECT /* record_id */record_id, /* table_name */table_name, /* table_key */table_key
FROM /* log */event_log
WHERE /* record_id */record_id BETWEEN :first AND :last
  AND (CASE WHEN /* status */status = 'N' THEN 1 ELSE 0 END) = :waiting
ORDER BY /* record_id */record_id;

-- rows_numbered: some rows of the log, waiting ones or the others, as `waiting_rows` has them
SELECT /* record_id */record_id, /* event_type */event_type,
       /* table_name */table_name, /* table_key */table_key,
       /* column_name */column_name,
       /* old_value */old_value, /* new_value */new_value,
       TO_CHAR(CAST(/* event_time */event_time AS TIMESTAMP), 'YYYY-MM-DD HH24:MI:SS.FF6'), /* perpetrator */perpetrator/* context */
FROM /* log */event_log
WHERE /* record_id */record_id IN :records
  AND (CASE WHEN /* status */status = 'N' THEN 1 ELSE 0 END) = :waiting
ORDER BY /* record_id */record_id;

-- recorded: what the companion table says of one row
SELECT status, reason, note, TO_CHAR(finished_at, 'YYYY-MM-DD HH24:MI:SS.FF6'), answers
FROM /* outcomes */event_log_outcome WHERE record_id = :record_id;

-- last_error: the newest row that ended as an error
SELECT * FROM (
    SELECT record_id, status, reason, note, TO_CHAR(finished_at, 'YYYY-MM-DD HH24:MI:SS.FF6') AS settled
    FROM /* outcomes */event_log_outcome WHERE status IN ('E', 'F') ORDER BY record_id DESC
) WHERE ROWNUM = 1;
