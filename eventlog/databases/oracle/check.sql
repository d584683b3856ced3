-- What `eventlog check` asks. Everything in this folder runs on Oracle 18c and newer.

-- server_version: what runs
SELECT 'Oracle ' || MAX(version) FROM product_component_version;

-- server_states: findings about a server that does not write
SELECT 'failure', 'The database is a standby that only reads.', 'Connect to the primary.' FROM dual
WHERE SYS_CONTEXT('USERENV', 'DATABASE_ROLE') <> 'PRIMARY';

-- numbers: findings about sequences of which every instance of a cluster keeps numbers in hand; one instance keeps the order.
-- Programs that write to the log name it and its sequence; the sequence of an identity column is named by the table's number.
-- Only PL/SQL is told whether this is a cluster: the number of the instance is 1 on its first node too.
WITH FUNCTION is_cluster RETURN NUMBER IS
BEGIN
  RETURN CASE WHEN DBMS_UTILITY.IS_CLUSTER_DATABASE THEN 1 ELSE 0 END;
END;
SELECT CASE WHEN is_cluster = 1 THEN 'warning' ELSE 'ok' END,
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

-- unseen_states: findings about changes that fired no trigger since capture began, as far as the catalog tells: a captured
-- table was truncated, which it knows until statistics are gathered again; a partition was exchanged, truncated or moved, which
-- it does not tell apart. A partition that is new has no later DDL than the one that made it, and loses nothing. Of a partition
-- that was dropped or split nothing stays. Findings end after 30 days, for nothing else would end them after a refresh.
WITH captured AS (
    SELECT class.schema_name AS owner, entered.table_name AS name, MIN(all_objects.created) AS since
    FROM /* triggers */event_log_trigger entered
    JOIN /* tracked */event_log_tracked class ON class.id = entered.tracked
    JOIN all_objects ON all_objects.owner = class.schema_name AND all_objects.object_name = entered.name
    WHERE all_objects.object_type = 'TRIGGER'
    GROUP BY class.schema_name, entered.table_name
)
SELECT 'warning', captured.owner || '.' || captured.name || ' was truncated, about '
         || TO_CHAR(emptied.timestamp, 'YYYY-MM-DD HH24:MI') || '; the rows that went are not in the log.',
       'Delete those rows at the receivers, and let people use DELETE on captured tables.'
FROM captured
JOIN all_tab_modifications emptied ON emptied.table_owner = captured.owner AND emptied.table_name = captured.name
WHERE emptied.truncated = 'YES' AND emptied.partition_name IS NULL AND emptied.timestamp >= captured.since
UNION ALL
SELECT 'warning', 'Partitions of ' || captured.owner || '.' || captured.name
         || ' were exchanged, truncated or moved since it is captured: ' || COUNT(*) || ', the last on '
         || TO_CHAR(MAX(changed.last_ddl_time), 'YYYY-MM-DD HH24:MI')
         || '. A move loses nothing; rows that came or went otherwise are not in the log. The catalog does not show which it was.',
       'Unless it was a move: `eventlog refresh` for what came, and delete at the receivers what went.'
FROM captured
JOIN all_objects changed ON changed.owner = captured.owner AND changed.object_name = captured.name
WHERE changed.object_type IN ('TABLE PARTITION', 'TABLE SUBPARTITION')
  AND changed.last_ddl_time > changed.created AND changed.last_ddl_time > captured.since
  AND changed.last_ddl_time > SYSDATE - 30
GROUP BY captured.owner, captured.name
ORDER BY 2;

-- clock: the database's own time, in the form that event_time has
SELECT CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE) FROM dual;

-- database_zone: the zone of the clock by which SYSDATE goes, and its offset now
SELECT TO_CHAR(SYSTIMESTAMP, 'TZR'),
  ROUND((CAST(SYSTIMESTAMP AS DATE) - CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE)) * 86400) FROM dual;

-- times_beyond: the times of the last rows that have a higher number
SELECT * FROM (
    SELECT /* event_time */event_time FROM /* log */event_log WHERE /* record_id */record_id > :beyond
    ORDER BY /* record_id */record_id DESC
) WHERE ROWNUM <= :limit;
