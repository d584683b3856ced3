-- What the database's own catalog tells of tables and triggers.

-- declared_types: SQLAlchemy tells PostgreSQL's types as they are

-- column_collations: PostgreSQL compares by the column's own collation without being told

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

-- trigger_text: told above, as it was sent

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

-- partitions: the tables of a schema that are parts of another one
SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = :schema AND relispartition AND relkind IN ('r', 'p', 'f');

-- settle_names: conditions are tried in the search path of triggers
SET LOCAL search_path = pg_catalog, pg_temp;

-- try_condition: whether a condition can be asked of a table, also where the names of a trigger's own variables are known
DO $eventlog$
DECLARE
new record; old record; tg_name name; tg_when text; tg_level text; tg_op text; tg_relid oid; tg_relname name;
tg_table_name name; tg_table_schema name; tg_nargs integer; tg_argv text[];
BEGIN
PERFORM COUNT(*) FROM /* target */usr WHERE /* condition */(1 = 1) AND 1 = 0;
END
$eventlog$;
