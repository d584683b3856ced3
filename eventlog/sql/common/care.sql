-- Row care: looking at rows, holding and releasing them, offering them again, taking old ones away.

-- requeue_run: lets processed rows of a run wait again
UPDATE /* log */event_log SET /* status */status = 'N'
WHERE /* record_id */record_id BETWEEN :first AND :last AND /* processed */(1 = 1)
  AND /* status */status IN (:status_1, :status_2, :status_3, :status_4, :status_5)
  AND (:any_table = 1 OR lower(/* table_name */table_name) = lower(:named));

-- count_run: how many rows of a run would wait again
SELECT count(*) FROM /* log */event_log
WHERE /* record_id */record_id BETWEEN :first AND :last AND /* processed */(1 = 1)
  AND /* status */status IN (:status_1, :status_2, :status_3, :status_4, :status_5)
  AND (:any_table = 1 OR lower(/* table_name */table_name) = lower(:named));

-- forget_run: clears what was recorded about rows of a run that wait again
DELETE FROM /* outcomes */event_log_outcome AS kept
WHERE kept.record_id BETWEEN :first AND :last
  AND kept.status IN (:status_1, :status_2, :status_3, :status_4, :status_5)
  AND EXISTS (SELECT 1 FROM /* log */event_log AS entry
              WHERE entry./* record_id */record_id = kept.record_id AND entry./* status */status = 'N');

-- in_range: condition: the rows of a row_range
(entry./* record_id */record_id > :after AND entry./* record_id */record_id <= :until);

-- old_rows: the rows to take away, as an archive keeps them
SELECT entry./* record_id */record_id, CAST(entry./* status */status AS text), entry./* event_type */event_type,
       CAST(entry./* event_time */event_time AS text), CAST(entry./* perpetrator */perpetrator AS text),
       CAST(entry./* table_name */table_name AS text), CAST(entry./* table_key */table_key AS text),
       CAST(entry./* column_name */column_name AS text),
       CAST(entry./* old_value */old_value AS text), CAST(entry./* new_value */new_value AS text),
       kept.reason, kept.note/* transaction *//* context */
FROM /* log */event_log AS entry
LEFT JOIN /* outcomes */event_log_outcome AS kept ON kept.record_id = entry./* record_id */record_id
WHERE /* row_range */(1 = 1) AND /* past */(1 = 1)
ORDER BY 1;

-- old_numbers: the rows to take away, by their numbers alone
SELECT entry./* record_id */record_id
FROM /* log */event_log entry
LEFT JOIN /* outcomes */event_log_outcome kept ON kept.record_id = entry./* record_id */record_id
WHERE /* row_range */(1 = 1) AND /* past */(1 = 1);

-- tables_named: how the log writes the name of a table, with a schema or without
SELECT DISTINCT /* table_name */table_name FROM /* log */event_log
WHERE lower(/* table_name */table_name) = lower(:named) OR lower(/* table_name */table_name) LIKE lower(:ending) ESCAPE '!';

-- tables_of_log: every table name that the log has
SELECT DISTINCT /* table_name */table_name FROM /* log */event_log;
