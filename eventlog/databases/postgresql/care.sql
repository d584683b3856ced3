-- Old rows are taken away in stretches of the table itself, for an adopted log may have no index of them: `ctid` says in
-- which page a row stands, and PostgreSQL 14 and later read just these pages.

-- cutoff: the time before which rows are old, by the clock of the log and in UTC
SELECT CAST(CAST(/* local */CURRENT_TIMESTAMP AS timestamp) - CAST(:age AS double precision) * INTERVAL '1 second'
            AS text),
       CAST(CAST(/* clock */CURRENT_TIMESTAMP AS timestamp) - CAST(:age AS double precision) * INTERVAL '1 second'
            AS text);

-- stretch_begin: where the first stretch of the log begins
SELECT '(0,0)';

-- stretch_end: where the stretch after a place ends, or NULL when there is none; of partitions the longest counts
SELECT CASE WHEN begin < pages THEN '(' || begin + greatest(CAST(:many AS bigint) / 64, 1) || ',0)' END
FROM (SELECT CAST(split_part(trim(LEADING '(' FROM CAST(:after AS text)), ',', 1) AS bigint) AS begin,
             (SELECT greatest(pg_relation_size(CAST(CAST(:log AS text) AS regclass)), max(pg_relation_size(relid)))
                     / CAST(current_setting('block_size') AS bigint)
              FROM pg_partition_tree(CAST(CAST(:log AS text) AS regclass))) AS pages) AS place;

-- in_stretch: condition: the rows of a stretch
(entry.ctid >= CAST(:after AS tid) AND entry.ctid < CAST(:until AS tid));

-- in_past: condition: rows that ended long ago; those without a time go by when they were settled
(entry./* status */status IN (:letter_1, :letter_2, :letter_3, :letter_4, :letter_5)
 AND (:any_table = 1 OR lower(entry./* table_name */table_name) = lower(:named))
 AND coalesce(entry./* event_time */event_time, kept.settled_at)
     < CAST(CASE WHEN entry./* event_time */event_time IS NULL THEN :settled ELSE :cutoff END AS timestamp));

-- take_away: deletes rows that were found old and still are what they were
DELETE FROM /* log */event_log AS entry
WHERE /* stretch */(1 = 1)
  AND entry./* record_id */record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]))
  AND entry./* status */status IN (:letter_1, :letter_2, :letter_3, :letter_4, :letter_5);

-- forget_rows: deletes what was recorded about rows that are gone, and nothing about those that are there. NOT EXISTS
-- would read the whole log for each stretch.
DELETE FROM /* outcomes */event_log_outcome AS kept
WHERE kept.record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]))
  AND kept.record_id NOT IN
      (SELECT entry./* record_id */record_id FROM /* log */event_log AS entry
       WHERE entry./* record_id */record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]))
         AND /* each_half */(1 = 1));

-- forget_orphans: deletes old records about rows that were deleted when they were published
DELETE FROM /* outcomes */event_log_outcome AS kept
WHERE kept.settled_at < CAST(:settled AS timestamp)
  AND kept.status IN (:letter_1, :letter_2, :letter_3, :letter_4, :letter_5)
  AND NOT EXISTS (SELECT 1 FROM /* log */event_log AS entry
                  WHERE entry./* record_id */record_id = kept.record_id);
