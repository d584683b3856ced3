-- What the database's own catalog tells of tables and triggers.

-- made_types: columns whose type, or the type that its domain stands for, was made by somebody who is no superuser. Such a
-- type may have casts and operators of its owner's. Those of the types that come with the server cannot be replaced; their
-- numbers are below 16384.
WITH RECURSIVE chain (table_name, name, type) AS (
    SELECT relname, attname, atttypid FROM pg_attribute
    JOIN pg_class ON pg_class.oid = attrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = :schema AND relname = ANY(:tables) AND attnum > 0 AND NOT attisdropped AND atttypid >= 16384
    UNION ALL
    SELECT table_name, name, typbasetype FROM chain JOIN pg_type ON pg_type.oid = type WHERE typtype = 'd'
)
SELECT table_name, name, CASE WHEN bool_or(typtype <> 'd' AND type >= 16384) THEN 'type' ELSE 'domain' END AS made
FROM chain JOIN pg_type ON pg_type.oid = type LEFT JOIN pg_roles ON pg_roles.oid = typowner
GROUP BY table_name, name HAVING bool_or(type >= 16384 AND rolsuper IS NOT TRUE);

-- spelled_types: the types of the tables' columns in the database's words, of those of which SQLAlchemy may not know all; a
-- domain is what it stands for
WITH RECURSIVE chain (table_name, name, type, modifier, of_domain) AS (
    SELECT relname, attname, atttypid, atttypmod, false FROM pg_attribute
    JOIN pg_class ON pg_class.oid = attrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = :schema AND relname = ANY(:tables) AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT table_name, name, typbasetype, CASE WHEN modifier < 0 THEN typtypmod ELSE modifier END, true
    FROM chain JOIN pg_type ON pg_type.oid = type WHERE typtype = 'd'
)
SELECT table_name, name, CASE WHEN type < 16384 THEN format_type(type, modifier)
  ELSE regexp_replace(typname, '^_(.*)$', '\1[]') END AS type
FROM chain JOIN pg_type ON pg_type.oid = type
WHERE typtype <> 'd' AND typtype <> 'e' AND (of_domain OR typcategory IN ('G', 'U', 'A', 'R', 'C') OR type = 'bpchar'::regtype AND modifier < 0);

-- primary_keys: the columns of the key of every table of a schema in their order
SELECT relname AS table_name, attname AS column_name
FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
CROSS JOIN LATERAL unnest(conkey) WITH ORDINALITY AS part (number, place)
JOIN pg_attribute ON attrelid = conrelid AND attnum = part.number
WHERE contype = 'p' AND relpersistence <> 't' AND nspname = :schema
ORDER BY relname, place;

-- home_schema: the schema of a table that is named without one
current_schema();

-- searched_schemas: the schemas in which a session looks for names, those of its own temporary tables not among them
SELECT name FROM unnest(current_schemas(false)) WITH ORDINALITY AS searched (name, place)
WHERE NOT starts_with(name::text, 'pg_') ORDER BY place;

-- schemas_having: those of these schemas that have a table of this name, in their order, and whose it is
SELECT nspname::text, pg_get_userbyid(relowner)::text FROM unnest(CAST(:schemas AS text[])) WITH ORDINALITY AS searched (name, place)
JOIN pg_namespace ON nspname = searched.name JOIN pg_class ON relnamespace = pg_namespace.oid
WHERE lower(relname::text) = lower(CAST(:table AS text)) AND relkind IN ('r', 'p', 'v', 'f') ORDER BY place;

-- relation_number: the number of a table
to_regclass(/* place */'public.usr')::oid::bigint;

-- relation_now: the number of a table
SELECT to_regclass(:place)::oid::bigint;

-- fingerprint: what changes when somebody changes what a trigger runs
(SELECT md5(prosrc) FROM pg_proc WHERE oid = to_regprocedure(/* called */'event_log_usr_insert()'));

