-- What `eventlog check` asks. A finding is a row of three texts: level (warning or failure), what was found, what mends it.
-- An attempt touches no row; it fails where the connected user lacks the right.

-- make_index: what a DBA runs where polling would read all rows; writers go on meanwhile
CREATE INDEX /* index */event_log_new ON /* log */event_log (/* status */status, /* record_id */record_id);

-- attempt_read: reads every column of the log
SELECT /* record_id */record_id, /* status */status, /* event_type */event_type, /* event_time */event_time,
       /* perpetrator */perpetrator, /* table_name */table_name, /* table_key */table_key, /* column_name */column_name,
       /* old_value */old_value, /* new_value */new_value
FROM /* log */event_log WHERE 1 = 0;

-- attempt_mark: gives rows their status
UPDATE /* log */event_log SET /* status */status = /* status */status WHERE 1 = 0;

-- attempt_delete: removes rows
DELETE FROM /* log */event_log WHERE 1 = 0;

-- attempt_outcome: writes the books about rows
INSERT INTO /* outcomes */event_log_outcome (record_id, status) SELECT record_id, status FROM /* outcomes */event_log_outcome WHERE 1 = 0;
UPDATE /* outcomes */event_log_outcome SET note = note WHERE 1 = 0;

-- attempt_mark_write: writes what survives a crash
INSERT INTO /* marks */event_log_mark (name, value) SELECT name, value FROM /* marks */event_log_mark WHERE 1 = 0;
UPDATE /* marks */event_log_mark SET value = value WHERE 1 = 0;
DELETE FROM /* marks */event_log_mark WHERE 1 = 0;

-- attempt_registry: reads what is tracked, and by which triggers
SELECT COUNT(*) FROM /* tracked */event_log_tracked WHERE 1 = 0;
SELECT COUNT(*) FROM /* triggers */event_log_trigger WHERE 1 = 0;
SELECT COUNT(*) FROM /* relations */event_log_relation WHERE 1 = 0;
SELECT COUNT(*) FROM /* history */event_log_schema WHERE 1 = 0;

-- attempt_seen: writes what tables look like
INSERT INTO /* seen */event_log_seen (table_name, table_version, seen_at)
SELECT table_name, table_version, seen_at FROM /* seen */event_log_seen WHERE 1 = 0;

-- attempt_table: reads every column of a captured table that is not left out
SELECT /* columns */idu FROM /* target */usr WHERE 1 = 0;

-- only_waiting: condition: rows that nobody has published
/* status */status = 'N';

-- odd_numbers: how many rows have no record_id, one that is not positive, or one that another row has before them
SELECT COUNT(*) - COUNT(/* record_id */record_id), COUNT(CASE WHEN /* record_id */record_id <= 0 THEN 1 END),
       COUNT(/* record_id */record_id) - COUNT(DISTINCT /* record_id */record_id)
FROM /* log */event_log WHERE /* among */(1 = 1);

-- times_beyond: the times of the last rows that have a higher number
SELECT /* event_time */event_time FROM /* log */event_log WHERE /* record_id */record_id > :beyond
ORDER BY /* record_id */record_id DESC LIMIT :limit;
