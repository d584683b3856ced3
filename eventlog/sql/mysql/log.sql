-- The log's everyday.
-- The first comparison with 'N' finds the rows by an index, the second does not take 'n' or 'N ' for it, as most
-- collations do. event_time is read as text: a zero date has no value in Python and must not stop the batch.
-- Lists of record_ids drive a STRAIGHT_JOIN, because MariaDB 10.11 tries a list in an UPDATE's IN against every
-- waiting row, which took 105 s for 2,834 of 100,000 rows, instead of 0.04 s.

-- session: what reading needs, in several statements; zero dates are found by their keys; READ COMMITTED keeps marks from blocking writers in the gaps
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET SESSION time_zone = '+00:00', lock_wait_timeout = 30, innodb_lock_wait_timeout = 30,
    sql_mode = REPLACE(REPLACE(REPLACE(@@SESSION.sql_mode, 'PAD_CHAR_TO_FULL_LENGTH', ''), 'NO_ZERO_IN_DATE', ''),
      'NO_ZERO_DATE', '');

-- waiting_rows: the waiting rows among those asked for, in the order asked for; held rows and later attempts stay out.
-- Values longer than :plain bytes are only told by their length, and fetched by `large_values` where there is room.
SELECT waiting./* record_id */record_id, waiting./* event_type */event_type,
       waiting./* table_name */table_name, waiting./* table_key */table_key,
       waiting./* column_name */column_name,
       CASE WHEN LENGTH(waiting./* old_value */old_value) <= :plain THEN waiting./* old_value */old_value END,
       CASE WHEN LENGTH(waiting./* new_value */new_value) <= :plain THEN waiting./* new_value */new_value END,
       IF(MICROSECOND(waiting./* event_time */event_time) = 0,
          CAST(CAST(waiting./* event_time */event_time AS DATETIME) AS CHAR),
          CAST(waiting./* event_time */event_time AS CHAR)),
       waiting./* perpetrator */perpetrator,
       CASE WHEN LENGTH(waiting./* old_value */old_value) > :plain THEN LENGTH(waiting./* old_value */old_value) END,
       CASE WHEN LENGTH(waiting./* new_value */new_value) > :plain THEN LENGTH(waiting./* new_value */new_value) END/* transaction */
FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N' AND /* among */(1 = 1) AND /* except */(1 = 1)
  AND /* unread */(1 = 1)
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))
ORDER BY /* order */record_id
LIMIT :limit;

-- large_values: the values of waiting rows, whatever their length
SELECT waiting./* record_id */record_id, waiting./* old_value */old_value, waiting./* new_value */new_value
FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed
     STRAIGHT_JOIN /* log */event_log AS waiting ON waiting./* record_id */record_id = listed.id
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N';

-- among_ahead: condition: rows above those that are handed out, while no other row has appeared below or between them.
-- All in one snapshot: a row that is seen while an earlier one of its object is not would overtake it.
(waiting./* record_id */record_id > :last
 AND NOT EXISTS (SELECT 1 FROM /* log */event_log AS late
                 WHERE late./* status */status = 'N' AND CAST(late./* status */status AS BINARY) = 'N'
                   AND late./* record_id */record_id < :first
                   AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                                   WHERE kept.record_id = late./* record_id */record_id
                                     AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP)))
 AND NOT EXISTS (SELECT 1 FROM /* log */event_log AS late
                 WHERE late./* status */status = 'N' AND CAST(late./* status */status AS BINARY) = 'N'
                   AND late./* record_id */record_id IN (SELECT listed.id FROM JSON_TABLE(:missing, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed)
                   AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                                   WHERE kept.record_id = late./* record_id */record_id
                                     AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))));

-- among_noted: condition: the rows of the batch in hand
(waiting./* record_id */record_id IN
 (SELECT noted.id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS noted));

-- order_by_time: order: as the events take effect
waiting./* event_time */event_time, waiting./* record_id */record_id;

-- mark_rows: gives a status to rows that still wait
UPDATE JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed
       STRAIGHT_JOIN /* log */event_log AS waiting ON waiting./* record_id */record_id = listed.id
SET waiting./* status */status = :status
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N';

-- mark_run: gives a status to the waiting rows of a run of numbers without gaps
UPDATE /* log */event_log SET /* status */status = :status
WHERE /* record_id */record_id BETWEEN :first AND :last
  AND /* status */status = 'N' AND CAST(/* status */status AS BINARY) = 'N';

-- delete_rows: removes rows that still wait
DELETE waiting
FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed
     STRAIGHT_JOIN /* log */event_log AS waiting ON waiting./* record_id */record_id = listed.id
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N';

