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

-- acting_references: a row for each pair of columns of every foreign key that deletes or changes rows of its own accord
SELECT held.constraint_name AS number, NULLIF(held.table_schema, DATABASE()) AS own_schema, held.table_name AS own_table,
  held.column_name AS own_column, NULLIF(held.referenced_table_schema, DATABASE()) AS other_schema,
  held.referenced_table_name AS other_table, held.referenced_column_name AS other_column,
  ruled.delete_rule AS on_delete, ruled.update_rule AS on_update
FROM information_schema.referential_constraints AS ruled
JOIN information_schema.key_column_usage AS held
  ON held.constraint_schema = ruled.constraint_schema AND held.constraint_name = ruled.constraint_name
  AND held.table_name = ruled.table_name
WHERE ruled.delete_rule IN ('CASCADE', 'SET NULL', 'SET DEFAULT') OR ruled.update_rule IN ('CASCADE', 'SET NULL', 'SET DEFAULT');

-- table_stamp: changes whenever a table with our triggers does, or one of them, or what refers to it
SELECT part, place, name, told FROM (
  SELECT 'column' AS part, CONCAT(c.table_schema, '.', c.table_name) AS place, c.column_name AS name,
         CONCAT_WS(' ', c.ordinal_position, c.column_type, c.is_nullable, c.collation_name, c.extra) AS told
  FROM information_schema.columns AS c
  JOIN (SELECT DISTINCT event_object_schema AS s, event_object_table AS t FROM information_schema.triggers
        WHERE LOCATE('DO ''eventlog ', action_statement) > 0) AS ours ON ours.s = c.table_schema AND ours.t = c.table_name
  UNION ALL
  SELECT 'trigger', CONCAT(event_object_schema, '.', event_object_table), trigger_name, SHA2(action_statement, 256)
  FROM information_schema.triggers WHERE LOCATE('DO ''eventlog ', action_statement) > 0
  UNION ALL
  SELECT 'key', CONCAT(k.table_schema, '.', k.table_name), k.column_name,
         CONCAT_WS(' ', k.constraint_name, k.ordinal_position, k.referenced_table_name)
  FROM information_schema.key_column_usage AS k
  JOIN (SELECT DISTINCT event_object_schema AS s, event_object_table AS t FROM information_schema.triggers
        WHERE LOCATE('DO ''eventlog ', action_statement) > 0) AS ours
    ON ours.s = k.table_schema AND ours.t IN (k.table_name, k.referenced_table_name)
) AS stamped ORDER BY part, place, name, told;

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

-- loose_columns: the columns of a table in which texts that differ are equal, by what, and whether only blanks at their end
-- make no difference; a CHAR never has such blanks
SELECT column_name, collation_name, RIGHT(collation_name, 4) = '_bin'
FROM information_schema.columns
WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :table AND collation_name IS NOT NULL
  AND (data_type = 'char' OR (RIGHT(collation_name, 10) <> '_nopad_bin' AND collation_name <> 'utf8mb4_0900_bin'));

-- watermark_schemas: the schemas that have watermarks of mirrors; NULL stands for the connection's own
SELECT NULLIF(table_schema, DATABASE()) FROM information_schema.tables WHERE table_name = 'eventlog_applied';
