-- Old rows are taken away in ranges of the table in the order of `rowid`, which a log has with a key or without.

-- cutoff: the time before which rows are old, by the clock of the log and in UTC
SELECT strftime('%Y-%m-%d %H:%M:%f', /* local */CURRENT_TIMESTAMP, '-' || :age || ' seconds'),
       strftime('%Y-%m-%d %H:%M:%f', /* clock */CURRENT_TIMESTAMP, '-' || :age || ' seconds');

-- range_begin: where the first row_range of the log begins
SELECT coalesce(min(rowid), 1) - 1 FROM /* log */event_log;

-- range_end: where the row_range after a place ends, or NULL when there is none
SELECT max(place) FROM (SELECT rowid AS place FROM /* log */event_log WHERE rowid > :after ORDER BY rowid LIMIT :many);

-- in_range: condition: the rows of a row_range
(entry.rowid > :after AND entry.rowid <= :until);

-- in_past: condition: rows that ended long ago; those without a time go by when they were settled
(entry./* status */status IN (:status_1, :status_2, :status_3, :status_4, :status_5)
 AND (:any_table = 1 OR lower(entry./* table_name */table_name) = lower(:named))
 AND julianday(coalesce(entry./* event_time */event_time, kept.finished_at))
     < julianday(CASE WHEN entry./* event_time */event_time IS NULL THEN :settled ELSE :cutoff END));

-- take_away: deletes rows that were found old and still are what they were
DELETE FROM /* log */event_log AS entry
WHERE /* row_range */(1 = 1)
  AND entry./* record_id */record_id IN (SELECT value FROM json_each(:ids))
  AND entry./* status */status IN (:status_1, :status_2, :status_3, :status_4, :status_5);

-- forget_rows: deletes what was recorded about rows that are gone, and nothing about those that are there
DELETE FROM /* outcomes */event_log_outcome AS kept
WHERE kept.record_id IN (SELECT value FROM json_each(:ids))
  AND NOT EXISTS (SELECT 1 FROM /* log */event_log AS entry
                  WHERE entry./* record_id */record_id = kept.record_id AND /* each_half */(1 = 1));

-- forget_orphans: deletes old records about rows that were deleted when they were published
DELETE FROM /* outcomes */event_log_outcome AS kept
WHERE julianday(kept.finished_at) < julianday(:settled)
  AND kept.status IN (:status_1, :status_2, :status_3, :status_4, :status_5)
  AND NOT EXISTS (SELECT 1 FROM /* log */event_log AS entry
                  WHERE entry./* record_id */record_id = kept.record_id);
