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

-- one_moment: begins a transaction that sees one moment, and changes nothing, in several statements
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY;

-- waiting_rows: the waiting rows among those asked for, in the order asked for.
-- Values longer than :plain bytes are only told by their length, and fetched by their rows' numbers where there is room.
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
       CASE WHEN LENGTH(waiting./* new_value */new_value) > :plain THEN LENGTH(waiting./* new_value */new_value) END/* transaction *//* context */
FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N' AND /* among */(1 = 1)
ORDER BY /* order */record_id
LIMIT :limit;

-- among_noted: condition: rows with these numbers
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
INSERT INTO /* outcomes */event_log_outcome (record_id, status, reason, note, answers, finished_at)
SELECT noted.id, noted.status, noted.reason, noted.note, noted.answers, /* now */CURRENT_TIMESTAMP
FROM JSON_TABLE(:records, '$[*]' COLUMNS (id BIGINT PATH '$.id', status VARCHAR(8) PATH '$.status', reason VARCHAR(64) PATH '$.reason',
                                            note LONGTEXT PATH '$.note', answers LONGTEXT PATH '$.answers')) AS noted
WHERE (SELECT MAX(1) FROM /* log */event_log
       WHERE /* record_id */record_id = noted.id
         AND /* status */status = 'N' AND CAST(/* status */status AS BINARY) = 'N') = 1
ON DUPLICATE KEY UPDATE
    status = noted.status, reason = noted.reason, note = noted.note, answers = noted.answers,
    finished_at = /* now */CURRENT_TIMESTAMP;

-- mark_write: makes or replaces a mark
INSERT INTO /* marks */event_log_mark (name, value) VALUES (:name, :value)
ON DUPLICATE KEY UPDATE value = :value;

-- count_by_status: how many rows carry each status; statuses that a collation holds to be equal are counted apart
SELECT CONVERT(status USING utf8mb4), number
FROM (SELECT CAST(/* status */status AS BINARY) AS status, COUNT(*) AS number
      FROM /* log */event_log GROUP BY 1) AS counted;

-- count_part: how many of the waiting rows are of one kind
SELECT COUNT(*) FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N'
  AND /* among */(1 = 1) AND /* kept */(1 = 1);

-- oldest_waiting: the rows above a number that wait longest, of all or of one kind, and their objects
SELECT waiting./* record_id */record_id,
       IF(MICROSECOND(waiting./* event_time */event_time) = 0,
          CAST(CAST(waiting./* event_time */event_time AS DATETIME) AS CHAR),
          CAST(waiting./* event_time */event_time AS CHAR)),
       waiting./* table_name */table_name, waiting./* table_key */table_key
FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND CAST(waiting./* status */status AS BINARY) = 'N'
  AND waiting./* record_id */record_id > :beyond
  AND /* among */(1 = 1) AND /* kept */(1 = 1)
ORDER BY waiting./* record_id */record_id LIMIT :limit;
