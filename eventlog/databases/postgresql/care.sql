-- Old rows are taken away in ranges of the table itself, for an adopted log may have no index of them: `ctid` says in
-- which page a row stands, and PostgreSQL 14 and later read just these pages.

-- cutoff: the time before which rows are old, by the clock of the log and in UTC
SELECT CAST(CAST(/* local */CURRENT_TIMESTAMP AS timestamp) - CAST(:age AS double precision) * INTERVAL '1 second'
            AS text),
       CAST(CAST(/* clock */CURRENT_TIMESTAMP AS timestamp) - CAST(:age AS double precision) * INTERVAL '1 second'
            AS text);

-- range_begin: where the first row_range of the log begins
SELECT '(0,0)';

-- range_end: where the row_range after a place ends, or NULL when there is none; of partitions the longest counts
SELECT CASE WHEN begin < pages THEN '(' || begin + greatest(CAST(:many AS bigint) / 64, 1) || ',0)' END
FROM (SELECT CAST(split_part(trim(LEADING '(' FROM CAST(:after AS text)), ',', 1) AS bigint) AS begin,
             (SELECT greatest(pg_relation_size(CAST(CAST(:log AS text) AS regclass)), max(pg_relation_size(relid)))
                     / CAST(current_setting('block_size') AS bigint)
              FROM pg_partition_tree(CAST(CAST(:log AS text) AS regclass))) AS pages) AS place;

-- in_range: condition: the rows of a row_range
(entry.ctid >= CAST(:after AS tid) AND entry.ctid < CAST(:until AS tid));

-- in_past: condition: rows that ended long ago; those without a time go by when they were settled
(entry./* status */status IN (:status_1, :status_2, :status_3, :status_4, :status_5)
 AND (:any_table = 1 OR lower(entry./* table_name */table_name) = lower(:named))
 AND coalesce(entry./* event_time */event_time, kept.finished_at)
     < CAST(CASE WHEN entry./* event_time */event_time IS NULL THEN :settled ELSE :cutoff END AS timestamp));

-- take_away: deletes rows that were found old and still are what they were
DELETE FROM /* log */event_log AS entry
WHERE /* row_range */(1 = 1)
  AND entry./* record_id */record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]))
  AND entry./* status */status IN (:status_1, :status_2, :status_3, :status_4, :status_5);

-- forget_rows: deletes what was recorded about rows that are gone, and nothing about those that are there. NOT EXISTS
-- would read the whole log for each row_range.
DELETE FROM /* outcomes */event_log_outcome AS kept
WHERE kept.record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]))
  AND kept.record_id NOT IN
      (SELECT entry./* record_id */record_id FROM /* log */event_log AS entry
       WHERE entry./* record_id */record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]))
         AND /* each_half */(1 = 1));

-- forget_orphans: deletes old records about rows that were deleted when they were published
DELETE FROM /* outcomes */event_log_outcome AS kept
WHERE kept.finished_at < CAST(:settled AS timestamp)
  AND kept.status IN (:status_1, :status_2, :status_3, :status_4, :status_5)
  AND NOT EXISTS (SELECT 1 FROM /* log */event_log AS entry
                  WHERE entry./* record_id */record_id = kept.record_id);
