-- Statement triggers see all rows of their statement: o is a row before, n the row with the same key after.
-- Strings with backslashes are E'' strings, so that standard_conforming_strings does not matter.

-- text_of_string: any value as text
/* value */n.fname::text;

-- present: whether there is a value; of a composite one, IS NOT NULL would say whether each of its parts is there
/* value */n.fname IS DISTINCT FROM NULL;

-- absent: whether there is none
/* value */n.fname IS NOT DISTINCT FROM NULL;

-- made_type: a value of a type that somebody made, as the type's output function writes it. A cast could be its owner's
-- function, and would run with the rights of who installed us. IS NULL would say of a composite value that its parts are NULL.
CASE WHEN /* value */n.mood IS DISTINCT FROM NULL THEN concat(/* value */n.mood) END;

-- made_domain: a value of a domain that somebody made, in the type of the database that the domain stands for
CAST(CASE WHEN /* value */n.code IS DISTINCT FROM NULL THEN concat(/* value */n.code) END AS /* type */varchar);

-- text_of_row: a whole row, by the output functions of its types; it names no column, so it stays true when columns come and go
concat(/* row */o);

-- text_of_octet: binary as Base64 without line breaks
replace(encode(/* value */n.photo, 'base64'), E'\n', '');

-- text_of_state: true and false as 1 and 0
/* value */n.active::integer::text;

-- text_of_money: an amount of money as a number, whatever currency the session writes
/* value */n.price::numeric::text;

-- text_of_output: a value as its type writes it, where a cast to text does it otherwise
CASE WHEN /* value */n.place IS NOT NULL THEN concat(/* value */n.place) END;

-- text_of_char: a text with the blanks that fill its column, which a cast to text leaves out
pg_catalog.textin(pg_catalog.bpcharout(/* value */n.abbr));

-- text_of_date: a date; JSON has others too, in ISO's form whatever the session has: far ones, to which no time can be
-- added, those before Christ, infinite ones
CASE WHEN /* value */n.born >= '0001-01-01' AND /* value */n.born < '10000-01-01'
THEN to_char(/* value */n.born, 'YYYY-MM-DD') ELSE to_json(/* value */n.born) #>> '{}' END;

