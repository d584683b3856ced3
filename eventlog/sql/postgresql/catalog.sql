-- What the database's own catalog tells of tables and triggers.

-- made_types: columns whose type, or the type that its domain stands for, was made by somebody who is no superuser. Such a
-- type may have casts and operators of its owner's. Those of the types that come with the server cannot be replaced; their
-- numbers are below 16384.
WITH RECURSIVE chain (name, type) AS (
    SELECT attname, atttypid FROM pg_attribute
    JOIN pg_class ON pg_class.oid = attrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = :schema AND relname = :table AND attnum > 0 AND NOT attisdropped AND atttypid >= 16384
    UNION ALL
    SELECT name, typbasetype FROM chain JOIN pg_type ON pg_type.oid = type WHERE typtype = 'd'
)
SELECT name, CASE WHEN bool_or(typtype <> 'd' AND type >= 16384) THEN 'type' ELSE 'domain' END AS made
FROM chain JOIN pg_type ON pg_type.oid = type LEFT JOIN pg_roles ON pg_roles.oid = typowner
GROUP BY name HAVING bool_or(type >= 16384 AND rolsuper IS NOT TRUE);

-- our_triggers: every trigger that bears our marker, with its function's text; a disabled one, or one for replicas, sleeps
SELECT tgname AS trigger_name, nspname AS table_schema, relname AS table_name, description AS marker, prosrc AS source,
  CASE WHEN tgenabled IN ('O', 'A') THEN 1 ELSE 0 END AS enabled
FROM pg_trigger
JOIN pg_class ON pg_class.oid = tgrelid
JOIN pg_namespace ON pg_namespace.oid = relnamespace
JOIN pg_proc ON pg_proc.oid = tgfoid
JOIN pg_description ON objoid = pg_trigger.oid AND classoid = 'pg_trigger'::regclass
WHERE description LIKE 'eventlog {%' AND tgparentid = 0
ORDER BY nspname, tgname;

-- instead_of_triggers: how many triggers, not ours, do the writing of a view
SELECT COUNT(*) FROM pg_trigger
JOIN pg_class ON pg_class.oid = tgrelid
JOIN pg_namespace ON pg_namespace.oid = relnamespace
LEFT JOIN pg_description ON objoid = pg_trigger.oid AND classoid = 'pg_trigger'::regclass
WHERE relname = :table AND nspname = :schema AND description IS NULL AND NOT tgisinternal;

-- passed_by: whether statement triggers of a table miss changes: it has partitions, to which people write by themselves,
-- and of a MERGE that moves a row to another one such a trigger sees nothing; or it is changed by way of a parent
SELECT COUNT(*) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relname = :table AND nspname = :schema
  AND (relkind = 'p' OR EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = pg_class.oid));

-- foreign_owners: who owns a table, or a part of it, and has not the rights of the connected user besides
WITH RECURSIVE part (oid) AS (
    SELECT pg_class.oid FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE relname = :table AND nspname = :schema
    UNION
    SELECT inhrelid FROM pg_inherits JOIN part ON part.oid = inhparent
)
SELECT DISTINCT pg_get_userbyid(relowner) FROM part JOIN pg_class USING (oid) WHERE NOT pg_has_role(relowner, current_user, 'MEMBER');

-- partitions: the tables of a schema that are parts of another one
SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = :schema AND relispartition AND relkind IN ('r', 'p', 'f');

-- settle_names: conditions are tried in the search path of triggers
SET LOCAL search_path = pg_catalog, pg_temp;

-- try_condition: whether a condition can be asked of a table, also where the names of a trigger's own variables are known.
-- Asked of a row without values, for to plan a query of the table itself can run functions of the table's owner.
DO $eventlog$
DECLARE
new record; old record; tg_name name; tg_when text; tg_level text; tg_op text; tg_relid oid; tg_relname name;
tg_table_name name; tg_table_schema name; tg_nargs integer; tg_argv text[];
BEGIN
PERFORM COUNT(*) FROM (SELECT /* columns */n.idu FROM (SELECT (NULL::/* target */usr).*) AS n) AS /* row */usr
WHERE /* condition */(1 = 1) AND 1 = 0;
END
$eventlog$;

-- left_functions: what triggers of the log ran whose tables are gone; no trigger needs them any more
SELECT nspname AS function_schema, proname AS function_name
FROM pg_proc JOIN pg_namespace ON pg_namespace.oid = pronamespace
WHERE nspname = :schema AND starts_with(proname, :log || '_') AND prorettype = 'trigger'::regtype
  AND (strpos(prosrc, 'INSERT INTO ' || :target || ' (') > 0 OR strpos(prosrc, 'eventlog_facts') > 0)
  AND NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgfoid = pg_proc.oid)
ORDER BY 1, 2;

-- replica_identity: the unique index by which replication is told to know the rows of a table
SELECT found.relname FROM pg_index
JOIN pg_class AS found ON found.oid = indexrelid JOIN pg_class AS owner ON owner.oid = indrelid
JOIN pg_namespace ON pg_namespace.oid = owner.relnamespace
WHERE indisreplident AND nspname = :schema AND owner.relname = :table;
