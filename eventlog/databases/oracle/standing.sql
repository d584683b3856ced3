-- The journal for those who look after a log: what takes a number of rows at most.

-- parked_last: the last rows between two numbers that wait for an output
SELECT * FROM (
    SELECT record_id, object, reason, attempts, due FROM /* parked */event_log_parked
    WHERE output = :output AND record_id BETWEEN :first AND :last ORDER BY record_id DESC
) WHERE ROWNUM <= :limit;

-- hold_numbers: rows between two numbers that somebody holds
SELECT * FROM (
    SELECT record_id FROM /* holds */event_log_hold
    WHERE record_id BETWEEN :first AND :last ORDER BY record_id
) WHERE ROWNUM <= :limit;

-- waiting_numbers: rows between two numbers that wait
SELECT * FROM (
    SELECT waiting./* record_id */record_id FROM /* log */event_log waiting
    WHERE waiting./* status */status = 'N' AND waiting./* record_id */record_id BETWEEN :first AND :last
    ORDER BY 1
) WHERE ROWNUM <= :limit;

-- objects_between: waiting rows between two numbers, with what names their objects
SELECT * FROM (
    SELECT waiting./* record_id */record_id, waiting./* event_type */event_type, waiting./* table_name */table_name,
           waiting./* table_key */table_key
    FROM /* log */event_log waiting
    WHERE waiting./* status */status = 'N' AND waiting./* record_id */record_id BETWEEN :first AND :last
    ORDER BY 1
) WHERE ROWNUM <= :limit;

-- requeue_numbers: processed rows between two numbers that would wait again
SELECT * FROM (
    SELECT entry./* record_id */record_id FROM /* log */event_log entry
    WHERE entry./* record_id */record_id BETWEEN :first AND :last
      AND entry./* status */status IN (:status_1, :status_2, :status_3, :status_4, :status_5)
      AND (:any_table = 1 OR LOWER(entry./* table_name */table_name) = LOWER(:named))
    ORDER BY 1
) WHERE ROWNUM <= :limit;