-- ancestors_add: enters the tables of which a class's tables are partitions, or from which they inherit, and the types that
-- give them their columns; a child may inherit from the class's own table, which is entered already
WITH RECURSIVE above (oid, role) AS (
    SELECT relation::oid, 'table' FROM /* relations */event_log_relation WHERE tracked = /* class */1
    UNION
    SELECT inhparent, 'ancestor' FROM pg_inherits JOIN above ON inhrelid = above.oid
), named (oid, role) AS (
    SELECT oid, role FROM above WHERE role = 'ancestor'
    UNION
    SELECT typrelid, 'type' FROM above JOIN pg_class ON pg_class.oid = above.oid JOIN pg_type ON pg_type.oid = reloftype
)
INSERT INTO /* relations */event_log_relation (tracked, schema_name, table_name, relation, role)
SELECT /* class */1, nspname, relname, pg_class.oid::bigint, MIN(role)
FROM named JOIN pg_class ON pg_class.oid = named.oid JOIN pg_namespace ON pg_namespace.oid = relnamespace
GROUP BY nspname, relname, pg_class.oid ON CONFLICT DO NOTHING;

-- log_owner: who owns the registry, and whether that is the connected user
SELECT pg_get_userbyid(relowner), relowner = (SELECT oid FROM pg_roles WHERE rolname = current_user) FROM pg_class
WHERE oid = to_regclass(/* registry */'public.event_log_trigger');

-- standing_triggers: the triggers of the registry as the catalog has them. One is ours because it runs a function that the
-- registry names, beside the log and owned by the log's owner. Nobody else may run that; a dump without rights lets everybody.
SELECT entered.tracked AS tracked, entered.name AS entered, tgname AS trigger_name, nspname AS table_schema,
  pg_class.relname AS table_name, tgrelid::bigint AS relation, prosrc AS source, tgenabled::text AS fires,
  entered.fingerprint IS NOT DISTINCT FROM md5(prosrc) AND NOT has_function_privilege('public', pg_proc.oid, 'EXECUTE') AS unchanged
FROM /* triggers */event_log_trigger AS entered
JOIN pg_class AS registry ON registry.oid = to_regclass(/* registry */'public.event_log_trigger')
JOIN pg_proc ON proname = entered.function_name AND pronamespace = registry.relnamespace AND proowner = registry.relowner
JOIN pg_trigger ON tgfoid = pg_proc.oid AND tgparentid = 0
JOIN pg_class ON pg_class.oid = tgrelid
JOIN pg_namespace ON pg_namespace.oid = pg_class.relnamespace
ORDER BY nspname, tgname;

-- similar_triggers: triggers that look like ours: they are called so, and write to the log
SELECT tgname AS trigger_name, nspname AS table_schema, relname AS table_name
FROM pg_trigger
JOIN pg_class ON pg_class.oid = tgrelid
JOIN pg_namespace ON pg_namespace.oid = relnamespace
JOIN pg_proc ON pg_proc.oid = tgfoid
WHERE NOT tgisinternal AND tgparentid = 0 AND starts_with(tgname, :prefix) AND relpersistence <> 't'
  AND (strpos(prosrc, :writes) > 0 OR strpos(prosrc, 'eventlog_facts') > 0)
ORDER BY nspname, tgname LIMIT :most;

-- taken_functions: functions beside the log that are called like ours and that somebody else than the log's owner owns: to
-- replace one leaves it to its owner, who could have any code run by each write of a table
SELECT pg_proc.oid::regprocedure::text, pg_get_userbyid(proowner)::text
FROM pg_class AS registry JOIN pg_proc ON pronamespace = registry.relnamespace AND proowner <> registry.relowner
WHERE registry.oid = to_regclass(/* registry */'public.event_log_trigger') AND proname = ANY(CAST(:functions AS name[]))
ORDER BY 1;

-- instead_of_triggers: how many triggers, not ours, do the writing of a view
SELECT COUNT(*) FROM pg_trigger
JOIN pg_class ON pg_class.oid = tgrelid
JOIN pg_namespace ON pg_namespace.oid = relnamespace
JOIN pg_proc ON pg_proc.oid = tgfoid
WHERE relname = :table AND nspname = :schema AND NOT tgisinternal
  AND proname NOT IN (SELECT function_name FROM /* triggers */event_log_trigger WHERE function_name IS NOT NULL);

-- passed_by: the tables of which statement triggers miss changes: one has partitions, to which people write by themselves,
-- and of a MERGE that moves a row to another one such a trigger sees nothing; or it is changed by way of a parent
SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = :schema
  AND (relkind = 'p' OR EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = pg_class.oid));

-- kind_of_relation: what something is that has a name and is no table or view whose changes a trigger can see
SELECT CASE relkind WHEN 'm' THEN 'a materialised view, which only REFRESH changes'
  WHEN 'f' THEN 'a foreign table, whose rows are changed where they really are'
  WHEN 'S' THEN 'a sequence' WHEN 'c' THEN 'a composite type' ELSE 'an index' END
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relname = :table AND nspname = :schema AND relkind IN ('m', 'f', 'S', 'c', 'i', 'I');

