-- Letters are compared as bytes, because most collations take 'n' for 'N'. Old rows are taken away in ranges of
-- record_ids, which is the order that the table has.

-- requeue_run: lets processed rows of a run wait again
UPDATE /* log */event_log SET /* status */status = 'N'
WHERE /* record_id */record_id BETWEEN :first AND :last
  AND CAST(/* status */status AS BINARY) IN (:status_1, :status_2, :status_3, :status_4, :status_5)
  AND (:any_table = 1 OR lower(/* table_name */table_name) = lower(:named));

-- count_run: how many rows of a run would wait again
SELECT count(*) FROM /* log */event_log
WHERE /* record_id */record_id BETWEEN :first AND :last
  AND CAST(/* status */status AS BINARY) IN (:status_1, :status_2, :status_3, :status_4, :status_5)
  AND (:any_table = 1 OR lower(/* table_name */table_name) = lower(:named));

-- forget_run: clears what was recorded about rows of a run that wait again
DELETE kept FROM /* outcomes */event_log_outcome AS kept
WHERE kept.record_id BETWEEN :first AND :last
  AND kept.status IN (:status_1, :status_2, :status_3, :status_4, :status_5)
  AND EXISTS (SELECT 1 FROM /* log */event_log AS entry
              WHERE entry./* record_id */record_id = kept.record_id AND CAST(entry./* status */status AS BINARY) = 'N');

-- cutoff: the time before which rows are old, by the clock of the log and in UTC
SELECT CAST(TIMESTAMPADD(MICROSECOND, -:age * 1000000, /* local */CURRENT_TIMESTAMP) AS CHAR),
       CAST(TIMESTAMPADD(MICROSECOND, -:age * 1000000, /* clock */CURRENT_TIMESTAMP) AS CHAR);

-- range_begin: where the first row_range of the log begins
SELECT coalesce(min(/* record_id */record_id), 1) - 1 FROM /* log */event_log;

-- range_end: where the row_range after a place ends, or NULL when there is none
SELECT max(place)
FROM (SELECT /* record_id */record_id AS place FROM /* log */event_log
      WHERE /* record_id */record_id > :after ORDER BY /* record_id */record_id LIMIT :many) AS places;

-- in_past: condition: rows that ended long ago; those without a time go by when they were settled
(CAST(entry./* status */status AS BINARY) IN (:status_1, :status_2, :status_3, :status_4, :status_5)
 AND (:any_table = 1 OR lower(entry./* table_name */table_name) = lower(:named))
 AND coalesce(entry./* event_time */event_time, kept.finished_at)
     < CAST(IF(entry./* event_time */event_time IS NULL, :settled, :cutoff) AS DATETIME(6)));

-- old_rows: the rows to take away, as an archive keeps them
SELECT entry./* record_id */record_id, CAST(entry./* status */status AS CHAR), entry./* event_type */event_type,
       IF(MICROSECOND(entry./* event_time */event_time) = 0,
              CAST(CAST(entry./* event_time */event_time AS DATETIME) AS CHAR),
              CAST(entry./* event_time */event_time AS CHAR)), entry./* perpetrator */perpetrator,
       entry./* table_name */table_name, entry./* table_key */table_key,
       entry./* column_name */column_name,
       entry./* old_value */old_value, entry./* new_value */new_value,
       kept.reason, kept.note/* transaction *//* context */
FROM /* log */event_log AS entry
LEFT JOIN /* outcomes */event_log_outcome AS kept ON kept.record_id = entry./* record_id */record_id
WHERE /* row_range */(1 = 1) AND /* past */(1 = 1)
ORDER BY 1;

-- take_away: deletes rows that were found old and still are what they were
DELETE entry
FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed
     STRAIGHT_JOIN /* log */event_log AS entry ON entry./* record_id */record_id = listed.id
WHERE /* row_range */(1 = 1)
  AND CAST(entry./* status */status AS BINARY) IN (:status_1, :status_2, :status_3, :status_4, :status_5);

-- forget_rows: deletes what was recorded about rows that are gone, and nothing about those that are there
DELETE kept
FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed
     STRAIGHT_JOIN /* outcomes */event_log_outcome AS kept ON kept.record_id = listed.id
WHERE NOT EXISTS (SELECT 1 FROM /* log */event_log AS entry
                  WHERE entry./* record_id */record_id = kept.record_id AND /* each_half */(1 = 1));

-- forget_orphans: deletes old records about rows that were deleted when they were published
DELETE kept FROM /* outcomes */event_log_outcome AS kept
WHERE kept.finished_at < CAST(:settled AS DATETIME(6))
  AND kept.status IN (:status_1, :status_2, :status_3, :status_4, :status_5)
  AND NOT EXISTS (SELECT 1 FROM /* log */event_log AS entry
                  WHERE entry./* record_id */record_id = kept.record_id);
