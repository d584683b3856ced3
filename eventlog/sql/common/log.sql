-- The log's everyday: reading what waits, marking what became of it. Every mark and delete repeats status = 'N',
-- which keeps it off rows that somebody else changed meanwhile.
-- Lists of record_ids come as JSON, '[1,2,3]': one parameter whatever their number.

-- among_all: condition: every row
(1 = 1);

-- each_half: condition: every row, where one index leads to all of them by their numbers
(1 = 1);

-- processed: condition: rows that do not wait, where an index has these alone
(1 = 1);

-- among_beyond: condition: rows above those that were seen
(waiting./* record_id */record_id > :beyond);

-- among_due: condition: rows whose time has come; rows without a readable time are for the rules to judge
(waiting./* event_time */event_time IS NULL
 OR waiting./* event_time */event_time <= /* local */CURRENT_TIMESTAMP);

-- among_due_unparked: condition: those of them that no output has parked
(NOT EXISTS (SELECT 1 FROM /* parked */event_log_parked kept WHERE kept.record_id = waiting./* record_id */record_id)
 AND (waiting./* event_time */event_time IS NULL
      OR waiting./* event_time */event_time <= /* local */CURRENT_TIMESTAMP));

-- order_by_number: order: as the rows were numbered
waiting./* record_id */record_id;

-- order_by_time: order: as the events take effect
waiting./* event_time */event_time NULLS FIRST, waiting./* record_id */record_id;

-- clock_now: the clock, in UTC
SELECT /* clock */CURRENT_TIMESTAMP;

-- mark_run: gives a status to the waiting rows of a run of numbers without gaps
UPDATE /* log */event_log SET /* status */status = :status
WHERE /* record_id */record_id BETWEEN :first AND :last AND /* status */status = 'N';

-- delete_run: removes the waiting rows of a run of numbers without gaps
DELETE FROM /* log */event_log
WHERE /* record_id */record_id BETWEEN :first AND :last AND /* status */status = 'N';

-- mark_read: what a mark holds
SELECT value FROM /* marks */event_log_mark WHERE name = :name;

-- mark_write: makes or replaces a mark
INSERT INTO /* marks */event_log_mark (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- mark_lock: keeps others from changing a mark before the transaction ends
UPDATE /* marks */event_log_mark SET value = value WHERE name = :name;

-- mark_clear: takes a mark away
DELETE FROM /* marks */event_log_mark WHERE name = :name;

-- kept_any: condition: whatever is recorded of the row
(1 = 1);

-- count_part: how many of the waiting rows are of one kind
SELECT COUNT(*) FROM /* log */event_log waiting
WHERE waiting./* status */status = 'N'
  AND /* among */(1 = 1) AND /* kept */(1 = 1);

-- oldest_waiting: the rows above a number that wait longest, of all or of one kind, and their objects
SELECT waiting./* record_id */record_id, CAST(waiting./* event_time */event_time AS text),
       waiting./* table_name */table_name, waiting./* table_key */table_key
FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N'
  AND waiting./* record_id */record_id > :beyond
  AND /* among */(1 = 1) AND /* kept */(1 = 1)
ORDER BY waiting./* record_id */record_id LIMIT :limit;

-- transaction_written: column: the transaction that wrote the row, as the row itself says it; it has no time
, waiting./* transaction_number */eventlog_transaction, NULL;

-- transaction_captured: column: the transaction of a row that a stream gave, and where the stream had the row
, waiting./* transaction_number */eventlog_transaction, waiting./* origin */eventlog_origin;

-- context_written: column: who the application said is behind the row
, waiting./* context_column */eventlog_context;

-- transaction_ends: the last waiting row of each transaction that has rows from :first on, of those that begin there first
SELECT waiting./* transaction_number */eventlog_transaction, MAX(waiting./* record_id */record_id)
FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND waiting./* record_id */record_id >= :first
GROUP BY waiting./* transaction_number */eventlog_transaction
ORDER BY MIN(waiting./* record_id */record_id)
LIMIT :most;