-- schemas_with: the schemas with a table or view of this name, as far as this login may know
SELECT table_schema FROM information_schema.tables WHERE table_name = :table ORDER BY table_schema;

-- remarks_on: what somebody should know who tracks a table: changes of it that no trigger sees, or that are seen twice
WITH named AS (
    SELECT pg_class.* , pg_class.oid AS number FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE relname = :table AND nspname = :schema
)
SELECT format('%s is UNLOGGED: a crash of the server empties it without a row in the log.', relname) FROM named WHERE relpersistence = 'u'
UNION ALL
SELECT format('%s is a partition of %s: track that one, for what is done to both is logged under both names.', named.relname, inhparent::regclass)
FROM named JOIN pg_inherits ON inhrelid = number WHERE relispartition
UNION ALL
SELECT format('%s has tables that inherit from it: what is written to %s itself is not logged.', named.relname,
  string_agg(inhrelid::regclass::text, ', ' ORDER BY inhrelid::regclass::text))
FROM named JOIN pg_inherits ON inhparent = number WHERE relkind = 'r' GROUP BY named.relname
UNION ALL
SELECT format('%s has the rule %s, which does something INSTEAD: what goes elsewhere by it is logged where it goes, if that is tracked.',
  relname, rulename)
FROM named JOIN pg_rewrite ON ev_class = number WHERE is_instead AND relkind IN ('r', 'p');

-- always_unique: the columns of the tables' unique indexes of which no two rows have the same at any time; a deferrable
-- constraint is looked at when its transaction ends
SELECT relname AS table_name, indexrelid AS index_name, attname AS column_name FROM pg_index
JOIN pg_class ON pg_class.oid = indrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
CROSS JOIN LATERAL unnest((indkey::smallint[])[0:indnkeyatts - 1]) AS part (number)
JOIN pg_attribute ON attrelid = indrelid AND attnum = part.number
WHERE nspname = :schema AND indisunique AND indimmediate AND indisvalid AND indpred IS NULL AND indexprs IS NULL;

-- acting_references: a row for each pair of columns of every foreign key that deletes or changes rows of its own accord
SELECT con.oid AS number, own_space.nspname AS own_schema, own.relname AS own_table, own_column.attname AS own_column,
  other_space.nspname AS other_schema, other.relname AS other_table, other_column.attname AS other_column,
  CASE confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' ELSE 'NO ACTION' END AS on_delete,
  CASE confupdtype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' ELSE 'NO ACTION' END AS on_update
FROM pg_constraint AS con
JOIN pg_class AS own ON own.oid = conrelid JOIN pg_namespace AS own_space ON own_space.oid = own.relnamespace
JOIN pg_class AS other ON other.oid = confrelid JOIN pg_namespace AS other_space ON other_space.oid = other.relnamespace
CROSS JOIN LATERAL unnest(conkey, confkey) AS pair (own_number, other_number)
JOIN pg_attribute AS own_column ON own_column.attrelid = conrelid AND own_column.attnum = own_number
JOIN pg_attribute AS other_column ON other_column.attrelid = confrelid AND other_column.attnum = other_number
WHERE contype = 'f' AND conparentid = 0 AND (confdeltype IN ('c', 'n', 'd') OR confupdtype IN ('c', 'n', 'd'));

-- foreign_owners: who owns a table, or a part of it, and has not the rights of the log's owner besides, as whom triggers write
WITH RECURSIVE part (oid) AS (
    SELECT pg_class.oid FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE relname = :table AND nspname = :schema
    UNION
    SELECT inhrelid FROM pg_inherits JOIN part ON part.oid = inhparent
)
SELECT DISTINCT pg_get_userbyid(relowner) FROM part JOIN pg_class USING (oid) WHERE NOT pg_has_role(relowner, (
    SELECT relowner FROM pg_class WHERE oid = to_regclass(/* registry */'public.event_log_trigger')), 'MEMBER');

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

