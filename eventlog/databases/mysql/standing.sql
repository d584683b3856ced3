-- The journal for those who look after a log: statuses are compared as bytes, because most collations take 'n' for 'N'.

-- waiting_numbers: rows between two numbers that wait
SELECT /* record_id */record_id FROM /* log */event_log
WHERE /* status */status = 'N' AND CAST(/* status */status AS BINARY) = 'N'
  AND /* record_id */record_id BETWEEN :first AND :last
ORDER BY /* record_id */record_id LIMIT :limit;

-- requeue_numbers: processed rows between two numbers that would wait again
SELECT /* record_id */record_id FROM /* log */event_log
WHERE /* record_id */record_id BETWEEN :first AND :last
  AND CAST(/* status */status AS BINARY) IN (:status_1, :status_2, :status_3, :status_4, :status_5)
  AND (:any_table = 1 OR lower(/* table_name */table_name) = lower(:named))
ORDER BY /* record_id */record_id LIMIT :limit;

-- parked_finished: some rows that wait for an output, and in the log do not
SELECT kept.output, MIN(kept.record_id), COUNT(*) FROM /* parked */event_log_parked kept
WHERE NOT EXISTS (SELECT 1 FROM /* log */event_log entry
                  WHERE entry./* record_id */record_id = kept.record_id
                    AND entry./* status */status = 'N' AND CAST(entry./* status */status AS BINARY) = 'N')
GROUP BY kept.output ORDER BY kept.output;

-- hold_settled: held rows that do not wait in the log
SELECT MIN(kept.record_id), COUNT(*) FROM /* holds */event_log_hold kept
WHERE NOT EXISTS (SELECT 1 FROM /* log */event_log entry
                  WHERE entry./* record_id */record_id = kept.record_id
                    AND entry./* status */status = 'N' AND CAST(entry./* status */status AS BINARY) = 'N');
