-- What the database's own catalog tells of tables and triggers.

-- declared_types: whole numbers without the display widths that mean nothing; texts without character set and collation,
-- which SQLAlchemy adds where the server tells them, and servers differ in when they do; types that it may not know
SELECT column_name AS name,
       CASE WHEN data_type IN ('smallint', 'mediumint', 'int', 'bigint')
            THEN CONCAT(IF(data_type = 'int', 'INTEGER', UPPER(data_type)),
                        IF(INSTR(column_type, 'unsigned'), ' UNSIGNED', ''))
            WHEN data_type IN ('enum', 'set') THEN INSERT(column_type, 1, CHAR_LENGTH(data_type), UPPER(data_type))
            ELSE UPPER(column_type) END AS type
FROM information_schema.columns
WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :table
  AND data_type IN ('smallint', 'mediumint', 'int', 'bigint', 'char', 'varchar', 'tinytext', 'text', 'mediumtext', 'longtext',
                    'enum', 'set', 'uuid', 'inet4', 'inet6', 'vector', 'geometry', 'point', 'linestring', 'polygon',
                    'multipoint', 'multilinestring', 'multipolygon', 'geometrycollection', 'geomcollection');

-- column_collations: how a table's columns compare texts
SELECT column_name AS name, character_set_name AS charset, collation_name AS collation
FROM information_schema.columns
WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :table AND collation_name IS NOT NULL;

-- our_triggers: every trigger that bears our marker, with its text; of other databases only those that write to a log by
-- its full name, for a bare name means the log beside the table
SELECT trigger_name, table_schema, table_name, marker, source, 1 AS enabled
FROM (SELECT trigger_name AS trigger_name, NULLIF(trigger_schema, DATABASE()) AS table_schema,
             event_object_table AS table_name,
             COALESCE(CONVERT(FROM_BASE64(SUBSTRING_INDEX(SUBSTRING(action_statement,
               LOCATE('DO ''eventlog ', action_statement) + 13), '''', 1)) USING utf8mb4), '') AS marker,
             action_statement AS source
      FROM information_schema.triggers
      WHERE LOCATE('DO ''eventlog ', action_statement) > 0) AS marked
WHERE table_schema IS NULL OR marker REGEXP '"log":"[^"]*[.]'
ORDER BY table_schema, trigger_name;

-- trigger_text: one trigger as it was sent; MySQL tells a name with a ` in it as another one above
SHOW CREATE TRIGGER /* trigger */event_log_usr_insert;

-- instead_of_triggers: there are none on views, whatever table and schema they have
SELECT 0 FROM DUAL WHERE :table <> :schema OR 1 = 1;

-- sees_triggers: whether the connected user would be told of a table's triggers; what it may as a member of a role does not count.
-- QUOTE, because MySQL writes constants with quotes anew, in a way that it does not read in every mode.
SELECT COUNT(*) FROM (
    SELECT grantee FROM information_schema.user_privileges WHERE privilege_type = 'TRIGGER'
    UNION ALL
    SELECT grantee FROM information_schema.schema_privileges
    WHERE privilege_type = 'TRIGGER' AND COALESCE(:schema, DATABASE()) LIKE table_schema
    UNION ALL
    SELECT grantee FROM information_schema.table_privileges
    WHERE privilege_type = 'TRIGGER' AND table_schema = COALESCE(:schema, DATABASE()) AND table_name = :table
) AS given
WHERE grantee = CONCAT(QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', 1)), '@', QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)));
