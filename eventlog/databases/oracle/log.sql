-- The log's everyday. event_time is DATE or TIMESTAMP, whoever made the log, so it is cast before it is written.
-- A parameter for a CLOB has the name of its column: a text of more than 4000 bytes is bound as one (eventlog/sql/longtext.py).
-- ROWNUM and not FETCH FIRST: it lets an index end the reading early. The index of a log that is ours has the numbers of
-- waiting rows alone, and serves who says the number in its words (`waiting_number`); a log of others has one on status.

-- session: times in one form and in UTC, text compared byte by byte, whatever the client's locale is
ALTER SESSION SET NLS_DATE_FORMAT = 'YYYY-MM-DD HH24:MI:SS'
    NLS_TIMESTAMP_FORMAT = 'YYYY-MM-DD HH24:MI:SS.FF' NLS_TIMESTAMP_TZ_FORMAT = 'YYYY-MM-DD HH24:MI:SS.FF TZH:TZM'
    NLS_NUMERIC_CHARACTERS = '.,' NLS_CALENDAR = 'GREGORIAN' NLS_COMP = BINARY NLS_SORT = BINARY TIME_ZONE = '+00:00';

-- one_moment: begins a transaction that sees one moment, and changes nothing
SET TRANSACTION READ ONLY;

-- waiting_rows: the waiting rows among those asked for, in the order asked for.
-- Values longer than :plain characters are only told by their length, and fetched by their rows' numbers where there is room.
SELECT * FROM (
    SELECT waiting./* record_id */record_id AS record_id, waiting./* event_type */event_type AS event_type,
           waiting./* table_name */table_name AS table_name, waiting./* table_key */table_key AS table_key,
           waiting./* column_name */column_name AS column_name,
           CASE WHEN LENGTH(waiting./* old_value */old_value) <= :plain THEN waiting./* old_value */old_value END AS old_value,
           CASE WHEN LENGTH(waiting./* new_value */new_value) <= :plain THEN waiting./* new_value */new_value END AS new_value,
           TO_CHAR(CAST(waiting./* event_time */event_time AS TIMESTAMP), 'YYYY-MM-DD HH24:MI:SS.FF6') AS event_time,
           waiting./* perpetrator */perpetrator AS perpetrator,
           CASE WHEN LENGTH(waiting./* old_value */old_value) > :plain THEN LENGTH(waiting./* old_value */old_value) END AS old_bytes,
           CASE WHEN LENGTH(waiting./* new_value */new_value) > :plain THEN LENGTH(waiting./* new_value */new_value) END AS new_bytes/* transaction *//* context */
    FROM /* log */event_log waiting
    WHERE waiting./* status */status = 'N' AND /* waiting_number */waiting.record_id IS NOT NULL
      AND /* among */(1 = 1)
    ORDER BY /* order */record_id
) WHERE ROWNUM <= :limit;

-- order_by_number: order: as the rows were numbered, which is that of the index of waiting rows
/* waiting_number */waiting.record_id;

-- transaction_known: column: the number of the change that committed the row, or its block where rows have none; it has no time
, waiting.ORA_ROWSCN AS source_transaction, NULL AS committed;

-- transaction_written: column: the transaction that wrote the row, as the row itself says it; rows of other
-- writers than our triggers say the number of their commit
, COALESCE(waiting./* transaction_number */eventlog_transaction, waiting.ORA_ROWSCN) AS source_transaction, NULL AS committed;

-- transaction_ends: the last waiting row of each transaction that has rows from :first on, of those that begin there first
SELECT * FROM (
    SELECT COALESCE(waiting./* transaction_number */eventlog_transaction, waiting.ORA_ROWSCN) AS source_transaction,
           MAX(waiting./* record_id */record_id) AS last_row
    FROM /* log */event_log waiting
    WHERE waiting./* status */status = 'N' AND /* waiting_number */waiting.record_id >= :first
    GROUP BY COALESCE(waiting./* transaction_number */eventlog_transaction, waiting.ORA_ROWSCN)
    ORDER BY MIN(waiting./* record_id */record_id)
) WHERE ROWNUM <= :most;

-- among_noted: condition: rows with these numbers
(waiting./* record_id */record_id IN
 (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed));

-- clock_now: the clock, in UTC
SELECT /* clock */SYSDATE FROM dual;

-- mark_rows: gives a status to rows that still wait
UPDATE /* log */event_log SET /* status */status = :status
WHERE /* record_id */record_id IN
      (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed)
  AND /* status */status = 'N';

-- delete_rows: removes rows that still wait
DELETE FROM /* log */event_log
WHERE /* record_id */record_id IN
      (SELECT listed.n FROM JSON_TABLE(:ids, '$[*]' COLUMNS (n NUMBER PATH '$')) listed)
  AND /* status */status = 'N';

-- note_outcome: records why waiting rows end as they do
BEGIN
    MERGE INTO /* outcomes */event_log_outcome kept
    USING (SELECT listed.id, listed.status, listed.reason, listed.note, listed.answers
           FROM JSON_TABLE(:records, '$[*]' COLUMNS (
                   id NUMBER PATH '$.id', status VARCHAR2(8) PATH '$.status',
                   reason VARCHAR2(64) PATH '$.reason', note CLOB PATH '$.note',
                   answers CLOB PATH '$.answers')) listed
           WHERE EXISTS (SELECT 1 FROM /* log */event_log waiting
                         WHERE waiting./* record_id */record_id = listed.id AND waiting./* status */status = 'N')) noted
    ON (kept.record_id = noted.id)
    WHEN MATCHED THEN UPDATE SET kept.status = noted.status, kept.reason = noted.reason, kept.note = noted.note,
        kept.answers = noted.answers, kept.finished_at = SYS_EXTRACT_UTC(SYSTIMESTAMP)
    WHEN NOT MATCHED THEN INSERT (record_id, status, reason, note, answers, finished_at)
        VALUES (noted.id, noted.status, noted.reason, noted.note, noted.answers, SYS_EXTRACT_UTC(SYSTIMESTAMP));
END;
/

-- mark_write: makes or replaces a mark
BEGIN
    UPDATE /* marks */event_log_mark SET value = :value WHERE name = :name;
    IF SQL%ROWCOUNT = 0 THEN
        INSERT INTO /* marks */event_log_mark (name, value) VALUES (:name, :value);
    END IF;
END;
/

-- count_by_status: how many rows carry each status
SELECT /* status */status, COUNT(*) FROM /* log */event_log GROUP BY /* status */status;

-- oldest_waiting: the rows above a number that wait longest, of all or of one kind, and their objects
SELECT * FROM (
    SELECT waiting./* record_id */record_id AS record_id,
           TO_CHAR(CAST(waiting./* event_time */event_time AS TIMESTAMP), 'YYYY-MM-DD HH24:MI:SS.FF6') AS event_time,
           waiting./* table_name */table_name AS table_name, waiting./* table_key */table_key AS table_key
    FROM /* log */event_log waiting
    WHERE waiting./* status */status = 'N' AND /* waiting_number */waiting.record_id > :beyond
      AND /* among */(1 = 1) AND /* kept */(1 = 1)
    ORDER BY /* waiting_number */waiting.record_id
) WHERE ROWNUM <= :limit;
