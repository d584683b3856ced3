-- Follows ALTER TABLE in its own transaction. Each function of a trigger that follows has a comment: what it watches (tables
-- by their numbers, and columns, or all of them), how that looked when it was made, and the bridge, which is put in its place
-- when it looks otherwise. `eventlog/sql/triggers/bridge.py` writes it.

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
bridge json; marker jsonb; body text; keys text[]; formerly text; today text; renamed boolean;
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
      WHERE NOT EXISTS (SELECT FROM pg_class WHERE oid = (entry ->> 0)::oid))
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
  IF renamed OR marker <> (bridge -> 'marker')::jsonb THEN
    EXECUTE format('COMMENT ON TRIGGER %I ON %s IS %L', changed.tgname, changed.tgrelid::regclass, 'eventlog ' || marker::text);
    IF octet_length('asked: ' || (marker ->> 'table')) <= 200 THEN
      UPDATE /* marks */event_log_mark SET name = 'asked: ' || (marker ->> 'table'),
        value = jsonb_build_object('table', marker -> 'table', 'options', (marker -> 'options') - 'foreign' - 'deferred')::text
      WHERE name = 'asked: ' || formerly;
    END IF;
  END IF;
END LOOP;
END
$eventlog$;

-- own_function: the event trigger changes only what is its owner's, and a function that is replaced keeps the owner that it had
ALTER FUNCTION /* function */event_log_usr_insert() OWNER TO CURRENT_USER;

-- ddl_trigger: every command that may alter a table
CREATE EVENT TRIGGER /* trigger */event_log_ddl ON ddl_command_end
WHEN TAG IN ('ALTER TABLE', 'ALTER TYPE', 'ALTER DOMAIN', 'ALTER SCHEMA', 'DROP TYPE', 'DROP DOMAIN', 'DROP EXTENSION', 'DROP SCHEMA', 'DROP OWNED')
EXECUTE FUNCTION /* function */event_log_ddl();

-- drop_ddl_trigger: takes it off
DROP EVENT TRIGGER IF EXISTS /* trigger */event_log_ddl;

-- standing_ddl_trigger: the event trigger that stands there, with its function's text, and whether it is ours to change
SELECT prosrc AS source, evtenabled <> 'D' AND evtenabled <> 'R' AS enabled, evtowner::regrole::text AS owner,
  pg_has_role(evtowner, 'MEMBER') AS mine, proowner = evtowner AND prosecdef AS whole
FROM pg_event_trigger JOIN pg_proc ON pg_proc.oid = evtfoid WHERE evtname = :trigger;
