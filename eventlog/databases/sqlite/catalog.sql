-- What the database's own catalog tells of tables and triggers.

-- declared_types: the types of a table's columns in the words of whoever made it; but a whole number of SQLite has 64 bits
-- and a real one double precision, whatever a column calls them
SELECT name, CASE
    WHEN lower(replace(type, ' ', '')) = 'tinyint(1)' THEN type
    WHEN lower(rtrim(substr(type, 1, instr(type || '(', '(') - 1)))
        IN ('int', 'integer', 'tinyint', 'smallint', 'mediumint', 'int2', 'int4') THEN 'BIGINT'
    WHEN lower(type) IN ('real', 'float4') THEN 'DOUBLE PRECISION'
    ELSE type END AS type
FROM pragma_table_xinfo(:table) WHERE type <> '';

-- fingerprint: the text of a trigger: SQLite hashes nothing
(SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = /* name */'event_log_usr_insert');

-- schema_of_class: none, for tables have none
NULL;

-- standing_triggers: the triggers of the registry as the catalog has them
SELECT entered.tracked AS tracked, entered.name AS entered, existing.name AS trigger_name, NULL AS table_schema,
  existing.tbl_name AS table_name, NULL AS relation, existing.sql AS source, 'O' AS fires,
  entered.fingerprint IS existing.sql AS unchanged
FROM /* triggers */event_log_trigger AS entered
JOIN sqlite_master AS existing ON existing.type = 'trigger' AND existing.name = entered.name
ORDER BY existing.name;

-- similar_triggers: triggers that look like ours: they are called so, and write to the log
SELECT name AS trigger_name, NULL AS table_schema, tbl_name AS table_name FROM sqlite_master
WHERE type = 'trigger' AND substr(name, 1, length(:prefix)) = :prefix AND instr(sql, :writes) > 0
ORDER BY name LIMIT :most;

-- instead_of_triggers: how many triggers, not ours, do the writing of a view; the schema is of no account
SELECT COUNT(*) FROM sqlite_master WHERE type = 'trigger' AND tbl_name = :table
AND name NOT IN (SELECT name FROM /* triggers */event_log_trigger) AND :schema IS NULL;

-- primary_keys: the columns of every table's key in their order; SQLAlchemy would read through all of sqlite_master for each
SELECT t.name AS table_name, p.name AS column_name
FROM sqlite_master AS t JOIN pragma_table_info(t.name, 'main') AS p
WHERE t.type = 'table' AND p.pk > 0 ORDER BY t.name, p.pk;

-- foreign_keys: every table's foreign keys as they were declared, a row for each column; no referred column means the key
SELECT t.name AS table_name, f.id, f."table" AS referred_table, f."from" AS column_name, f."to" AS referred_column
FROM sqlite_master AS t JOIN pragma_foreign_key_list(t.name, 'main') AS f
WHERE t.type = 'table' ORDER BY t.name, f.id DESC, f.seq;

-- table_stamp: changes with every statement that changes a schema
SELECT schema_version FROM pragma_schema_version;

-- unique_indexes: the columns of a table's unique indexes that hold every row, also of those that SQLite made for a UNIQUE;
-- an expression has no name
SELECT i.name AS index_name, c.name AS column_name
FROM pragma_index_list(:table) AS i JOIN pragma_index_info(i.name) AS c
WHERE i."unique" = 1 AND i.partial = 0 ORDER BY i.name, c.seqno;

-- loose_columns: the columns of a table's unique indexes in which texts that differ are equal, by what, and whether only
-- blanks at their end make no difference; and how a text is compared as the column does; the schema is of no account
SELECT c.name, c.coll, c.coll = 'RTRIM', CASE WHEN c.coll IN ('NOCASE', 'RTRIM') THEN '? COLLATE ' || c.coll END
FROM pragma_index_list(:table) AS i JOIN pragma_index_xinfo(i.name) AS c
WHERE i."unique" = 1 AND c."key" = 1 AND c.name IS NOT NULL AND c.coll <> 'BINARY' AND (:schema IS NULL OR :schema <> '');

-- watermark_schemas: one without a name where there are watermarks of mirrors
SELECT NULL FROM sqlite_master WHERE type = 'table' AND name = 'eventlog_applied';