-- table_stamp: changes whenever a table with our triggers does, or one of them: columns, keys, references, triggers and what
-- they run. One number a table, so that asking costs little.
WITH ours (oid) AS (
    SELECT DISTINCT tgrelid FROM /* triggers */event_log_trigger AS entered
    JOIN pg_class AS registry ON registry.oid = to_regclass(/* registry */'public.event_log_trigger')
    JOIN pg_proc ON proname = entered.function_name AND pronamespace = registry.relnamespace
    JOIN pg_trigger ON tgfoid = pg_proc.oid AND tgparentid = 0
)
SELECT ours.oid::text, relname::text, pg_class.xmin::text,
  (SELECT md5(string_agg(concat_ws(' ', attnum, attname, atttypid, atttypmod, attcollation, attnotnull, attisdropped, attgenerated), ','
    ORDER BY attnum)) FROM pg_attribute WHERE attrelid = ours.oid AND attnum > 0),
  (SELECT md5(string_agg(concat_ws(' ', pg_trigger.oid, tgenabled, pg_proc.xmin), ',' ORDER BY pg_trigger.oid))
    FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid WHERE tgrelid = ours.oid AND NOT tgisinternal),
  (SELECT md5(string_agg(concat_ws(' ', pg_constraint.oid, conrelid, conkey), ',' ORDER BY pg_constraint.oid))
    FROM pg_constraint WHERE contype IN ('p', 'f') AND ours.oid IN (conrelid, confrelid))
FROM ours JOIN pg_class ON pg_class.oid = ours.oid ORDER BY ours.oid;

-- replica_identity: the unique index by which replication is told to know the rows of a table
SELECT found.relname FROM pg_index
JOIN pg_class AS found ON found.oid = indexrelid JOIN pg_class AS owner ON owner.oid = indrelid
JOIN pg_namespace ON pg_namespace.oid = owner.relnamespace
WHERE indisreplident AND nspname = :schema AND owner.relname = :table;

-- loose_columns: the columns of a table in which texts that differ are equal, by what, and whether only blanks at their end
-- make no difference; and how the server compares a text as the column does
SELECT attname::text, CASE WHEN 'citext' IN (own.typname, base.typname) THEN 'citext'
                           WHEN NOT collisdeterministic THEN quote_ident(collname) ELSE 'character' END,
  'citext' NOT IN (own.typname, COALESCE(base.typname, '')) AND collisdeterministic,
  CASE WHEN 'citext' IN (own.typname, base.typname) THEN 'lower(CAST(? AS text))'
       WHEN NOT collisdeterministic
       THEN format('CAST(? AS text) COLLATE %I.%I', (SELECT nspname FROM pg_namespace WHERE oid = collnamespace), collname) END
FROM pg_attribute
JOIN pg_class ON pg_class.oid = attrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
JOIN pg_type AS own ON own.oid = atttypid LEFT JOIN pg_type AS base ON base.oid = own.typbasetype
JOIN pg_collation ON pg_collation.oid = attcollation
WHERE nspname = COALESCE(:schema, current_schema()) AND relname = :table AND attnum > 0 AND NOT attisdropped
  AND (NOT collisdeterministic OR own.typname IN ('citext', 'bpchar') OR base.typname IN ('citext', 'bpchar'));

-- watermark_schemas: the schemas that have watermarks of mirrors which the connected user may read
SELECT nspname::text FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relname = 'eventlog_applied' AND relkind = 'r' AND has_schema_privilege(pg_namespace.oid, 'USAGE')
  AND has_table_privilege(pg_class.oid, 'SELECT');

-- newest_number: the number of the newest row of the log: each of the two indexes knows one, and for MAX might be read whole
SELECT GREATEST(
  (SELECT waiting./* record_id */record_id FROM /* log */event_log AS waiting
   WHERE waiting./* status */status = 'N' ORDER BY 1 DESC LIMIT 1),
  (SELECT done./* record_id */record_id FROM /* log */event_log AS done
   WHERE done./* status */status IS DISTINCT FROM 'N' ORDER BY 1 DESC LIMIT 1));

-- numbered_table: a table by its number, and its columns by theirs, which stay when names change
SELECT /* numbers */'{}'::text FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = :schema AND relname = :table;

-- numbers_of: what `numbered_table` tells of a table, in JSON
(SELECT json_build_object('relation', pg_class.oid::bigint, 'schema', nspname, 'name', relname, 'columns',
   (SELECT COALESCE(json_agg(json_build_array(attnum, attname, atttypid::bigint, atttypmod, format_type(atttypid, atttypmod))
      ORDER BY attnum), '[]') FROM pg_attribute WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped)))
