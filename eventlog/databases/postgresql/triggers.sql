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

-- text_of_int: a whole number
/* value */n.idu::text;

-- text_of_state: true and false as 1 and 0
/* value */n.active::integer::text;

-- text_of_number: a number
/* value */n.share::text;

-- text_of_money: an amount of money as a number, whatever currency the session writes
/* value */n.price::numeric::text;

-- text_of_date: a date; JSON has others too, in ISO's form whatever the session has: far ones, to which no time can be
-- added, those before Christ, infinite ones
CASE WHEN /* value */n.born >= '0001-01-01' AND /* value */n.born < '10000-01-01'
THEN to_char(/* value */n.born, 'YYYY-MM-DD') ELSE to_json(/* value */n.born) #>> '{}' END;

-- text_of_time: a time of day
/* value */n.starts::text;

-- text_of_timestamp: date and time with nine digits of a second
CASE WHEN /* value */n.seen >= '0001-01-01' AND /* value */n.seen < 'infinity'
THEN to_char(/* value */n.seen, 'YYYY-MM-DD HH24:MI:SS.US') || '000'
ELSE replace(to_json(/* value */n.seen) #>> '{}', 'T', ' ') END;

-- text_of_zoned: the same in UTC
CASE WHEN /* value */n.seen AT TIME ZONE 'UTC' >= '0001-01-01' AND /* value */n.seen < 'infinity'
THEN to_char(/* value */n.seen AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '000'
ELSE replace(to_json(/* value */n.seen AT TIME ZONE 'UTC') #>> '{}', 'T', ' ') END;

-- quoted: a key's value, in quotes where the grammar of table_key asks for them
CASE WHEN (/* text */n.idu) COLLATE "C" ~ E'[,;\'+"=\\\\<>]|^ | $'
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

-- parent_stands: whether the parent of a child row is there; a scalar query, so that it stays a look-up by key
((SELECT true FROM /* parent */usr AS /* row */usr WHERE /* match */(usr.idu = o.idu) AND /* condition */(1 = 1)) IS NOT NULL);

-- fact: one row of the log, if its condition holds
SELECT /* key */'idu=1', /* kind */eventlog_kind_6, /* column */NULL, /* old */NULL, /* new */NULL
WHERE /* condition */(1 = 1);

-- facts_together: a row of the log for each column of a row, if the condition holds, which is asked once for all of them
SELECT /* key */'idu=1', image.kind, image.name, image.old, image.new FROM (VALUES
  /* values */(eventlog_kind_2, 'fname', o.fname, n.fname)
) AS image (kind, name, old, new) WHERE /* condition */(1 = 1);

-- image_value: a value in the image of a row
coalesce(to_json(/* text */n.fname)::text, 'null');

-- whole_row_part: a column in the text of a row without a key; nothing where it is NULL
coalesce(/* name */',"fname":' || to_json(/* text */n.fname)::text, '');

-- whole_row: the text of a row without a key
'{' || substr(/* parts */',"fname":"x"', 2) || '}';

-- whole_row_key: the key of a row without one: the hash of its text
/* name */'eventlog_whole_row=' || encode(sha256(convert_to(/* text */'{}', getdatabaseencoding())), 'hex');

-- log_each: writes the one fact that each row of an update's source tells: it left, came or changed
-- Without a subquery for each row, which a bulk statement would pay for and a single row all the more.
INSERT INTO /* log */event_log (/* table_key */table_key, /* status */status, /* event_type */event_type,
  /* event_time */event_time, /* perpetrator */perpetrator, /* table_name */table_name)
SELECT CASE WHEN /* left */(n.idu IS NULL) THEN /* old_key */'idu=1' ELSE /* new_key */'idu=1' END,
  /* waiting */eventlog_waiting,
  CASE WHEN /* left */(n.idu IS NULL) THEN /* kind_left */eventlog_kind_4
       WHEN /* came */(o.idu IS NULL) THEN /* kind_came */eventlog_kind_5 ELSE /* kind_stayed */eventlog_kind_6 END,
  /* now */eventlog_now, /* user */eventlog_user, /* table */'usr'
FROM /* source */new_rows WHERE /* condition */(1 = 1);

-- log_facts: writes the facts of every row of a source
-- A full join pairs the rows of an update: it cannot become the nested loop that a plan kept from single rows would
-- run over a bulk statement, and it shows keys that left and keys that came.
INSERT INTO /* log */event_log (/* table_key */table_key, /* status */status, /* event_type */event_type,
  /* event_time */event_time, /* perpetrator */perpetrator, /* table_name */table_name, /* column_name */column_name,
  /* old_value */old_value, /* new_value */new_value)
SELECT fact.key, /* waiting */eventlog_waiting, fact.kind, /* now */eventlog_now, /* user */eventlog_user,
  /* table */'usr', fact.name, fact.old, fact.new
FROM /* source */new_rows CROSS JOIN LATERAL (
/* facts */
) AS fact (key, kind, name, old, new);

-- listed_columns: the columns of a row, which the event trigger puts in: their names, and their values before and after
CROSS JOIN LATERAL (SELECT listed.place, listed.name, listed.old, listed.new, count(listed.new) OVER () AS filled,
  bool_or((listed.old) COLLATE "C" IS DISTINCT FROM (listed.new) COLLATE "C") OVER () AS changed, /* image */NULL AS row
  FROM (VALUES /* columns */(1, 'fname', 'x', 'x')) AS listed (place, name, old, new)) AS image;

-- listed_image: the row before, as a text of JSON
'{' || string_agg(to_json(listed.name)::text || ':' || coalesce(to_json(listed.old)::text, 'null'), ',') OVER () || '}';

-- listed_nothing: where nobody asks for it
NULL::text;

-- listed_filled: whether a value of a row that came is logged; of one without any the first column speaks
(image.new IS NOT NULL OR (image.filled = 0 AND image.place = 1));

-- listed_changed: whether a column of a row that stayed has another value
(image.old) COLLATE "C" IS DISTINCT FROM (image.new) COLLATE "C";

-- hand_each: as `log_each`, for the next trigger to write
eventlog_facts := eventlog_facts || (SELECT coalesce(json_agg(json_build_array(
  CASE WHEN /* left */(n.idu IS NULL) THEN /* old_key */'idu=1' ELSE /* new_key */'idu=1' END,
  CASE WHEN /* left */(n.idu IS NULL) THEN /* kind_left */eventlog_kind_4
       WHEN /* came */(o.idu IS NULL) THEN /* kind_came */eventlog_kind_5 ELSE /* kind_stayed */eventlog_kind_6 END,
  NULL::text, NULL::text, NULL::text)), '[]')::text
FROM /* source */new_rows WHERE /* condition */(1 = 1));

-- hand_facts: as `log_facts`, for the next trigger to write
eventlog_facts := eventlog_facts || (SELECT coalesce(json_agg(json_build_array(
  fact.key, fact.kind, fact.name, fact.old, fact.new)), '[]')::text
FROM /* source */new_rows CROSS JOIN LATERAL (
/* facts */
) AS fact (key, kind, name, old, new));

-- child_side: the values that stood, or stand, under a parent
SELECT /* key */'idu=1' AS key, /* values */phoneno FROM /* source */old_rows WHERE /* condition */(1 = 1);

-- log_child_values: one row of the log for each value
INSERT INTO /* log */event_log (/* table_key */table_key, /* status */status, /* event_type */event_type,
  /* event_time */event_time, /* perpetrator */perpetrator, /* table_name */table_name, /* column_name */column_name,
  /* old_value */old_value, /* new_value */new_value)
SELECT side.key, /* waiting */eventlog_waiting, /* kind */eventlog_kind_2, /* now */eventlog_now, /* user */eventlog_user,
  /* table */'usr', /* column */'phoneno', /* old */NULL, /* new */NULL
FROM (/* sides */) AS side;

-- log_child_reads: one row of the log for each parent
INSERT INTO /* log */event_log (/* table_key */table_key, /* status */status, /* event_type */event_type,
  /* event_time */event_time, /* perpetrator */perpetrator, /* table_name */table_name, /* column_name */column_name,
  /* old_value */old_value, /* new_value */new_value)
SELECT side.key, /* waiting */eventlog_waiting, /* kind */eventlog_kind_6, /* now */eventlog_now, /* user */eventlog_user,
  /* table */'usr', /* column */NULL, NULL, NULL
FROM (/* sides */) AS side GROUP BY side.key;

-- hand_child_values: as `log_child_values`, for the next trigger to write
eventlog_facts := eventlog_facts || (SELECT coalesce(json_agg(json_build_array(
  side.key, /* kind */eventlog_kind_2, /* column */'phoneno'::text, /* old */NULL::text, /* new */NULL::text)), '[]')::text
FROM (/* sides */) AS side);

-- hand_child_reads: as `log_child_reads`, for the next trigger to write
eventlog_facts := eventlog_facts || (SELECT coalesce(json_agg(json_build_array(
  side.key, /* kind */eventlog_kind_6, /* column */NULL::text, NULL::text, NULL::text)), '[]')::text
FROM (SELECT read.key FROM (/* sides */) AS read GROUP BY read.key) AS side);

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
  /* event_time */event_time, /* perpetrator */perpetrator, /* table_name */table_name, /* column_name */column_name,
  /* old_value */old_value, /* new_value */new_value)
SELECT fact.value ->> 0, /* waiting */eventlog_waiting, (fact.value ->> 1)::integer, /* now */eventlog_now, /* user */eventlog_user,
  /* table */'usr', fact.value ->> 2, fact.value ->> 3, fact.value ->> 4
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

-- Follows ALTER TABLE in its own transaction. Each function of a trigger that follows has a comment: what it watches (tables
-- by their numbers, and columns, or all of them), how that looked when it was made, and the bridge, which is put in its place
-- when it looks otherwise. `eventlog/capture/ddl.py` writes it.

-- numbered_columns: the columns of a table by name, with the numbers of table, column and type
SELECT attname AS name, attrelid::bigint AS relation, attnum AS number, atttypid::bigint AS type FROM pg_attribute
JOIN pg_class ON pg_class.oid = attrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = :schema AND relname = :table AND attnum > 0 AND NOT attisdropped;

-- shape_of: how tables look now: their names, columns and keys; of each of them some columns, or all
(SELECT md5(string_agg(concat_ws(' ', place, nspname, relname,
    (SELECT string_agg(concat_ws(' ', attnum, quote_ident(attname), atttypid, atttypmod, attcollation), ',' ORDER BY attnum)
     FROM pg_attribute WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
       AND (entry ->> 1 IS NULL OR (entry -> 1)::jsonb @> to_jsonb(attnum))),
    (SELECT conkey::text FROM pg_constraint WHERE conrelid = pg_class.oid AND contype = 'p')), ';' ORDER BY place))
  FROM json_array_elements(/* watch */'[]'::json) WITH ORDINALITY AS watched (entry, place)
  JOIN pg_class ON pg_class.oid = (entry ->> 0)::oid JOIN pg_namespace ON pg_namespace.oid = relnamespace);

-- shape_now: how tables look now
SELECT /* shape */NULL;

-- ddl_function: what the event trigger runs. It changes functions of its own owner's only, in the schema of its log only, and
-- reads what they become out of these functions: no owner of a table can write there. Names are all that it puts in. It plans no
-- query of anybody's table but the log's marks.
CREATE OR REPLACE FUNCTION /* function */event_log_ddl() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $eventlog$
DECLARE
changed record; held record; watched record;
bridge json; marker jsonb; body text; keys text[]; formerly text; today text; renamed boolean; token text[];
former_names jsonb := '{}';
BEGIN
FOR changed IN
  SELECT found.watch, found.shape, found.told, tgname, tgrelid FROM (
    SELECT called.oid, called.part[1]::json AS watch, called.part[2] AS former, called.part[3] AS told,
      /* shape_of_watch */'' AS shape
    FROM (
      SELECT pg_proc.oid, regexp_match(prosrc, '/[*] eventlog ddl ([^ ]+) ([^ ]+) ([^ ]+) [*]/') AS part FROM pg_proc
      WHERE pronamespace = /* schema */'public'::regnamespace AND prorettype = 'trigger'::regtype
        AND proowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)
    ) AS called WHERE called.part IS NOT NULL OFFSET 0
  ) AS found JOIN pg_trigger ON tgfoid = found.oid AND tgrelid = (found.watch -> 0 ->> 0)::oid AND tgparentid = 0
  WHERE found.shape IS DISTINCT FROM found.former
    AND NOT EXISTS (SELECT FROM json_array_elements(found.watch) AS watched (entry)
      WHERE entry ->> 2 IS NULL AND NOT EXISTS (SELECT FROM pg_class WHERE oid = (entry ->> 0)::oid))
LOOP
  bridge := convert_from(decode(changed.told, 'base64'), 'UTF8');
  marker := bridge -> 'marker';
  formerly := marker ->> 'table';
  body := bridge ->> 'body';
  renamed := false;
  FOR held IN
    SELECT (entry ->> 0)::oid AS relation, (entry ->> 1)::integer AS number, (entry ->> 2)::oid AS former,
      attname AS name, atttypid AS type
    FROM json_array_elements(bridge -> 'keys') AS told (entry)
    LEFT JOIN pg_attribute ON attrelid = (entry ->> 0)::oid AND attnum = (entry ->> 1)::integer AND NOT attisdropped
  LOOP
    IF held.name IS NULL THEN
      RAISE EXCEPTION 'eventlog: a column goes by which rows of % are known.', formerly
      USING HINT = format('Run eventlog untrack %s before, and eventlog track afterwards.', formerly);
    ELSIF held.type <> held.former AND NOT (held.type IN (20, 21, 23) AND held.former IN (20, 21, 23))
        AND NOT (held.type IN (25, 1043) AND held.former IN (25, 1043)) THEN
      RAISE EXCEPTION 'eventlog: rows of % are known by %, whose new type would give them other names.', formerly, held.name
      USING HINT = format('Run eventlog untrack %s before, and eventlog track afterwards.', formerly);
    ELSIF held.name ~ E'[,;\'+"=\\\\<>{}]|^ | $' THEN
      RAISE EXCEPTION 'eventlog: the key column % of % would have a name that a table_key cannot carry.', held.name, formerly
      USING HINT = 'Choose a name without any of these: , ; + = < > { }, a quote, a backslash.';
    END IF;
    body := replace(body, format('"eventlog{%s.%s}"', held.relation, held.number), quote_ident(held.name));
    body := replace(body, format('eventlog{%s.%s}', held.relation, held.number), held.name);
  END LOOP;
  FOR watched IN
    SELECT pg_class.oid, relname AS name, nspname AS schema FROM json_array_elements(changed.watch) AS told (entry)
    JOIN pg_class ON pg_class.oid = (entry ->> 0)::oid JOIN pg_namespace ON pg_namespace.oid = relnamespace
  LOOP
    IF strpos(watched.schema || watched.name, 'eventlog{') > 0 THEN
      RAISE EXCEPTION 'eventlog: % cannot be followed to the name %.', formerly, watched.name;
    END IF;
    renamed := renamed OR (watched.oid = changed.tgrelid AND watched.name <> bridge ->> 'name');
    today := format('%I.%I', watched.schema, watched.name);
    body := replace(body, format('''"eventlog{}"."eventlog{%s}"''', watched.oid), quote_literal(today));
    body := replace(body, format('"eventlog{}"."eventlog{%s}"', watched.oid), today);
    body := replace(body, format('''eventlog{}.eventlog{%s}''', watched.oid), quote_literal(
      CASE WHEN watched.schema = /* schema_name */'public' THEN '' ELSE watched.schema || '.' END || watched.name));
    IF watched.oid = (bridge ->> 'parent')::oid THEN
      marker := marker || jsonb_build_object('table', watched.schema || '.' || watched.name);
    ELSIF marker -> 'options' -> 'children' IS NOT NULL
        AND NOT lower(watched.name) IN (SELECT lower(substring(name FROM '[^.]*$'))
          FROM jsonb_array_elements_text(marker -> 'options' -> 'children') AS asked (name)) THEN
      RAISE EXCEPTION 'eventlog: % is tracked with child tables by their names.', formerly
      USING HINT = format('Run eventlog untrack %s before, and eventlog track afterwards.', formerly);
    END IF;
  END LOOP;
  -- Where values are logged, they are listed as they are now, each with what makes a text of it.
  IF strpos(body, 'eventlog{columns:') > 0 AND EXISTS (SELECT FROM pg_attribute
      WHERE attrelid = changed.tgrelid AND attnum > 0 AND NOT attisdropped AND strpos(attname, 'eventlog{') > 0) THEN
    RAISE EXCEPTION 'eventlog: % cannot be followed with a column whose name contains "eventlog{".', formerly;
  END IF;
  LOOP
    token := regexp_match(body, 'eventlog[{]columns:([^:}]*):([^}]*)[}]');
    EXIT WHEN token IS NULL;
    body := replace(body, format('eventlog{columns:%s:%s}', token[1], token[2]), (
      SELECT string_agg(format('(%s, %L, %s, %s)', place, name,
        CASE token[1] WHEN '-' THEN 'NULL' ELSE replace(form, 'eventlog{value}', token[1] || '.' || quote_ident(name)) END,
        CASE token[2] WHEN '-' THEN 'NULL' ELSE replace(form, 'eventlog{value}', token[2] || '.' || quote_ident(name)) END),
        E',\n  ' ORDER BY place)
      FROM (
        SELECT row_number() OVER (ORDER BY attnum) AS place, attname::text AS name,
          CASE WHEN base.type >= 16384 THEN /* made_text */'' ELSE replace(CASE
            WHEN base.type = 17 THEN /* octet_text */'' WHEN base.type = 790 THEN /* money_text */''
            WHEN base.type = 16 OR (base.type = 1560 AND base.typmod = 1) THEN /* state_text */''
            WHEN base.type = 1082 THEN /* date_text */''
            WHEN base.type = 1114 THEN /* timestamp_text */''
            WHEN base.type = 1184 THEN /* zoned_text */'' ELSE /* string_text */'' END,
            'eventlog{value}', CASE WHEN base.type = atttypid THEN 'eventlog{value}' ELSE replace(
              /* domain_text */'', 'eventlog{type}', format_type(base.type, base.typmod)) END
          ) END AS form
        FROM pg_attribute AS own CROSS JOIN LATERAL (
          WITH RECURSIVE chain (type, typmod, step) AS (SELECT own.atttypid, own.atttypmod, 0
            UNION ALL SELECT typbasetype, typtypmod, step + 1
            FROM chain JOIN pg_type ON pg_type.oid = type WHERE typtype = 'd')
          SELECT type, typmod FROM chain ORDER BY step DESC LIMIT 1) AS base
        WHERE attrelid = changed.tgrelid AND attnum > 0 AND NOT attisdropped
          AND to_jsonb(own) ->> 'attgenerated' IS DISTINCT FROM 'v'
          AND (attnum IN (SELECT value::integer FROM json_array_elements_text(bridge -> 'columns'))
            OR (bridge ->> 'columns' IS NULL AND attnum NOT IN (SELECT value::integer FROM json_array_elements_text(bridge -> 'key')))
            -- A row of a table that is all key is known by the first column of it.
            OR (attnum = (bridge -> 'key' ->> 0)::integer AND NOT EXISTS (SELECT FROM pg_attribute AS other
              WHERE attrelid = changed.tgrelid AND attnum > 0 AND NOT attisdropped AND CASE WHEN bridge ->> 'columns' IS NULL
                THEN attnum NOT IN (SELECT value::integer FROM json_array_elements_text(bridge -> 'key'))
                ELSE attnum IN (SELECT value::integer FROM json_array_elements_text(bridge -> 'columns')) END)))
      ) AS listed));
  END LOOP;
  -- A key that is not the primary one, or not any more, is kept by its columns, so that objects keep their names.
  SELECT array_agg(attname::text ORDER BY place) INTO keys FROM json_array_elements_text(bridge -> 'key') WITH ORDINALITY AS told (number, place)
  JOIN pg_attribute ON attrelid = (bridge ->> 'parent')::oid AND attnum = number::integer;
  marker := jsonb_set(marker, '{options}', (marker -> 'options') - 'key' || CASE WHEN EXISTS (
    SELECT FROM pg_constraint WHERE conrelid = (bridge ->> 'parent')::oid AND contype = 'p'
      AND conkey::integer[] = ARRAY(SELECT value::integer FROM json_array_elements_text(bridge -> 'key')))
    THEN '{}' ELSE jsonb_build_object('key', keys) END);
  EXECUTE (bridge ->> 'head') || quote_literal(replace(body, 'eventlog{ddl}', format('/* eventlog ddl %s %s %s */',
    changed.watch, changed.shape, replace(encode(convert_to((bridge::jsonb || jsonb_build_object('marker', marker))::text, 'UTF8'),
      'base64'), E'\n', ''))));
  IF marker ->> 'table' <> formerly THEN
    former_names := former_names || jsonb_build_object(marker ->> 'table', formerly);
  END IF;
  IF renamed OR marker <> (bridge -> 'marker')::jsonb THEN
    EXECUTE format('COMMENT ON TRIGGER %I ON %s IS %L', changed.tgname, changed.tgrelid::regclass, 'eventlog ' || marker::text);
    UPDATE /* marks */event_log_mark SET name = 'asked: ' || (marker ->> 'table'),
      value = jsonb_build_object('table', marker -> 'table',
        'options', (marker -> 'options') - 'foreign' - 'deferred',
        'watched', coalesce(marker -> 'watched', '[]'))::text
    WHERE name = 'asked: ' || formerly;
  END IF;
END LOOP;
-- Each class as it is now begins with the next row of the log. Nobody writes to an altered table until this transaction ends.
FOR changed IN
  SELECT parent, min(called) AS called, json_build_object('raw', json_agg(raw ORDER BY relation <> parent, relation),
    'key', min(key)::json) AS described
  FROM (
    SELECT DISTINCT ON (tgrelid) tgrelid AS relation, (known.bridge ->> 'parent')::oid AS parent,
      known.bridge #>> '{marker,table}' AS called, known.bridge ->> 'key' AS key,
      (SELECT /* numbers */'{}'::json FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
       WHERE pg_class.oid = tgrelid) AS raw
    FROM (
      SELECT followed.oid, (followed.part[1]::json -> 0 ->> 0)::oid AS own,
        convert_from(decode(followed.part[3], 'base64'), 'UTF8')::json AS bridge FROM (
        SELECT pg_proc.oid, regexp_match(prosrc, '/[*] eventlog ddl ([^ ]+) ([^ ]+) ([^ ]+) [*]/') AS part FROM pg_proc
        WHERE pronamespace = /* schema */'public'::regnamespace AND prorettype = 'trigger'::regtype
          AND proowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)
      ) AS followed WHERE followed.part IS NOT NULL OFFSET 0
    -- In a restored database tables have other numbers, until they are tracked again.
    ) AS known JOIN pg_trigger ON tgfoid = known.oid AND tgrelid = known.own AND tgparentid = 0
    ORDER BY tgrelid
  ) AS seen GROUP BY parent
