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

-- early_columns: what ON UPDATE gives a new value, and what is computed from others, in a table that has an ON UPDATE. MariaDB
-- shows both to triggers also where it finds then that nothing else changed, and writes no row
SELECT column_name AS name FROM information_schema.columns
WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :table
  AND (extra LIKE '%on update%' OR extra LIKE '% GENERATED%')
  AND EXISTS (SELECT 1 FROM information_schema.columns AS other
              WHERE other.table_schema = COALESCE(:schema, DATABASE()) AND other.table_name = :table AND other.extra LIKE '%on update%');

-- table_text: the table as it was made. A catalog that names periods is MariaDB's from 11.4 on
SHOW CREATE TABLE /* target */usr;

-- column_collations: how a table's columns compare texts
SELECT column_name AS name, character_set_name AS charset, collation_name AS collation
FROM information_schema.columns
WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :table AND collation_name IS NOT NULL;

-- home_schema: the database of a table that is named without one
DATABASE();

-- kept_schema: how the registry keeps the database of a table: nothing for the log's own, for a dump may be restored under
-- another name, beside the original too
IF(CAST(/* schema */'app' AS BINARY) = CAST(/* log_schema */'app' AS BINARY), '', /* schema */'app');

-- schema_of_class: the database of a class as it is named: none for the connection's own
NULLIF(IF(schema_name = '', /* log_schema */'app', schema_name), DATABASE());

-- definer: the account with whose rights a trigger runs that is made now
CURRENT_USER();

-- log_owner: the account that made the triggers, and whether that is the connected one
SELECT definer, CAST(definer AS BINARY) = CAST(CURRENT_USER() AS BINARY) FROM /* triggers */event_log_trigger
WHERE definer IS NOT NULL ORDER BY CAST(definer AS BINARY) = CAST(CURRENT_USER() AS BINARY) LIMIT 1;

-- fingerprint: what changes when somebody changes a trigger
(SELECT SHA2(action_statement, 256) FROM information_schema.triggers
 WHERE CAST(trigger_schema AS BINARY) = CAST(/* schema */'app' AS BINARY)
   AND CAST(trigger_name AS BINARY) = CAST(/* name */'event_log_usr_insert' AS BINARY));

-- standing_triggers: the triggers of the registry as the catalog has them. One is ours because the registry names it, and it
-- runs with the rights of whom the registry says made it; or its text does, and a dump was restored by another account.
SELECT entered.tracked AS tracked, entered.name AS entered, existing.trigger_name AS trigger_name,
  NULLIF(existing.trigger_schema, DATABASE()) AS table_schema, existing.event_object_table AS table_name, NULL AS relation,
  existing.action_statement AS source, 'O' AS fires,
  COALESCE(CAST(entered.fingerprint AS BINARY) = CAST(SHA2(existing.action_statement, 256) AS BINARY)
    AND CAST(existing.definer AS BINARY) = CAST(entered.definer AS BINARY), 0) AS unchanged
FROM /* triggers */event_log_trigger AS entered
JOIN /* tracked */event_log_tracked AS class ON class.id = entered.tracked
JOIN information_schema.triggers AS existing
  ON CAST(existing.trigger_schema AS BINARY) = CAST(IF(class.schema_name = '', /* log_schema */'app', class.schema_name) AS BINARY)
  AND CAST(existing.trigger_name AS BINARY) = CAST(entered.name AS BINARY)
  AND (CAST(existing.definer AS BINARY) = CAST(entered.definer AS BINARY)
    OR CAST(entered.fingerprint AS BINARY) = CAST(SHA2(existing.action_statement, 256) AS BINARY))
ORDER BY existing.trigger_schema, existing.trigger_name;

