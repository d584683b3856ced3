-- What people ask about single rows.

-- row_status: the status and the object's texts of one row
SELECT /* status */status, CAST(/* table_name */table_name AS text), CAST(/* table_key */table_key AS text)
FROM /* log */event_log WHERE /* record_id */record_id = :record_id AND /* each_half */(1 = 1);

-- keys_between: whose rows a row_range of the log has, of waiting ones or of the others
SELECT /* record_id */record_id, CAST(/* table_name */table_name AS text), CAST(/* table_key */table_key AS text)
FROM /* log */event_log
WHERE /* record_id */record_id BETWEEN :first AND :last AND /* each_half */(1 = 1)
  AND (CASE WHEN /* status */status = 'N' THEN 1 ELSE 0 END) = :waiting
ORDER BY /* record_id */record_id;

-- rows_numbered: some rows of the log, waiting ones or the others, as `waiting_rows` has them
SELECT /* record_id */record_id, /* event_type */event_type,
       CAST(/* table_name */table_name AS text), CAST(/* table_key */table_key AS text),
       CAST(/* column_name */column_name AS text),
       CAST(/* old_value */old_value AS text), CAST(/* new_value */new_value AS text),
       CAST(/* event_time */event_time AS text), CAST(/* perpetrator */perpetrator AS text)/* context */
FROM /* log */event_log
WHERE /* record_id */record_id IN :records AND /* each_half */(1 = 1)
  AND (CASE WHEN /* status */status = 'N' THEN 1 ELSE 0 END) = :waiting
ORDER BY /* record_id */record_id;

-- context_said: column: who the application said is behind the row
, /* context_column */eventlog_context;

-- recorded: what the companion table says of one row
SELECT status, reason, note, CAST(finished_at AS text), answers
FROM /* outcomes */event_log_outcome WHERE record_id = :record_id;

-- last_error: the newest row that ended as an error
SELECT record_id, status, reason, note, CAST(finished_at AS text)
FROM /* outcomes */event_log_outcome WHERE status IN ('E', 'F') ORDER BY record_id DESC LIMIT 1;