LOOP
  IF (changed.described -> 'raw')::jsonb IS DISTINCT FROM (
    SELECT (described::json -> 'raw')::jsonb FROM /* history */event_log_schema
    WHERE (described::json #>> '{raw,0,relation}')::oid = changed.parent
    ORDER BY (described::json ->> 'place')::bigint DESC NULLS LAST, table_version DESC LIMIT 1) THEN
    INSERT INTO /* history */event_log_schema (table_name, table_version, seen_at, first_record, described)
    SELECT changed.called, coalesce(max(table_version), 0) + 1,
      to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"+00:00"'),
      coalesce(/* next */(0), (SELECT max(/* record_id */record_id) FROM /* log */event_log)),
      (changed.described::jsonb || jsonb_build_object('place', (SELECT count(*) FROM /* history */event_log_schema),
        'former', former_names ->> changed.called))::text
    FROM /* history */event_log_schema WHERE table_name = changed.called;
  END IF;
END LOOP;
END
$eventlog$;

-- next_of_identity: the next number of a column that numbers itself; none where it does not
nextval(pg_get_serial_sequence(/* log_name */'event_log', /* column_name */'record_id'));

-- own_function: what a trigger runs is the log's owner's, whoever makes it
ALTER FUNCTION /* function */event_log_usr_insert() OWNER TO /* function_owner */CURRENT_USER;

-- ddl_trigger: every command that may alter a table; with CASCADE, a column goes with its type, its
-- collation, and what it is generated by
CREATE EVENT TRIGGER /* trigger */event_log_ddl ON ddl_command_end
WHEN TAG IN ('ALTER TABLE', 'ALTER TYPE', 'ALTER DOMAIN', 'ALTER SCHEMA', 'DROP TABLE', 'DROP TYPE',
  'DROP DOMAIN', 'DROP EXTENSION', 'DROP SCHEMA', 'DROP OWNED', 'DROP FUNCTION', 'DROP ROUTINE',
  'DROP OPERATOR', 'DROP COLLATION', 'DROP LANGUAGE', 'DROP VIEW', 'DROP MATERIALIZED VIEW',
  'DROP FOREIGN TABLE', 'DROP SEQUENCE', 'DROP INDEX', 'DROP TEXT SEARCH CONFIGURATION',
  'DROP TEXT SEARCH DICTIONARY')
EXECUTE FUNCTION /* function */event_log_ddl();

-- drop_ddl_trigger: takes it off
DROP EVENT TRIGGER IF EXISTS /* trigger */event_log_ddl;

-- standing_ddl_trigger: the event trigger that stands there, with its function's text, and whether it is ours to change
SELECT prosrc AS source, evtenabled <> 'D' AND evtenabled <> 'R' AS enabled, evtowner::regrole::text AS owner,
  pg_has_role(evtowner, 'MEMBER') AS mine, proowner = evtowner AND prosecdef AS whole
FROM pg_event_trigger JOIN pg_proc ON pg_proc.oid = evtfoid WHERE evtname = :trigger;
