-- Old rows are taken away in ranges of record_ids.

-- forget_run: clears what was recorded about rows of a run that wait again
DELETE FROM /* outcomes */event_log_outcome kept
WHERE kept.record_id BETWEEN :first AND :last
  AND kept.status IN (:status_1, :status_2, :status_3, :status_4, :status_5)
  AND EXISTS (SELECT 1 FROM /* log */event_log entry
              WHERE entry./* record_id */record_id = kept.record_id AND entry./* status */status = 'N');

-- cutoff: the time before which rows are old, by the clock of the log and in UTC
SELECT TO_CHAR(CAST(/* local */SYSDATE AS TIMESTAMP) - NUMTODSINTERVAL(:age, 'SECOND'), 'YYYY-MM-DD HH24:MI:SS.FF6'),
       TO_CHAR(CAST(/* clock */SYSDATE AS TIMESTAMP) - NUMTODSINTERVAL(:age, 'SECOND'), 'YYYY-MM-DD HH24:MI:SS.FF6')
FROM dual;

-- range_begin: where the first row_range of the log begins
SELECT COALESCE(MIN(/* record_id */record_id), 1) - 1 FROM /* log */event_log;

-- range_end: where the row_range after a place ends, or NULL when there is none
SELECT MAX(place)
FROM (SELECT /* record_id */record_id AS place FROM /* log */event_log
      WHERE /* record_id */record_id > :after ORDER BY /* record_id */record_id)
WHERE ROWNUM <= :many;

-- in_past: condition: rows that ended long ago; those without a time go by when they were settled
(entry./* status */status IN (:status_1, :status_2, :status_3, :status_4, :status_5)
 AND (:any_table = 1 OR LOWER(entry./* table_name */table_name) = LOWER(:named))
 AND COALESCE(CAST(entry./* event_time */event_time AS TIMESTAMP), kept.finished_at)
     < TO_TIMESTAMP(CASE WHEN entry./* event_time */event_time IS NULL THEN :settled ELSE :cutoff END,
                    'YYYY-MM-DD HH24:MI:SS.FF6'));

-- old_rows: the rows to take away, as an archive keeps them
SELECT entry./* record_id */record_id, entry./* status */status, entry./* event_type */event_type,
       TO_CHAR(CAST(entry./* event_time */event_time AS TIMESTAMP), 'YYYY-MM-DD HH24:MI:SS.FF6'),
       entry./* perpetrator */perpetrator,
       entry./* table_name */table_name, entry./* table_key */table_key,
       entry./* column_name */column_name,
       entry./* old_value */old_value, entry./* new_value */new_value,
       kept.reason, kept.note/* transaction *//* context */
FROM /* log */event_log entry
LEFT JOIN /* outcomes */event_log_outcome kept ON kept.record_id = entry./* record_id */record_id
WHERE /* row_range */(1 = 1) AND /* past */(1 = 1)
ORDER BY 1;

-- take_away: deletes rows that were found old and still are what they were
DELETE FROM /* log */event_log entry
WHERE /* row_range */(1 = 1)
  AND entry./* record_id */record_id IN
      (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed)
  AND entry./* status */status IN (:status_1, :status_2, :status_3, :status_4, :status_5);

-- forget_rows: deletes what was recorded about rows that are gone, and nothing about those that are there
DELETE FROM /* outcomes */event_log_outcome kept
WHERE kept.record_id IN (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed)
  AND NOT EXISTS (SELECT 1 FROM /* log */event_log entry
                  WHERE entry./* record_id */record_id = kept.record_id AND /* each_half */(1 = 1));

-- forget_orphans: deletes old records about rows that were deleted when they were published
DELETE FROM /* outcomes */event_log_outcome kept
WHERE kept.finished_at < TO_TIMESTAMP(:settled, 'YYYY-MM-DD HH24:MI:SS.FF6')
  AND kept.status IN (:status_1, :status_2, :status_3, :status_4, :status_5)
  AND NOT EXISTS (SELECT 1 FROM /* log */event_log entry
                  WHERE entry./* record_id */record_id = kept.record_id);