-- delete_run: removes the waiting rows of a run of numbers without gaps
DELETE FROM /* log */event_log
WHERE /* record_id */record_id BETWEEN :first AND :last
  AND /* status */status = 'N' AND CAST(/* status */status AS BINARY) = 'N';

-- note_outcome: records why waiting rows end as they do
INSERT INTO /* outcomes */event_log_outcome (record_id, status, reason, note, settled_at)
SELECT noted.id, noted.status, noted.reason, noted.note, /* now */CURRENT_TIMESTAMP
FROM JSON_TABLE(:records, '$[*]' COLUMNS (id BIGINT PATH '$.id', status VARCHAR(8) PATH '$.status', reason VARCHAR(64) PATH '$.reason',
                                            note LONGTEXT PATH '$.note')) AS noted
WHERE (SELECT MAX(1) FROM /* log */event_log
       WHERE /* record_id */record_id = noted.id
         AND /* status */status = 'N' AND CAST(/* status */status AS BINARY) = 'N') = 1
ON DUPLICATE KEY UPDATE
    status = noted.status, reason = noted.reason, note = noted.note, settled_at = /* now */CURRENT_TIMESTAMP,
    next_attempt = NULL;

-- note_attempt: counts an attempt of rows that go on waiting, and says from when on they are offered again
INSERT INTO /* outcomes */event_log_outcome (record_id, status, reason, note, attempts, next_attempt)
SELECT tried.id, tried.status, tried.reason, tried.note, 1,
       TIMESTAMPADD(MICROSECOND, tried.delay * 1000000, /* now */CURRENT_TIMESTAMP)
FROM JSON_TABLE(:records, '$[*]' COLUMNS (id BIGINT PATH '$.id', status VARCHAR(8) PATH '$.status', reason VARCHAR(64) PATH '$.reason',
                                            note LONGTEXT PATH '$.note', delay DOUBLE PATH '$.delay')) AS tried
WHERE (SELECT MAX(1) FROM /* log */event_log
       WHERE /* record_id */record_id = tried.id
         AND /* status */status = 'N' AND CAST(/* status */status AS BINARY) = 'N') = 1
ON DUPLICATE KEY UPDATE
    attempts = COALESCE(attempts, 0) + 1, status = tried.status, reason = tried.reason, note = tried.note,
    next_attempt = TIMESTAMPADD(MICROSECOND, tried.delay * 1000000, /* now */CURRENT_TIMESTAMP);

-- attempts_sooner: brings attempts nearer that lie further off than any may: a clock was set back since
UPDATE JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed
       STRAIGHT_JOIN /* outcomes */event_log_outcome AS kept ON kept.record_id = listed.id
SET kept.next_attempt = TIMESTAMPADD(MICROSECOND, :delay * 1000000, /* now */CURRENT_TIMESTAMP)
WHERE kept.next_attempt IS NOT NULL;

-- end_attempts: closes the record of rows that were tried before, or waited for others, and now ended well
UPDATE JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS listed
       STRAIGHT_JOIN /* outcomes */event_log_outcome AS kept ON kept.record_id = listed.id
SET kept.status = :status, kept.reason = :reason, kept.note = NULL, kept.next_attempt = NULL,
    kept.settled_at = /* now */CURRENT_TIMESTAMP
WHERE (kept.next_attempt IS NOT NULL OR kept.status = 'N');

-- mark_write: makes or replaces a mark
INSERT INTO /* marks */event_log_mark (name, value) VALUES (:name, :value)
ON DUPLICATE KEY UPDATE value = :value;

-- count_by_status: how many rows carry each letter; letters that a collation holds to be equal are counted apart
SELECT CONVERT(letter USING utf8mb4), number
FROM (SELECT CAST(/* status */status AS BINARY) AS letter, COUNT(*) AS number
      FROM /* log */event_log GROUP BY 1) AS counted;

-- count_part: how many of the waiting rows are of one kind
SELECT COUNT(*) FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N'
  AND /* among */(1 = 1) AND /* except */(1 = 1) AND /* unread */(1 = 1) AND /* kept */(1 = 1);

-- oldest_waiting: the rows above a number that wait longest, of all or of one kind, and their objects
SELECT waiting./* record_id */record_id,
       IF(MICROSECOND(waiting./* event_time */event_time) = 0,
          CAST(CAST(waiting./* event_time */event_time AS DATETIME) AS CHAR),
          CAST(waiting./* event_time */event_time AS CHAR)),
       waiting./* table_name */table_name, waiting./* table_key */table_key
FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N'
  AND waiting./* record_id */record_id > :beyond
  AND /* among */(1 = 1) AND /* except */(1 = 1) AND /* unread */(1 = 1) AND /* kept */(1 = 1)
ORDER BY waiting./* record_id */record_id LIMIT :limit;
