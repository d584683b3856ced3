-- Whoever inserts a row holds a lock of the table from before its number is drawn until the end of the transaction.

-- row_range: the chosen rows of a row_range of numbers
SELECT entry./* record_id */record_id, CAST(entry./* status */status AS text), entry./* event_type */event_type,
       CAST(entry./* event_time */event_time AS text),
       entry./* perpetrator */perpetrator, entry./* table_name */table_name,
       entry./* table_key */table_key, entry./* column_name */column_name,
       entry./* old_value */old_value, entry./* new_value */new_value/* transaction *//* context */
FROM /* log */event_log AS entry
WHERE entry./* record_id */record_id BETWEEN /* first */1 AND /* last */9 AND /* each_half */(1 = 1)
  AND /* chosen */(1 = 1);

-- numbers_after: the numbers after a number, oldest first; each half is read by its index, and no more of it than is asked for
SELECT n FROM (
    (SELECT waiting./* record_id */record_id AS n FROM /* log */event_log AS waiting
     WHERE waiting./* status */status = 'N' AND waiting./* record_id */record_id > /* first */0
     ORDER BY 1 LIMIT /* limit */1000)
    UNION ALL
    (SELECT done./* record_id */record_id AS n FROM /* log */event_log AS done
     WHERE done./* status */status IS DISTINCT FROM 'N' AND done./* record_id */record_id > /* first */0
     ORDER BY 1 LIMIT /* limit */1000)
) AS halves
ORDER BY 1 LIMIT /* limit */1000;

-- chosen_since: condition: rows from a time on, as texts are compared; those whose time is written in another way are left in
(CAST(entry./* event_time */event_time AS text) COLLATE "C" >= /* time */'2026-01-01'
 OR substr(CAST(entry./* event_time */event_time AS text), 5, 1) <> '-');

-- chosen_upto: condition: rows up to a time, as texts are compared; those whose time is written in another way are left in
(CAST(entry./* event_time */event_time AS text) COLLATE "C" <= /* time */'2026-01-02'
 OR substr(CAST(entry./* event_time */event_time AS text), 5, 1) <> '-');

-- writers: the transactions that may have drawn a number and not committed their row yet; by their own numbers too, for
-- one that is prepared (PREPARE TRANSACTION) has another virtual one after a restart of the server
WITH writing AS (
    SELECT virtualtransaction FROM pg_locks
    WHERE locktype = 'relation' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND relation = CAST(/* log_text */'event_log' AS regclass) AND mode = 'RowExclusiveLock' AND granted
)
SELECT virtualtransaction FROM writing
UNION
SELECT CAST(own.transactionid AS text) FROM pg_locks AS own JOIN writing USING (virtualtransaction)
WHERE own.locktype = 'transactionid' AND own.mode = 'ExclusiveLock' AND own.granted;

-- last_drawn: the last number that was drawn from the sequence of the log; NULL where it has none, or it is not ours to see
SELECT last_value FROM pg_sequences
WHERE format('%I.%I', schemaname, sequencename) = pg_get_serial_sequence(/* log_text */'event_log', /* number_text */'record_id');