-- text_of_timestamp: date and time with nine digits of a second
CASE WHEN /* value */n.seen >= '0001-01-01' AND /* value */n.seen < 'infinity'
THEN to_char(/* value */n.seen, 'YYYY-MM-DD HH24:MI:SS.US') || '000'
ELSE replace(to_json(/* value */n.seen) #>> '{}', 'T', ' ') END;

-- text_of_zoned: the same in UTC
CASE WHEN /* value */n.seen AT TIME ZONE 'UTC' >= '0001-01-01' AND /* value */n.seen < 'infinity'
THEN to_char(/* value */n.seen AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '000'
ELSE replace(to_json(/* value */n.seen AT TIME ZONE 'UTC') #>> '{}', 'T', ' ') END;

-- quoted: a key's value, in quotes where the grammar of table_key asks for them
CASE WHEN (/* text */n.idu) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(/* text */n.idu, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(/* text */n.idu, '') END;

-- differs: whether a value changed
/* before */o.fname IS DISTINCT FROM /* after */n.fname;

-- differs_as_text: the same, for types and collations whose equality is not that of their texts
(/* before */o.fname) COLLATE "C" IS DISTINCT FROM (/* after */n.fname) COLLATE "C";

-- row_differs: whether anything in a row changed, byte by byte: it names no column, so it stays true when columns come and go
/* before */o *<> /* after */n;

-- same_key: how rows before and after are paired
/* before */o.idu = /* after */n.idu;

-- same_key_as_text: the same, for types and collations whose equality is not that of their texts
(/* before */o.idu) COLLATE "C" = (/* after */n.idu) COLLATE "C";

-- parent_is_there: whether the parent of a child row is there; a scalar query, so that it stays a look-up by key
((SELECT true FROM /* parent */usr AS /* row */usr WHERE /* match */(usr.idu = o.idu) AND /* condition */(1 = 1)) IS NOT NULL);

-- fact: one row of the log, if its condition holds
SELECT /* key */'idu=1', /* kind */eventlog_kind_6, /* column */NULL, /* old */NULL, /* new */NULL
WHERE /* condition */(1 = 1);

-- image: a row as an array of texts, the number of its definition first
array_to_json(ARRAY[/* items */'7'])::text;

-- image_length: how many bytes a value has; a text's are known without reading it
coalesce(octet_length(/* text */n.fname::text), 0);

-- image_within: no image of a row that is too long for one: it is read back
CASE WHEN /* length */7 <= 1000000 THEN /* image */NULL END;

-- image_of: the image of a row that is there
CASE WHEN /* there */(n.idu IS NOT NULL) THEN /* image */NULL END;

-- whole_row_part: a column in the text of a row without a key; nothing where it is NULL
coalesce(/* name */',"fname":' || to_json(/* text */n.fname)::text, '');

-- whole_row: the text of a row without a key
'{' || substr(/* parts */',"fname":"x"', 2) || '}';

-- whole_row_key: the key of a row without one: the hash of its text
/* name */'eventlog_whole_row=' || encode(sha256(convert_to(/* text */'{}', getdatabaseencoding())), 'hex');

-- facts_of_rows: the facts of every row of a source
-- A full join pairs the rows of an update: it cannot become the nested loop that a plan kept from single rows would
-- run over a bulk statement, and it shows keys that left and keys that came.
/* source */new_rows CROSS JOIN LATERAL (
/* facts */
) AS fact (key, kind, name, old, new);

-- key_of_each: the key of the one fact that each row of an update tells: it left, came or changed
-- Without a subquery for each row, which a bulk statement would pay for and a single row all the more.
CASE WHEN /* left */(n.idu IS NULL) THEN /* old_key */'idu=1' ELSE /* new_key */'idu=1' END;

-- kind_of_each: its kind
CASE WHEN /* left */(n.idu IS NULL) THEN /* kind_left */eventlog_kind_4
       WHEN /* came */(o.idu IS NULL) THEN /* kind_came */eventlog_kind_5 ELSE /* kind_stayed */eventlog_kind_6 END;

-- log_rows: one row of the log for each of a source; a column of NULLs is not named, for a bulk statement would pay for it
INSERT INTO /* log */event_log (/* table_key */table_key, /* status */status, /* event_type */event_type,
  /* event_time */event_time, /* perpetrator */perpetrator, /* table_name */table_name/* context_name *//* value_names */)
SELECT /* key */'idu=1', /* waiting */eventlog_waiting, /* kind */eventlog_kind_6, /* now */eventlog_now, /* user */eventlog_user,
  /* table */'usr'/* context_value *//* value_texts */
FROM /* source */new_rows;

-- hand_rows: the same, for the next trigger to write
eventlog_facts := eventlog_facts || (SELECT coalesce(json_agg(json_build_array(
  /* key */'idu=1', /* kind */6, /* column */NULL, /* old */NULL, /* new */NULL)), '[]')::text
FROM /* source */new_rows);

-- child_side: the values that stood, or stand, under a parent
SELECT /* key */'idu=1' AS key, /* values */phoneno FROM /* source */old_rows WHERE /* condition */(1 = 1);

-- function: what a trigger runs, with its owner's rights, so that writers need none on the log
CREATE OR REPLACE FUNCTION /* function */event_log_usr_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp /* settings */
AS $eventlog$
DECLARE
/* declared */
BEGIN
/* guard */
/* body */;
RETURN /* result */NULL;
END
$eventlog$;

-- guard_rows: stops where a column that had a type of the database got one that its owner made since we looked: to turn it
-- into text could run the owner's functions with our rights. Nothing is read; only the types are looked at.
IF (SELECT greatest/* types */(pg_typeof(n.idu)::oid) >= 16384 FROM (VALUES (1)) AS one LEFT JOIN /* source */new_rows ON false) THEN
RAISE EXCEPTION 'eventlog: a column of % has been given a type of somebody''s own making.', TG_RELID::regclass
USING HINT = 'Run eventlog track for the table again.';
END IF;

-- guard_row: the same where each row has its turn
IF greatest/* types */(pg_typeof(NEW.idu)::oid) >= 16384 THEN
RAISE EXCEPTION 'eventlog: a column of % has been given a type of somebody''s own making.', TG_RELID::regclass
USING HINT = 'Run eventlog track for the table again.';
END IF;

-- reading_function: reads tables with the writer's own rights, for to plan a query can run functions of a table's owner: those
-- in its indexes, statistics and policies. What it finds it hands over to the trigger that fires next, which may write.
CREATE OR REPLACE FUNCTION /* function */event_log_usr_truncate() RETURNS trigger LANGUAGE plpgsql SECURITY INVOKER
SET search_path = pg_catalog, pg_temp SET row_security = off /* settings */
AS $eventlog$
DECLARE
eventlog_facts text[] := '{}';
BEGIN
/* body */;
PERFORM set_config('eventlog.facts', '[' || array_to_string(eventlog_facts, ',') || ']', true);
RETURN /* result */NULL;
END
$eventlog$;

-- if_seen: whoever sees not all rows of the parent, by a policy or for want of a right, takes it for there: nothing is lost
IF has_table_privilege(/* parent */'usr', 'SELECT') AND NOT row_security_active(/* parent */'usr') THEN
/* body */;
ELSE
/* unseen */;
END IF;

-- warn_of_unseen: a transaction with one snapshot for all of its statements empties a table also of rows that it cannot see
IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
RAISE WARNING 'eventlog: rows of % that others have committed since this transaction began go without being logged.', TG_RELID::regclass
USING HINT = 'TRUNCATE in a READ COMMITTED transaction, or DELETE.';
END IF;

-- if_parent_stays: a TRUNCATE that empties the parent too holds this lock on it when it fires the first trigger; so may who
-- locked it before
IF NOT EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND relation = /* parent */'usr'::regclass
  AND mode = 'AccessExclusiveLock' AND granted) THEN
/* body */;
ELSE
/* unsure */;
END IF;

-- if_ends_are_seen: who may look into the log sees which parents' ends stand there
IF has_table_privilege(/* log_name */'event_log', 'SELECT') THEN
/* known */;
ELSE
/* unsure */;
END IF;

-- not_ended: whether the last that the log has of a parent is not its end, though it still stands: the statement empties both
side.key NOT IN (SELECT ended.key FROM (
  SELECT DISTINCT ON (told./* table_key */table_key) told./* table_key */table_key AS key, told./* event_type */event_type AS kind
  FROM /* log */event_log AS told WHERE told./* status */status = 'N' AND told./* table_name */table_name = /* table */'usr'
  ORDER BY told./* table_key */table_key, told./* record_id */record_id DESC) AS ended WHERE ended.kind = 4);

-- take_facts: writes what was handed over by the trigger that fired before
INSERT INTO /* log */event_log (/* table_key */table_key, /* status */status, /* event_type */event_type,
  /* event_time */event_time, /* perpetrator */perpetrator, /* table_name */table_name/* context_name */, /* column_name */column_name,
  /* old_value */old_value, /* new_value */new_value)
SELECT fact.value ->> 0, /* waiting */eventlog_waiting, (fact.value ->> 1)::integer, /* now */eventlog_now, /* user */eventlog_user,
  /* table */'usr'/* context_value */, fact.value ->> 2, fact.value ->> 3, fact.value ->> 4
FROM json_array_elements(current_setting('eventlog.facts')::json) AS part (value)
CROSS JOIN LATERAL json_array_elements(part.value) AS fact (value);
PERFORM set_config('eventlog.facts', '', true);

-- constant: what is the same for all rows of a statement, in the type of the log's column
/* name */eventlog_now CONSTANT /* column */event_log.event_time%TYPE := /* value */CURRENT_TIMESTAMP;

-- settings: makes texts independent of the session, for types whose text is not otherwise
SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex';

-- settings_of_statements: a plan made for a bulk statement is kept for single rows, which compiling it would slow down
SET jit = off;

-- settings_of_pairs: rows before and after are paired by hashing; sorting them takes longer where they come in no order
SET enable_mergejoin = off;

-- settings_of_children: the look-up of the parent stays one by its key, also when the plan was made for a small table
SET enable_seqscan = off;

-- row_trigger: fires for each row
CREATE TRIGGER /* trigger */event_log_usr_insert /* time */AFTER /* event */INSERT ON /* target */usr
FOR EACH ROW EXECUTE FUNCTION /* function */event_log_usr_insert();

-- statement_trigger: fires once for a statement and sees its rows
CREATE TRIGGER /* trigger */event_log_usr_insert AFTER /* event */INSERT ON /* target */usr
REFERENCING /* rows */new_rows FOR EACH STATEMENT EXECUTE FUNCTION /* function */event_log_usr_insert();

-- truncate_trigger: fires while the rows are still there
CREATE TRIGGER /* trigger */event_log_usr_truncate BEFORE TRUNCATE ON /* target */usr
FOR EACH STATEMENT EXECUTE FUNCTION /* function */event_log_usr_truncate();

-- always_trigger: also for sessions that replay what another server has logged already
ALTER TABLE /* target */usr ENABLE ALWAYS TRIGGER /* trigger */event_log_usr_insert;

-- keep_shape: lets writers go on, and whoever alters the table wait until the transaction ends
LOCK TABLE ONLY /* target */usr IN ACCESS SHARE MODE;

-- drop_trigger: takes a trigger off
DROP TRIGGER IF EXISTS /* trigger */event_log_usr_insert ON /* target */usr;

-- drop_function: takes off what the trigger ran
DROP FUNCTION IF EXISTS /* function */event_log_usr_insert();

-- own_function: what a trigger runs is the log's owner's, whoever makes it
ALTER FUNCTION /* function */event_log_usr_insert() OWNER TO /* function_owner */CURRENT_USER;

-- The follower: keeps the triggers of a tracked table working when somebody alters it, in the same transaction (--follow-ddl).
-- It reads numbers, names and styles of the registry and of the catalog, and renders functions from the templates in its own
-- body: format() fills each once, and never looks again at what it has put in, so that no name can stand for anything else.
-- What a table with children logs is, until somebody tracks it again, to be read back by key.

-- columns_add: enters the columns of a class's table by their numbers: what they are called in its options, which of them tell
-- its rows apart, and which are logged; number 0 is what the table is called there. A column that is gone has no type
INSERT INTO /* columns */event_log_column (tracked, relation, number, name, entered, type, modifier, key_place, watched)
SELECT /* class */1, attrelid::bigint, attnum, attname, attname, atttypid::bigint, atttypmod,
  array_position(ARRAY[/* key */'idu']::text[], attname::text), CASE WHEN attname = ANY(ARRAY[/* watched */'fname']::text[]) THEN 1 ELSE 0 END
FROM pg_attribute WHERE attrelid = to_regclass(/* place */'public.usr') AND attnum > 0 AND NOT attisdropped
UNION ALL SELECT /* class */1, oid::bigint, 0, relname, relname, 0, 0, NULL, 0 FROM pg_class WHERE oid = to_regclass(/* place */'public.usr');

-- registry_columns: what columns are called now that options name as they were called; and the key of a class that had a primary
-- key and has none now
SELECT tracked, entered, name, lost.key_place FROM /* columns */event_log_column AS known
JOIN /* tracked */event_log_tracked AS class ON class.id = known.tracked AND class.relation = known.relation
CROSS JOIN LATERAL (SELECT CASE WHEN primary_key = 1 AND NOT EXISTS (
  SELECT FROM pg_constraint WHERE conrelid = known.relation::oid AND contype = 'p') THEN known.key_place END AS key_place) AS lost
WHERE type <> 0 AND entered <> name OR lost.key_place IS NOT NULL ORDER BY tracked, lost.key_place;

-- follower_schema: where nobody else may create
CREATE SCHEMA IF NOT EXISTS eventlog_ddl;

-- follower_function: what the event triggers run
CREATE OR REPLACE FUNCTION /* function */eventlog_ddl.event_log() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $eventlog$
DECLARE
found bigint; affected bigint[]; kept boolean := coalesce(current_setting('eventlog.keep_key', true), '') = 'on';
BEGIN
BEGIN
  IF TG_EVENT = 'sql_drop' THEN
    SELECT array_agg(DISTINCT tracked) INTO affected FROM pg_event_trigger_dropped_objects() AS gone
    JOIN /* relations */event_log_relation AS known ON known.relation = gone.objid::bigint WHERE gone.classid = 'pg_class'::regclass;
  ELSE
    SELECT array_agg(DISTINCT tracked) INTO affected FROM (
      SELECT tracked FROM pg_event_trigger_ddl_commands() AS done
      JOIN /* relations */event_log_relation AS known ON known.relation = done.objid::bigint WHERE done.classid = 'pg_class'::regclass
      UNION ALL
      SELECT tracked FROM pg_event_trigger_ddl_commands() AS done
      JOIN pg_type ON pg_type.oid = done.objid JOIN /* relations */event_log_relation AS known ON known.relation = typrelid::bigint
      WHERE done.classid = 'pg_type'::regclass AND typrelid <> 0
      UNION ALL
      SELECT tracked FROM pg_event_trigger_ddl_commands() AS done
      JOIN pg_class ON relnamespace = done.objid JOIN /* relations */event_log_relation AS known ON known.relation = pg_class.oid::bigint
      WHERE done.classid = 'pg_namespace'::regclass
      UNION ALL
      -- What a tracked table has become a part of since, at this very moment too.
      SELECT tracked FROM pg_event_trigger_ddl_commands() AS done
      JOIN pg_inherits ON inhparent = done.objid JOIN /* relations */event_log_relation AS known ON known.relation = inhrelid::bigint
      WHERE done.classid = 'pg_class'::regclass
    ) AS asked;
  END IF;
EXCEPTION WHEN OTHERS THEN
  RAISE WARNING 'eventlog: nothing followed this command: %', SQLERRM;
END;
IF affected IS NULL THEN
  RETURN;
END IF;
FOREACH found IN ARRAY affected LOOP
  -- Whoever sets it has their own ALTER refused, and nobody else's.
  IF kept AND EXISTS (SELECT FROM /* columns */event_log_column AS known JOIN pg_class ON pg_class.oid = known.relation::oid
      WHERE known.tracked = found AND known.key_place IS NOT NULL AND NOT EXISTS (SELECT FROM pg_attribute
        WHERE attrelid = known.relation::oid AND attnum = known.number AND NOT attisdropped)) THEN
    RAISE EXCEPTION 'eventlog: a column goes by which rows of a tracked table are known, and eventlog.keep_key is on.'
    USING HINT = 'Run eventlog untrack before, and eventlog track afterwards.';
  END IF;
  BEGIN
    BEGIN
      PERFORM /* follow */eventlog_ddl.event_log_follow(found);
    EXCEPTION WHEN OTHERS THEN
      RAISE WARNING 'eventlog: the triggers of a tracked table could not follow it: %', SQLERRM;
      UPDATE /* triggers */event_log_trigger SET digest = 'followed' WHERE tracked = found;
    END;
  EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'eventlog: the registry does not say so yet: %', SQLERRM;
  END;
END LOOP;
END
$eventlog$;

-- follow_function: makes the functions of a class's triggers anew where a name, a column or the key of its tables is another one now
CREATE OR REPLACE FUNCTION /* follow */eventlog_ddl.event_log_follow(class bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $eventlog$
DECLARE
kept record; own oid; own_schema name; own_name name; called text; is_called boolean; is_keyed boolean; remakes boolean; part record;
names text[]; numbers integer[]; fits boolean; keys text[]; held text[]; heading text[]; types text; source text; there text;
before text; after text; o text; n text; facts text; body text; version integer; logged text[]; shown text; form text;
is_asked boolean; trial CONSTANT text := 'eventlog_' || md5(random()::text);
-- The image of a row by the texts of its columns: none of one that is too long, which is read back.
image CONSTANT text := 'CASE WHEN %1$s IS NOT NULL AND (SELECT coalesce(sum(octet_length(value)), 0) FROM unnest(%1$s) AS part (value))'
  ' <= 1000000 THEN array_to_json(array_prepend(''%2$s'', %1$s))::text END';
-- A row of the log that says that something was written, and no writer fails.
mute CONSTANT text := 'SELECT ''eventlog_%s_is_gone=1'', 6, NULL, NULL, NULL';
BEGIN
SELECT relation::oid AS relation, schema_name::text AS schema_name, table_name::text AS table_name, style::text AS style,
  all_columns = 1 AS all_columns, primary_key = 1 AS primary_key, deferred = 1 AS deferred, options::json ->> 'when' AS condition
INTO kept FROM /* tracked */event_log_tracked WHERE id = class;
own := kept.relation;
SELECT nspname, relname INTO own_schema, own_name FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE pg_class.oid = own;
IF own_name IS NULL OR NOT EXISTS (SELECT FROM /* columns */event_log_column WHERE tracked = class) THEN
  RETURN;
END IF;
/* ancestors */NULL;
is_called := NOT EXISTS (SELECT FROM /* relations */event_log_relation AS known
  LEFT JOIN pg_class ON pg_class.oid = known.relation::oid LEFT JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE known.tracked = class AND known.role IN ('table', 'child')
    AND (known.table_name::text, known.schema_name::text) IS DISTINCT FROM (relname::text, nspname::text));
is_keyed := NOT kept.primary_key OR NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = own AND contype = 'p'
  AND conkey IS DISTINCT FROM (SELECT array_agg(number::smallint ORDER BY key_place) FROM /* columns */event_log_column
    WHERE tracked = class AND relation = own::bigint AND key_place IS NOT NULL));
IF is_called AND is_keyed AND NOT EXISTS (
    SELECT FROM (SELECT * FROM /* columns */event_log_column WHERE tracked = class AND type <> 0) AS known
    FULL JOIN (SELECT * FROM pg_attribute
      WHERE attrelid IN (SELECT relation::oid FROM /* columns */event_log_column WHERE tracked = class) AND attnum > 0 AND NOT attisdropped) AS held
    ON attrelid = known.relation::oid AND attnum = known.number
    WHERE (known.name::text, known.type, known.modifier::integer) IS DISTINCT FROM (attname::text, atttypid::bigint, atttypmod)) THEN
  RETURN;
END IF;
-- Who compares whole rows names no column but those of the key, unless it was made here.
remakes := NOT (kept.style = 'row-back' AND kept.all_columns AND kept.condition IS NULL AND is_called AND is_keyed)
  OR EXISTS (SELECT FROM /* triggers */event_log_trigger WHERE tracked = class AND digest = 'followed') OR EXISTS (
  SELECT FROM /* columns */event_log_column AS known
  LEFT JOIN pg_attribute ON attrelid = own AND attnum = known.number AND NOT attisdropped
  WHERE known.tracked = class AND key_place IS NOT NULL
    AND (known.name::text, known.type, known.modifier::integer) IS DISTINCT FROM (attname::text, atttypid::bigint, atttypmod));
UPDATE /* columns */event_log_column AS known SET name = attname, type = atttypid::bigint, modifier = atttypmod
FROM pg_attribute WHERE known.tracked = class AND attrelid = known.relation::oid AND attnum = known.number AND NOT attisdropped;
UPDATE /* columns */event_log_column AS known SET type = 0, watched = 0 WHERE known.tracked = class AND known.key_place IS NULL AND NOT EXISTS (
  SELECT FROM pg_attribute WHERE attrelid = known.relation::oid AND attnum = known.number AND NOT attisdropped);
-- The condition speaks of columns as they were called. Nobody can say what it means without one that it may name.
is_asked := NOT EXISTS (SELECT FROM /* columns */event_log_column AS known WHERE known.tracked = class AND known.relation = own::bigint
  AND number > 0 AND position(lower(entered) IN lower(replace(kept.condition, '""', '"'))) > 0 AND NOT EXISTS (
    SELECT FROM pg_attribute WHERE attrelid = known.relation::oid AND attnum = known.number AND NOT attisdropped));
INSERT INTO /* columns */event_log_column (tracked, relation, number, name, type, modifier, watched)
SELECT class, attrelid::bigint, attnum, attname, atttypid::bigint, atttypmod, CASE WHEN kept.all_columns THEN 1 ELSE 0 END
FROM pg_attribute
WHERE attrelid IN (SELECT relation::oid FROM /* columns */event_log_column WHERE tracked = class) AND attnum > 0 AND NOT attisdropped
ON CONFLICT DO NOTHING;
IF NOT is_keyed THEN
  -- Rows are known by the primary key of now. A row of a child table points to a former key: nobody knows whose it is.
  UPDATE /* columns */event_log_column AS known SET key_place = array_position(conkey, known.number::smallint),
    watched = CASE WHEN known.number = ANY(conkey) THEN 0 WHEN key_place IS NOT NULL AND kept.all_columns THEN 1 ELSE watched END
  FROM pg_constraint WHERE known.tracked = class AND known.relation = own::bigint AND conrelid = own AND contype = 'p';
  UPDATE /* columns */event_log_column SET key_place = NULL WHERE tracked = class AND relation <> own::bigint;
END IF;
called := CASE WHEN own_schema = /* schema_name */'public' THEN own_name::text ELSE own_schema || '.' || own_name END;
-- The key as it is called now; the columns of a child table stand for it in its order.
SELECT array_agg(attname::text ORDER BY key_place), array_agg(known.number::integer ORDER BY key_place),
  coalesce(bool_and(attname IS NOT NULL AND attname !~ E'[,;''+"=\\\\<>]|^ | $'), false)
INTO names, numbers, fits FROM /* columns */event_log_column AS known
LEFT JOIN pg_attribute ON attrelid = own AND attnum = known.number AND NOT attisdropped
WHERE known.tracked = class AND known.relation = own::bigint AND key_place IS NOT NULL;
SELECT coalesce(max(table_version), 0) + 1 INTO version FROM /* history */event_log_schema
WHERE table_name = own_schema || '.' || own_name;
FOR part IN
  SELECT entered.name, entered.part AS does, pg_proc.oid AS function, nspname, proname, tgrelid, tgrelid = own AS is_own,
    written.relowner <> proowner AS is_foreign, (tgtype & 1) = 1 AS by_row, (tgtype & 4) > 0 AS inserts, (tgtype & 8) > 0 AS deletes,
    (tgtype & 32) > 0 AS truncates
  FROM /* triggers */event_log_trigger AS entered
  JOIN pg_class AS registry ON registry.oid = to_regclass(/* registry */'public.event_log_trigger')
  JOIN pg_proc ON proname = entered.function_name AND pronamespace = registry.relnamespace AND proowner = registry.relowner
  JOIN pg_namespace ON pg_namespace.oid = pronamespace
  JOIN pg_trigger ON tgfoid = pg_proc.oid AND tgparentid = 0
  JOIN pg_class AS written ON written.oid = tgrelid
  WHERE remakes AND entered.tracked = class
LOOP
  -- The texts of values, with %1$s for what a row is called.
  SELECT array_agg(piece ORDER BY key_place) FILTER (WHERE key_place IS NOT NULL),
    array_agg(piece ORDER BY number) FILTER (WHERE watched = 1), array_agg(name ORDER BY number) FILTER (WHERE watched = 1),
    'greatest(' || string_agg(format('pg_typeof(%s)::oid', bare), ', ') FILTER (WHERE type < 16384
      AND (key_place IS NOT NULL OR watched = 1 AND kept.style <> 'key')) || ')',
    string_agg(format('%s AS %s', CASE WHEN base_type >= 16384 THEN piece WHEN type >= 16384
      THEN format(/* domain_text */'%1$s', bare, format_type(base_type, base_modifier)) ELSE bare END,
      replace(quote_ident(entered), '%', '%%')), ', ' ORDER BY number) FILTER (WHERE entered IS NOT NULL)
  INTO keys, held, heading, types, shown FROM (
    SELECT known.number, known.name::text, key_place, watched, atttypid AS type, bare, entered, base.type AS base_type,
      base.typmod AS base_modifier, format(CASE WHEN base.type >= 16384 THEN /* made_text */'%1$s' WHEN base.type = 17 THEN /* octet_text */'%1$s'
        WHEN base.type = 790 THEN /* money_text */'%1$s'
        WHEN base.type = 1042 AND key_place IS NULL THEN /* char_text */'%1$s'
        WHEN base.type = 16 OR (base.type = 1560 AND base.typmod = 1) THEN /* state_text */'%1$s'
        WHEN base.type = 1082 THEN /* date_text */'%1$s' WHEN base.type = 1114 THEN /* timestamp_text */'%1$s'
        WHEN base.type = 1184 THEN /* zoned_text */'%1$s' ELSE /* string_text */'%1$s' END,
        CASE WHEN atttypid >= 16384 AND base.type < 16384 THEN format(/* domain_text */'%1$s', bare, format_type(base.type, base.typmod))
        ELSE bare END) AS piece
    FROM /* columns */event_log_column AS known
    JOIN pg_attribute ON attrelid = part.tgrelid AND attnum = known.number AND NOT attisdropped
    CROSS JOIN LATERAL (SELECT '%1$s.' || replace(quote_ident(attname), '%', '%%') AS bare) AS written
    CROSS JOIN LATERAL (
      WITH RECURSIVE chain (type, typmod, step) AS (SELECT atttypid, atttypmod, 0
        UNION ALL SELECT typbasetype, typtypmod, step + 1 FROM chain JOIN pg_type ON pg_type.oid = type WHERE typtype = 'd')
      SELECT type, typmod FROM chain ORDER BY step DESC LIMIT 1) AS base
    WHERE known.tracked = class AND known.relation = part.tgrelid::bigint
  ) AS typed;
  o := CASE WHEN part.by_row THEN 'OLD' ELSE 'o' END;
  n := CASE WHEN part.by_row THEN 'NEW' ELSE 'n' END;
  IF kept.condition IS NULL THEN
    shown := 'true';
  ELSE
    SELECT format('EXISTS (SELECT 1 FROM (SELECT %s) AS %s WHERE (%s))', shown, replace(quote_ident(entered), '%', '%%'),
      replace(kept.condition, '%', '%%'))
    INTO shown FROM /* columns */event_log_column AS known WHERE known.tracked = class AND known.relation = own::bigint AND number = 0;
    -- Nobody runs it here: the server only looks whether it speaks of what there is.
    BEGIN
      EXECUTE format('PREPARE %I AS SELECT %s FROM %s AS o', trial, format(shown, 'o'), own::regclass);
      EXECUTE format('DEALLOCATE %I', trial);
    EXCEPTION WHEN OTHERS THEN
      is_asked := false;
    END;
  END IF;
  form := CASE WHEN part.does = 'reading' THEN /* hand */'' ELSE /* write */'' END;
  IF part.does = 'writing' THEN
    body := format(/* take */'', quote_literal(called));
  ELSIF NOT fits OR cardinality(keys) IS DISTINCT FROM cardinality(names) THEN
    body := format(form, format(mute, 'key'), quote_literal(called));
  ELSIF NOT is_asked THEN
    body := format(form, format(mute, 'condition'), quote_literal(called));
  ELSE
    SELECT '(' || string_agg(quote_literal(CASE WHEN place > 1 THEN '+' ELSE '' END || replace(names[place], '%', '%%') || '=')
        || ' || ' || format(/* quoted */'', piece), ' || ' ORDER BY place) || ') COLLATE "C"',
      string_agg(format('(%s) IS NOT NULL', piece), ' AND ')
    INTO source, there FROM unnest(keys) WITH ORDINALITY AS listed (piece, place);
    before := format(source, o);
    after := format(source, n);
    IF part.truncates AND NOT part.is_own THEN
      body := format('SELECT DISTINCT %s, 6, NULL, NULL, NULL FROM %s AS o WHERE %s', before, part.tgrelid::regclass, format(there, 'o'));
    ELSIF NOT part.is_own THEN
      body := concat_ws(' UNION ',
        CASE WHEN NOT part.inserts THEN format('SELECT %s, 6, NULL, NULL, NULL%s WHERE %s', before,
          CASE WHEN part.by_row THEN '' ELSE ' FROM old_rows AS o' END, format(there, o)) END,
        CASE WHEN NOT part.deletes THEN format('SELECT %s, 6, NULL, NULL, NULL%s WHERE %s', after,
          CASE WHEN part.by_row THEN '' ELSE ' FROM new_rows AS n' END, format(there, n)) END);
    ELSE
      -- Each row, before and after: its key, the texts of what is logged, and whether the condition is about it.
      source := format('ARRAY[%s]::text[], %s', array_to_string(coalesce(held, keys[1:1]), ', '), shown);
      heading := coalesce(heading, names[1:1]);
      logged := heading;
      before := before || ', ' || format(source, o) || CASE WHEN part.truncates THEN format(' FROM %s AS o', part.tgrelid::regclass)
        WHEN part.by_row THEN '' ELSE ' FROM old_rows AS o' END;
      after := after || ', ' || format(source, n) || CASE WHEN part.by_row THEN '' ELSE ' FROM new_rows AS n' END;
      body := CASE WHEN part.inserts THEN format('SELECT came.key, false, true, NULL::text[], held FROM (SELECT %s) AS came (key, held, holds) WHERE holds', after)
        WHEN part.deletes OR part.truncates
        THEN format('SELECT went.key, true, false, held, NULL::text[] FROM (SELECT %s) AS went (key, held, holds) WHERE holds', before)
        ELSE format('SELECT coalesce(goes.key, comes.key), comes.key IS NULL, goes.key IS NULL, goes.held, comes.held'
          ' FROM (SELECT %s) AS goes (key, held, holds) FULL JOIN (SELECT %s) AS comes (key, held, holds) ON goes.key = comes.key'
          ' WHERE goes.holds OR comes.holds', before, after) END;
      -- What is logged of it, as its style has it.
      facts := CASE WHEN kept.style IN ('key', 'row-back') THEN
          'SELECT CASE WHEN gone THEN 4 WHEN fresh THEN 5 ELSE 6 END, NULL, NULL, NULL'
          || CASE WHEN kept.style = 'key' THEN '' ELSE
            ' WHERE gone OR fresh OR before COLLATE "C" IS DISTINCT FROM after COLLATE "C"' END
        WHEN kept.style = 'image' THEN format(
          'SELECT CASE WHEN gone THEN 4 WHEN fresh THEN 5 ELSE 6 END, NULL, %s, %s'
          ' WHERE gone OR fresh OR before COLLATE "C" IS DISTINCT FROM after COLLATE "C"',
          format(image, 'before', version), format(image, 'after', version))
        ELSE format('SELECT 4, NULL, NULL, NULL WHERE gone UNION ALL SELECT CASE WHEN fresh THEN %s ELSE %s END, name, %s'
          ' FROM unnest(%L::text[], before, after) WITH ORDINALITY AS part (name, was, becomes, place) WHERE NOT gone'
          ' AND (was COLLATE "C" IS DISTINCT FROM becomes COLLATE "C" OR fresh AND place = 1 AND num_nonnulls(VARIADIC after) = 0)',
          CASE kept.style WHEN 'field-back' THEN 7 ELSE 1 END,
          CASE kept.style WHEN 'field-back' THEN 8 WHEN 'field-replace' THEN 3 ELSE 2 END,
          CASE kept.style WHEN 'field-back' THEN 'NULL, NULL' ELSE 'was, becomes' END, heading) END;
      IF kept.deferred AND kept.condition IS NULL AND NOT (part.inserts OR part.truncates) THEN
        -- Another row may have the key already that this one leaves.
        facts := facts || ' UNION ALL SELECT 5, NULL, NULL, NULL WHERE gone';
      END IF;
      body := format('SELECT changed.key, fact.* FROM (%s) AS changed (key, gone, fresh, before, after)'
        ' CROSS JOIN LATERAL (%s) AS fact (kind, name, was, becomes)', body, facts);
    END IF;
    body := format(form, body, quote_literal(called));
    IF kept.condition IS NOT NULL THEN
      -- What a value of another type does to the condition is no reason for a write to fail.
      body := format('BEGIN %s; EXCEPTION WHEN OTHERS THEN %s; END', body, format(form, format(mute, 'condition'), quote_literal(called)));
    END IF;
    IF part.is_foreign AND NOT part.truncates AND types IS NOT NULL THEN
      body := CASE WHEN part.by_row THEN format(/* guard_row */'', format(types, CASE WHEN part.deletes THEN o ELSE n END))
        ELSE format(/* guard_rows */'', format(types, CASE WHEN part.deletes THEN o ELSE n END),
          CASE WHEN part.deletes THEN 'old_rows AS o' ELSE 'new_rows AS n' END) END || '; ' || body;
    END IF;
  END IF;
  EXECUTE format('CREATE OR REPLACE FUNCTION %I.%I() RETURNS trigger LANGUAGE plpgsql SECURITY %s SET search_path = pg_catalog, pg_temp'
    ' SET row_security = %s SET datestyle = ''ISO, YMD'' SET intervalstyle = ''postgres'' SET timezone = ''UTC'''
    ' SET extra_float_digits = 1 SET bytea_output = ''hex'' SET jit = off SET enable_mergejoin = off AS %L',
    part.nspname, part.proname, CASE WHEN part.does = 'reading' THEN 'INVOKER' ELSE 'DEFINER' END,
    CASE WHEN part.does = 'reading' THEN 'off' ELSE 'on' END, 'BEGIN ' || body || '; RETURN NULL; END');
  UPDATE /* triggers */event_log_trigger AS entered SET digest = 'followed', table_name = relname, fingerprint = md5(prosrc)
  FROM pg_proc, pg_class
  WHERE entered.tracked = class AND entered.name = part.name AND pg_proc.oid = part.function AND pg_class.oid = part.tgrelid;
END LOOP;
UPDATE /* tracked */event_log_tracked SET schema_name = own_schema, table_name = own_name WHERE id = class;
UPDATE /* relations */event_log_relation AS known SET schema_name = nspname, table_name = relname
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE known.tracked = class AND pg_class.oid = known.relation::oid;
DELETE FROM /* relations */event_log_relation AS known
WHERE known.tracked = class AND NOT EXISTS (SELECT FROM pg_class WHERE oid = known.relation::oid);
-- The class as it is now begins with the next row of the log. Nobody writes to an altered table until this transaction ends.
INSERT INTO /* history */event_log_schema (table_name, table_version, seen_at, first_record, described)
SELECT own_schema || '.' || own_name, version,
  to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"+00:00"'),
  coalesce(/* next */(0), (SELECT max(/* record_id */record_id) FROM /* log */event_log)),
  json_build_object('raw', (SELECT json_agg(raw ORDER BY relation <> own::bigint, relation) FROM (
      SELECT listed.relation, (SELECT /* numbers */'{}'::json FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
        WHERE pg_class.oid = listed.relation::oid) AS raw
      FROM (SELECT DISTINCT relation FROM /* columns */event_log_column WHERE tracked = class) AS listed
      WHERE EXISTS (SELECT FROM pg_class WHERE oid = listed.relation::oid)) AS described),
    'key', to_json(numbers), 'place', (SELECT count(*) FROM /* history */event_log_schema),
    'former', CASE WHEN (kept.schema_name, kept.table_name) IS DISTINCT FROM (own_schema::text, own_name::text)
      THEN kept.schema_name || '.' || kept.table_name END,
    'image', CASE WHEN kept.style = 'image' THEN to_json(logged) END)::text;
END
$eventlog$;

-- follower_hand: what a trigger hands over that may read and not write
PERFORM set_config('eventlog.facts', '[' || coalesce((
  SELECT json_agg(json_build_array(change.key, change.kind, change.name, change.was, change.becomes))
  FROM (/* changes */'') AS change (key, kind, name, was, becomes) WHERE /* called */'usr' IS NOT NULL)::text, '[]') || ']', true);

-- next_of_identity: the next number of a column that numbers itself; none where it does not
nextval(pg_get_serial_sequence(/* log_name */'event_log', /* column_name */'record_id'));

-- follower_trigger: for every command, whatever it is called; the function looks whether it is about a tracked table
CREATE EVENT TRIGGER /* trigger */event_log_ddl ON /* event */ddl_command_end EXECUTE FUNCTION /* function */eventlog_ddl.event_log();

-- drop_follower_trigger: takes it off
DROP EVENT TRIGGER IF EXISTS /* trigger */event_log_ddl;

-- drop_follower_functions: takes off what it ran, and what made functions anew
DROP FUNCTION IF EXISTS /* function */eventlog_ddl.event_log(), /* follow */eventlog_ddl.event_log_follow(bigint);

-- drop_follower_schema: takes the schema off with the last log's
DO $eventlog$
BEGIN
IF to_regnamespace('eventlog_ddl') IS NOT NULL
    AND NOT EXISTS (SELECT FROM pg_proc WHERE pronamespace = to_regnamespace('eventlog_ddl')) THEN
DROP SCHEMA eventlog_ddl;
END IF;
END
$eventlog$;

-- standing_follower: the event triggers that stand there, with their function's text, and whether they are ours to change
SELECT evtname AS name, prosrc AS source, evtenabled <> 'D' AND evtenabled <> 'R' AS enabled, evtowner::regrole::text AS owner,
  pg_has_role(evtowner, 'MEMBER') AS mine, proowner = evtowner AND prosecdef AS whole,
  (SELECT made.prosrc FROM pg_proc AS made WHERE made.pronamespace = pg_proc.pronamespace AND made.proname = :follow) AS follow
FROM pg_event_trigger JOIN pg_proc ON pg_proc.oid = evtfoid WHERE evtname IN (:altered, :dropped);

-- unsafe_owner: a role that can log in, is no superuser, and owns the registry or may become its owner
SELECT rolname FROM pg_roles WHERE rolcanlogin AND NOT rolsuper
  AND pg_has_role(oid, (SELECT relowner FROM pg_class WHERE oid = to_regclass(/* registry */'public.event_log_trigger')), 'MEMBER') LIMIT 1;
