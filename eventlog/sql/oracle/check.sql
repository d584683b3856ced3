-- What `eventlog check` asks. A finding is a row of three texts: level (warning or failure), what was found, what mends it.
-- An attempt touches no row; it fails where the connected user lacks the right.

-- server_version: what runs
SELECT 'Oracle ' || MAX(version) FROM product_component_version;

-- server_states: findings about a server that does not write
SELECT 'failure', 'The database is a standby that only reads.', 'Connect to the primary.' FROM dual
WHERE SYS_CONTEXT('USERENV', 'DATABASE_ROLE') <> 'PRIMARY';

-- making_triggers: no setting of the server keeps triggers from being made

-- long_transactions: who may see other sessions may do too much else

-- numbers: findings about sequences of which every instance of a cluster keeps numbers in hand; one instance keeps the order.
-- Programs that write to the log name it and its sequence; the sequence of an identity column is named by the table's number.
SELECT CASE WHEN TO_NUMBER(SYS_CONTEXT('USERENV', 'INSTANCE')) > 1 THEN 'warning' ELSE 'ok' END,
       'the sequence ' || sequence_name || ' gives each instance of a cluster ' || cache_size
       || ' numbers at once, and a later change may get a lower one there; a single instance keeps the order',
       'ALTER SEQUENCE ' || sequence_owner || '.' || sequence_name || ' ORDER; for an identity column MODIFY it with ORDER.'
FROM all_sequences
WHERE order_flag = 'N' AND cache_size > 1 AND (
    (sequence_owner = COALESCE(UPPER(:log_schema), SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')) AND (
        sequence_name = UPPER(:log_sequence) OR sequence_name IN (
            SELECT 'ISEQ$$_' || object_id FROM all_objects
            WHERE owner = COALESCE(UPPER(:log_schema), SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA'))
              AND object_name = UPPER(:log_table) AND object_type = 'TABLE')))
    OR (sequence_owner, sequence_name) IN (
        SELECT drawn.referenced_owner, drawn.referenced_name FROM all_dependencies drawn
        JOIN all_dependencies log ON log.owner = drawn.owner AND log.name = drawn.name AND log.type = drawn.type
        WHERE drawn.referenced_type = 'SEQUENCE' AND log.referenced_type = 'TABLE' AND log.referenced_name = UPPER(:log_table)
          AND log.referenced_owner = COALESCE(UPPER(:log_schema), SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA'))))
ORDER BY sequence_name;

-- owner_states: a trigger has the rights of its table's owner; nobody has tried here what policies do

-- make_index: what a DBA runs where polling would read all rows
CREATE INDEX /* index */event_log_new ON /* log */event_log (/* status */status, /* record_id */record_id);

-- attempt_read: reads every column of the log
SELECT /* record_id */record_id, /* status */status, /* event_type */event_type, /* event_time */event_time,
       /* perpetrator */perpetrator, /* table_name */table_name, /* table_key */table_key, /* column_name */column_name,
       /* old_value */old_value, /* new_value */new_value
FROM /* log */event_log WHERE 1 = 0;

-- attempt_mark: gives rows their letter
UPDATE /* log */event_log SET /* status */status = /* status */status WHERE 1 = 0;

-- attempt_delete: removes rows
DELETE FROM /* log */event_log WHERE 1 = 0;

-- attempt_outcome: writes the books about rows
INSERT INTO /* outcomes */event_log_outcome (record_id, held) SELECT record_id, held FROM /* outcomes */event_log_outcome WHERE 1 = 0;
UPDATE /* outcomes */event_log_outcome SET note = note WHERE 1 = 0;

-- attempt_mark_write: writes what survives a crash
INSERT INTO /* marks */event_log_mark (name, value) SELECT name, value FROM /* marks */event_log_mark WHERE 1 = 0;
UPDATE /* marks */event_log_mark SET value = value WHERE 1 = 0;
DELETE FROM /* marks */event_log_mark WHERE 1 = 0;

-- attempt_table: reads every column of a captured table
SELECT * FROM /* target */usr WHERE 1 = 0;
