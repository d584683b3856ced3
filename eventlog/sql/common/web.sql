-- Lists of the status page and of `eventlog log`, which read a bounded stretch of the log: by its numbers, or by the index of waiting rows.

-- list_low: where a stretch of so many rows before a number begins, and how many rows it has
SELECT min(n), count(*) FROM (
    SELECT entry./* record_id */record_id AS n FROM /* log */event_log AS entry
    WHERE /* among */(1 = 1) AND entry./* record_id */record_id < :before
    ORDER BY entry./* record_id */record_id DESC LIMIT :reach
) AS stretch;

-- list_log: where rows are read from
/* log */event_log;

-- list_every: condition: any row
(1 = 1);

-- list_ever: condition: rows of any time
(1 = 1);

-- list_waiting: condition: rows that wait
(entry./* status */status = 'N');

-- list_numbers: condition: a stretch of numbers
(entry./* record_id */record_id >= :low);

-- list_waiting_numbers: condition: the waiting rows of a stretch of numbers
(entry./* status */status = 'N' AND entry./* record_id */record_id >= :low);

-- count_reasons: how many rows ended with each letter and reason
SELECT status, reason, COUNT(*) FROM /* outcomes */event_log_outcome WHERE status <> 'N' GROUP BY status, reason;
