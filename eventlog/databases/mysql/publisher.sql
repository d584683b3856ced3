-- One publisher a log, and what it must know between two turns: who holds the lock, and which rows wait.

-- anything_waiting: finds one row that could be read now, from the index of waiting rows where there is one
SELECT 1 FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N' AND /* among */(1 = 1)
LIMIT 1;

-- late_numbers: numbers of rows in these gaps that no output has parked. Ranges are found by constants only: joined with a
-- list of gaps, the index would be read as a whole for each of them.
SELECT waiting./* record_id */record_id FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N'
  AND (waiting./* record_id */record_id BETWEEN :from_0 AND :to_0
       OR waiting./* record_id */record_id BETWEEN :from_1 AND :to_1
       OR waiting./* record_id */record_id BETWEEN :from_2 AND :to_2
       OR waiting./* record_id */record_id BETWEEN :from_3 AND :to_3
       OR waiting./* record_id */record_id BETWEEN :from_4 AND :to_4
       OR waiting./* record_id */record_id BETWEEN :from_5 AND :to_5
       OR waiting./* record_id */record_id BETWEEN :from_6 AND :to_6
       OR waiting./* record_id */record_id BETWEEN :from_7 AND :to_7
       OR waiting./* record_id */record_id BETWEEN :from_8 AND :to_8
       OR waiting./* record_id */record_id BETWEEN :from_9 AND :to_9
       OR waiting./* record_id */record_id BETWEEN :from_10 AND :to_10
       OR waiting./* record_id */record_id BETWEEN :from_11 AND :to_11
       OR waiting./* record_id */record_id BETWEEN :from_12 AND :to_12
       OR waiting./* record_id */record_id BETWEEN :from_13 AND :to_13
       OR waiting./* record_id */record_id BETWEEN :from_14 AND :to_14
       OR waiting./* record_id */record_id BETWEEN :from_15 AND :to_15
       OR waiting./* record_id */record_id BETWEEN :from_16 AND :to_16
       OR waiting./* record_id */record_id BETWEEN :from_17 AND :to_17
       OR waiting./* record_id */record_id BETWEEN :from_18 AND :to_18
       OR waiting./* record_id */record_id BETWEEN :from_19 AND :to_19
       OR waiting./* record_id */record_id BETWEEN :from_20 AND :to_20
       OR waiting./* record_id */record_id BETWEEN :from_21 AND :to_21
       OR waiting./* record_id */record_id BETWEEN :from_22 AND :to_22
       OR waiting./* record_id */record_id BETWEEN :from_23 AND :to_23
       OR waiting./* record_id */record_id BETWEEN :from_24 AND :to_24
       OR waiting./* record_id */record_id BETWEEN :from_25 AND :to_25
       OR waiting./* record_id */record_id BETWEEN :from_26 AND :to_26
       OR waiting./* record_id */record_id BETWEEN :from_27 AND :to_27
       OR waiting./* record_id */record_id BETWEEN :from_28 AND :to_28
       OR waiting./* record_id */record_id BETWEEN :from_29 AND :to_29
       OR waiting./* record_id */record_id BETWEEN :from_30 AND :to_30
       OR waiting./* record_id */record_id BETWEEN :from_31 AND :to_31)
  AND NOT EXISTS (SELECT 1 FROM /* parked */event_log_parked AS kept
                  WHERE kept.record_id = waiting./* record_id */record_id)
ORDER BY waiting./* record_id */record_id LIMIT :limit;

-- still_waiting: which of these rows wait, held or not
SELECT tried./* record_id */record_id
FROM /* log */event_log AS tried
WHERE tried./* record_id */record_id IN
      (SELECT listed.id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed)
  AND tried./* status */status = 'N' AND CAST(tried./* status */status AS BINARY) = 'N';

-- lock_mark: makes or replaces a mark if the lock is still ours; nobody else takes it before the commit
INSERT INTO /* marks */event_log_mark (name, value)
SELECT :name, :value FROM /* marks */event_log_mark AS own
WHERE own.name = 'publisher' AND own.value LIKE CONCAT('% ', :token) LOCK IN SHARE MODE
ON DUPLICATE KEY UPDATE value = :value;

-- lock_read: the mark of who holds the lock, if there is one, and the database's clock
SELECT (SELECT value FROM /* marks */event_log_mark WHERE name = 'publisher'),
       LEFT(DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%f'), 23);

-- lock_until: expression: when a lease ends that begins now
LEFT(DATE_FORMAT(UTC_TIMESTAMP(6) + INTERVAL :lease SECOND, '%Y-%m-%dT%H:%i:%s.%f'), 23);

-- lock_grasp: keeps others from changing the mark, unless somebody does that at this moment, who is not waited for
SELECT 1 FROM /* marks */event_log_mark WHERE name = 'publisher' FOR UPDATE SKIP LOCKED;

-- lock_make: takes the lock for :lease seconds where there is no mark
INSERT IGNORE INTO /* marks */event_log_mark (name, value)
VALUES ('publisher', CONCAT(/* until */'2026-11-21T02:00:45.123', ' ', :token));

-- lock_replace: takes the lock for :lease seconds if the mark is still as it was read
UPDATE /* marks */event_log_mark
SET value = CONCAT(/* until */'2026-11-21T02:00:45.123', ' ', :token)
WHERE name = 'publisher' AND value = :former;

-- lock_keep: renews the lease if the lock is still ours; nobody else changes the mark before the commit
UPDATE /* marks */event_log_mark
SET value = CONCAT(/* until */'2026-11-21T02:00:45.123', ' ', :token)
WHERE name = 'publisher' AND value LIKE CONCAT('% ', :token);

-- lock_leave: says that nobody publishes any more
DELETE FROM /* marks */event_log_mark WHERE name = 'publisher' AND value LIKE CONCAT('% ', :token);

-- session_limits: nothing waits for a lock for ever, and no statement runs for ever; MySQL limits only those that read
SET SESSION lock_wait_timeout = /* lock_s */30, innodb_lock_wait_timeout = /* lock_s */30
/*M!, max_statement_time = /* statement_s */300.0 */ /*!80000 , max_execution_time = /* statement_ms */300000 */;

-- lease_limits: a client that is frozen or cut off holds no row for longer than two leases; MySQL has no such limit
SET @eventlog_limited = 1 /*M! , SESSION idle_transaction_timeout = /* idle_s */10 */;

-- durability: findings about a server that may lose what it has acknowledged, whatever a session asks for
SELECT 'failure', CONCAT('The server may lose what it has acknowledged: innodb_flush_log_at_trx_commit is ',
                         @@GLOBAL.innodb_flush_log_at_trx_commit, '.'), 'Set it to 1.'
FROM (SELECT 1 AS one) AS single WHERE @@GLOBAL.innodb_flush_log_at_trx_commit NOT IN (1, 3)
UNION ALL
SELECT 'warning', CONCAT('The server may lose what it has acknowledged when its machine fails: sync_binlog is ',
                         @@GLOBAL.sync_binlog, '.'), 'Set it to 1.'
FROM (SELECT 1 AS one) AS single WHERE @@GLOBAL.log_bin <> 0 AND @@GLOBAL.sync_binlog <> 1;