-- taken_triggers: a trigger that is called like ours, of an account that is neither the connected one nor the one that the
-- registry names, and of another text than ours
SELECT existing.event_object_table, existing.definer FROM information_schema.triggers AS existing
WHERE CAST(existing.trigger_schema AS BINARY) = CAST(COALESCE(:schema, DATABASE()) AS BINARY)
  AND CAST(existing.trigger_name AS BINARY) = CAST(:name AS BINARY)
  AND CAST(existing.definer AS BINARY) <> CAST(CURRENT_USER() AS BINARY)
  AND NOT EXISTS (
    SELECT 1 FROM /* triggers */event_log_trigger AS entered JOIN /* tracked */event_log_tracked AS class ON class.id = entered.tracked
    WHERE CAST(IF(class.schema_name = '', /* log_schema */'app', class.schema_name) AS BINARY) = CAST(existing.trigger_schema AS BINARY)
      AND CAST(entered.name AS BINARY) = CAST(existing.trigger_name AS BINARY)
      AND (CAST(entered.definer AS BINARY) = CAST(existing.definer AS BINARY)
        OR CAST(entered.fingerprint AS BINARY) = CAST(SHA2(existing.action_statement, 256) AS BINARY)));

-- similar_triggers: triggers that look like ours: they are called so, and write to the log; one that names it without its
-- database writes to the one of its own
SELECT trigger_name AS trigger_name, NULLIF(trigger_schema, DATABASE()) AS table_schema, event_object_table AS table_name
FROM information_schema.triggers
WHERE LEFT(trigger_name, CHAR_LENGTH(:prefix)) = :prefix AND LOCATE(:writes, action_statement) > 0
  AND (trigger_schema = DATABASE() OR LOCATE('.', :writes) > 0)
ORDER BY trigger_schema, trigger_name LIMIT :most;

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
  JOIN /* relations */event_log_relation AS ours
    ON CAST(IF(ours.schema_name = '', /* log_schema */'app', ours.schema_name) AS BINARY) = CAST(c.table_schema AS BINARY)
    AND CAST(ours.table_name AS BINARY) = CAST(c.table_name AS BINARY)
  UNION ALL
  SELECT 'trigger', CONCAT(event_object_schema, '.', event_object_table), trigger_name, SHA2(action_statement, 256)
  FROM information_schema.triggers
  JOIN /* triggers */event_log_trigger AS entered ON CAST(entered.name AS BINARY) = CAST(trigger_name AS BINARY)
  JOIN /* tracked */event_log_tracked AS class
    ON class.id = entered.tracked
    AND CAST(IF(class.schema_name = '', /* log_schema */'app', class.schema_name) AS BINARY) = CAST(trigger_schema AS BINARY)
  UNION ALL
  SELECT 'key', CONCAT(k.table_schema, '.', k.table_name), k.column_name,
         CONCAT_WS(' ', k.constraint_name, k.ordinal_position, k.referenced_table_name)
  FROM information_schema.key_column_usage AS k
  JOIN /* relations */event_log_relation AS ours
    ON CAST(IF(ours.schema_name = '', /* log_schema */'app', ours.schema_name) AS BINARY) = CAST(k.table_schema AS BINARY)
    AND CAST(ours.table_name AS BINARY) IN (CAST(k.table_name AS BINARY), CAST(k.referenced_table_name AS BINARY))
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
-- make no difference; a CHAR never has such blanks; and how the server compares a text as the column does
SELECT column_name, collation_name, RIGHT(collation_name, 4) = '_bin',
  CONCAT('CONVERT(? USING ', character_set_name, ') COLLATE ', collation_name)
FROM information_schema.columns
WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :table AND collation_name IS NOT NULL
  AND (data_type = 'char' OR (RIGHT(collation_name, 10) <> '_nopad_bin' AND collation_name <> 'utf8mb4_0900_bin'));

-- watermark_schemas: the schemas that have watermarks of mirrors; NULL stands for the connection's own
SELECT NULLIF(table_schema, DATABASE()) FROM information_schema.tables WHERE table_name = 'eventlog_applied';
