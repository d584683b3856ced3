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

-- own_function: what a trigger runs is the log's owner's, whoever makes it
ALTER FUNCTION /* function */event_log_usr_insert() OWNER TO /* function_owner */CURRENT_USER;
