-- event_log_usr_insert on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_insert() RETURNS trigger LANGUAGE plpgsql SECURITY INVOKER
SET search_path = pg_catalog, pg_temp SET row_security = off SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $eventlog$
DECLARE
eventlog_facts text[] := '{}';
BEGIN
eventlog_facts := eventlog_facts || (SELECT coalesce(json_agg(json_build_array(
  fact.key, fact.kind, fact.name, fact.old, fact.new)), '[]')::text
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'idu=' || NEW.idu::text, 5, NULL, NULL, CASE WHEN coalesce(octet_length(replace(encode(NEW.photo, 'base64'), E'\n', '')::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', NEW.fname::text, replace(encode(NEW.photo, 'base64'), E'\n', ''), CASE WHEN NEW.seen >= '0001-01-01' AND NEW.seen < 'infinity'
THEN to_char(NEW.seen, 'YYYY-MM-DD HH24:MI:SS.US') || '000'
ELSE replace(to_json(NEW.seen) #>> '{}', 'T', ' ') END])::text END
WHERE (EXISTS (SELECT 1 FROM (SELECT NEW.idu AS idu, NEW.fname AS fname, NEW.photo AS photo, NEW.seen AS seen) AS usr WHERE (fname = 'Ann')))
) AS fact (key, kind, name, old, new));
PERFORM set_config('eventlog.facts', '[' || array_to_string(eventlog_facts, ',') || ']', true);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_insert() FROM PUBLIC
CREATE TRIGGER event_log_usr_insert AFTER INSERT ON usr
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr_insert()

-- event_log_usr_insert_written on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_insert_written() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp 
AS $eventlog$
DECLARE
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
SELECT fact.value ->> 0, eventlog_waiting, (fact.value ->> 1)::integer, eventlog_now, eventlog_user,
  'usr', fact.value ->> 2, fact.value ->> 3, fact.value ->> 4
FROM json_array_elements(current_setting('eventlog.facts')::json) AS part (value)
CROSS JOIN LATERAL json_array_elements(part.value) AS fact (value);
PERFORM set_config('eventlog.facts', '', true);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_insert_written() FROM PUBLIC
CREATE TRIGGER event_log_usr_insert_written AFTER INSERT ON usr
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr_insert_written()

-- event_log_usr_update on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_update() RETURNS trigger LANGUAGE plpgsql SECURITY INVOKER
SET search_path = pg_catalog, pg_temp SET row_security = off SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $eventlog$
DECLARE
eventlog_facts text[] := '{}';
BEGIN
eventlog_facts := eventlog_facts || (SELECT coalesce(json_agg(json_build_array(
  fact.key, fact.kind, fact.name, fact.old, fact.new)), '[]')::text
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'idu=' || OLD.idu::text, 4, NULL, CASE WHEN coalesce(octet_length(replace(encode(OLD.photo, 'base64'), E'\n', '')::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', OLD.fname::text, replace(encode(OLD.photo, 'base64'), E'\n', ''), CASE WHEN OLD.seen >= '0001-01-01' AND OLD.seen < 'infinity'
THEN to_char(OLD.seen, 'YYYY-MM-DD HH24:MI:SS.US') || '000'
ELSE replace(to_json(OLD.seen) #>> '{}', 'T', ' ') END])::text END, NULL
WHERE ((OLD.idu IS DISTINCT FROM NEW.idu)
  AND EXISTS (SELECT 1 FROM (SELECT OLD.idu AS idu, OLD.fname AS fname, OLD.photo AS photo, OLD.seen AS seen) AS usr WHERE (fname = 'Ann')))
UNION ALL SELECT 'idu=' || NEW.idu::text, 5, NULL, NULL, CASE WHEN coalesce(octet_length(replace(encode(NEW.photo, 'base64'), E'\n', '')::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', NEW.fname::text, replace(encode(NEW.photo, 'base64'), E'\n', ''), CASE WHEN NEW.seen >= '0001-01-01' AND NEW.seen < 'infinity'
THEN to_char(NEW.seen, 'YYYY-MM-DD HH24:MI:SS.US') || '000'
ELSE replace(to_json(NEW.seen) #>> '{}', 'T', ' ') END])::text END
WHERE ((OLD.idu IS DISTINCT FROM NEW.idu)
  AND EXISTS (SELECT 1 FROM (SELECT NEW.idu AS idu, NEW.fname AS fname, NEW.photo AS photo, NEW.seen AS seen) AS usr WHERE (fname = 'Ann')))
UNION ALL SELECT 'idu=' || NEW.idu::text, 6, NULL, CASE WHEN coalesce(octet_length(replace(encode(OLD.photo, 'base64'), E'\n', '')::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', OLD.fname::text, replace(encode(OLD.photo, 'base64'), E'\n', ''), CASE WHEN OLD.seen >= '0001-01-01' AND OLD.seen < 'infinity'
THEN to_char(OLD.seen, 'YYYY-MM-DD HH24:MI:SS.US') || '000'
ELSE replace(to_json(OLD.seen) #>> '{}', 'T', ' ') END])::text END, CASE WHEN coalesce(octet_length(replace(encode(NEW.photo, 'base64'), E'\n', '')::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', NEW.fname::text, replace(encode(NEW.photo, 'base64'), E'\n', ''), CASE WHEN NEW.seen >= '0001-01-01' AND NEW.seen < 'infinity'
THEN to_char(NEW.seen, 'YYYY-MM-DD HH24:MI:SS.US') || '000'
ELSE replace(to_json(NEW.seen) #>> '{}', 'T', ' ') END])::text END
WHERE (NOT (OLD.idu IS DISTINCT FROM NEW.idu)
  AND ((OLD.fname::text) COLLATE "C" IS DISTINCT FROM (NEW.fname::text) COLLATE "C"
  OR (replace(encode(OLD.photo, 'base64'), E'\n', '')) COLLATE "C" IS DISTINCT FROM (replace(encode(NEW.photo, 'base64'), E'\n', '')) COLLATE "C"
  OR OLD.seen IS DISTINCT FROM NEW.seen)
  AND (EXISTS (SELECT 1 FROM (SELECT OLD.idu AS idu, OLD.fname AS fname, OLD.photo AS photo, OLD.seen AS seen) AS usr WHERE (fname = 'Ann'))
  OR EXISTS (SELECT 1 FROM (SELECT NEW.idu AS idu, NEW.fname AS fname, NEW.photo AS photo, NEW.seen AS seen) AS usr WHERE (fname = 'Ann'))))
) AS fact (key, kind, name, old, new));
PERFORM set_config('eventlog.facts', '[' || array_to_string(eventlog_facts, ',') || ']', true);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_update() FROM PUBLIC
CREATE TRIGGER event_log_usr_update AFTER UPDATE ON usr
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr_update()

-- event_log_usr_update_written on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_update_written() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp 
AS $eventlog$
DECLARE
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
SELECT fact.value ->> 0, eventlog_waiting, (fact.value ->> 1)::integer, eventlog_now, eventlog_user,
  'usr', fact.value ->> 2, fact.value ->> 3, fact.value ->> 4
FROM json_array_elements(current_setting('eventlog.facts')::json) AS part (value)
CROSS JOIN LATERAL json_array_elements(part.value) AS fact (value);
PERFORM set_config('eventlog.facts', '', true);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_update_written() FROM PUBLIC
CREATE TRIGGER event_log_usr_update_written AFTER UPDATE ON usr
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr_update_written()

-- event_log_usr_delete on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_delete() RETURNS trigger LANGUAGE plpgsql SECURITY INVOKER
SET search_path = pg_catalog, pg_temp SET row_security = off SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $eventlog$
DECLARE
eventlog_facts text[] := '{}';
BEGIN
eventlog_facts := eventlog_facts || (SELECT coalesce(json_agg(json_build_array(
  fact.key, fact.kind, fact.name, fact.old, fact.new)), '[]')::text
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'idu=' || OLD.idu::text, 4, NULL, CASE WHEN coalesce(octet_length(replace(encode(OLD.photo, 'base64'), E'\n', '')::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', OLD.fname::text, replace(encode(OLD.photo, 'base64'), E'\n', ''), CASE WHEN OLD.seen >= '0001-01-01' AND OLD.seen < 'infinity'
THEN to_char(OLD.seen, 'YYYY-MM-DD HH24:MI:SS.US') || '000'
ELSE replace(to_json(OLD.seen) #>> '{}', 'T', ' ') END])::text END, NULL
WHERE (EXISTS (SELECT 1 FROM (SELECT OLD.idu AS idu, OLD.fname AS fname, OLD.photo AS photo, OLD.seen AS seen) AS usr WHERE (fname = 'Ann')))
) AS fact (key, kind, name, old, new));
PERFORM set_config('eventlog.facts', '[' || array_to_string(eventlog_facts, ',') || ']', true);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_delete() FROM PUBLIC
CREATE TRIGGER event_log_usr_delete AFTER DELETE ON usr
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr_delete()

-- event_log_usr_delete_written on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_delete_written() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp 
AS $eventlog$
DECLARE
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
SELECT fact.value ->> 0, eventlog_waiting, (fact.value ->> 1)::integer, eventlog_now, eventlog_user,
  'usr', fact.value ->> 2, fact.value ->> 3, fact.value ->> 4
FROM json_array_elements(current_setting('eventlog.facts')::json) AS part (value)
CROSS JOIN LATERAL json_array_elements(part.value) AS fact (value);
PERFORM set_config('eventlog.facts', '', true);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_delete_written() FROM PUBLIC
CREATE TRIGGER event_log_usr_delete_written AFTER DELETE ON usr
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr_delete_written()

-- event_log_usr_truncate on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_truncate() RETURNS trigger LANGUAGE plpgsql SECURITY INVOKER
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $eventlog$
DECLARE
eventlog_facts text[] := '{}';
BEGIN
IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
RAISE WARNING 'eventlog: rows of % that others have committed since this transaction began go without being logged.', TG_RELID::regclass
USING HINT = 'TRUNCATE in a READ COMMITTED transaction, or DELETE.';
END IF;
eventlog_facts := eventlog_facts || (SELECT coalesce(json_agg(json_build_array(
  fact.key, fact.kind, fact.name, fact.old, fact.new)), '[]')::text
FROM usr AS o CROSS JOIN LATERAL (
SELECT 'idu=' || o.idu::text, 4, NULL, NULL, NULL
WHERE (EXISTS (SELECT 1 FROM (SELECT o.idu AS idu, o.fname AS fname, o.photo AS photo, o.seen AS seen) AS usr WHERE (fname = 'Ann')))
) AS fact (key, kind, name, old, new));
PERFORM set_config('eventlog.facts', '[' || array_to_string(eventlog_facts, ',') || ']', true);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_truncate() FROM PUBLIC
CREATE TRIGGER event_log_usr_truncate BEFORE TRUNCATE ON usr
FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_usr_truncate()

-- event_log_usr_truncate_written on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_truncate_written() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp 
AS $eventlog$
DECLARE
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
SELECT fact.value ->> 0, eventlog_waiting, (fact.value ->> 1)::integer, eventlog_now, eventlog_user,
  'usr', fact.value ->> 2, fact.value ->> 3, fact.value ->> 4
FROM json_array_elements(current_setting('eventlog.facts')::json) AS part (value)
CROSS JOIN LATERAL json_array_elements(part.value) AS fact (value);
PERFORM set_config('eventlog.facts', '', true);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_truncate_written() FROM PUBLIC
CREATE TRIGGER event_log_usr_truncate_written BEFORE TRUNCATE ON usr
FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_usr_truncate_written()

-- event_log_usr__usr_phone_insert on usr_phone
CREATE OR REPLACE FUNCTION own.event_log_usr__usr_phone_insert() RETURNS trigger LANGUAGE plpgsql SECURITY INVOKER
SET search_path = pg_catalog, pg_temp SET row_security = off 
AS $eventlog$
DECLARE
eventlog_facts text[] := '{}';
BEGIN
eventlog_facts := eventlog_facts || (SELECT coalesce(json_agg(json_build_array(
  fact.key, fact.kind, fact.name, fact.old, fact.new)), '[]')::text
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'idu=' || NEW.idu::text, 1, 'usr_phone.phoneno', NULL, NEW.phoneno::text
WHERE (NEW.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = NEW.idu AND (fname = 'Ann')) IS NOT NULL)
  AND NEW.phoneno IS DISTINCT FROM NULL)
UNION ALL SELECT 'idu=' || NEW.idu::text, 1, 'usr_phone.kind', NULL, NEW.kind::text
WHERE (NEW.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = NEW.idu AND (fname = 'Ann')) IS NOT NULL)
  AND NEW.kind IS DISTINCT FROM NULL)
) AS fact (key, kind, name, old, new));
PERFORM set_config('eventlog.facts', '[' || array_to_string(eventlog_facts, ',') || ']', true);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr__usr_phone_insert() FROM PUBLIC
CREATE TRIGGER event_log_usr__usr_phone_insert AFTER INSERT ON usr_phone
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr__usr_phone_insert()

-- event_log_usr__usr_phone_insert_written on usr_phone
CREATE OR REPLACE FUNCTION own.event_log_usr__usr_phone_insert_written() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp 
AS $eventlog$
DECLARE
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
SELECT fact.value ->> 0, eventlog_waiting, (fact.value ->> 1)::integer, eventlog_now, eventlog_user,
  'usr', fact.value ->> 2, fact.value ->> 3, fact.value ->> 4
FROM json_array_elements(current_setting('eventlog.facts')::json) AS part (value)
CROSS JOIN LATERAL json_array_elements(part.value) AS fact (value);
PERFORM set_config('eventlog.facts', '', true);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr__usr_phone_insert_written() FROM PUBLIC
CREATE TRIGGER event_log_usr__usr_phone_insert_written AFTER INSERT ON usr_phone
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr__usr_phone_insert_written()

-- event_log_usr__usr_phone_update on usr_phone
CREATE OR REPLACE FUNCTION own.event_log_usr__usr_phone_update() RETURNS trigger LANGUAGE plpgsql SECURITY INVOKER
SET search_path = pg_catalog, pg_temp SET row_security = off SET enable_seqscan = off
AS $eventlog$
DECLARE
eventlog_facts text[] := '{}';
BEGIN
eventlog_facts := eventlog_facts || (SELECT coalesce(json_agg(json_build_array(
  fact.key, fact.kind, fact.name, fact.old, fact.new)), '[]')::text
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'idu=' || OLD.idu::text, 2, 'usr_phone.phoneno', OLD.phoneno::text, NULL
WHERE ((((OLD.phoneno::text) COLLATE "C" IS DISTINCT FROM (NEW.phoneno::text) COLLATE "C")
  OR (OLD.idu IS DISTINCT FROM NEW.idu))
  AND OLD.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = OLD.idu AND (fname = 'Ann')) IS NOT NULL)
  AND OLD.phoneno IS DISTINCT FROM NULL)
UNION ALL SELECT 'idu=' || NEW.idu::text, 1, 'usr_phone.phoneno', NULL, NEW.phoneno::text
WHERE ((((OLD.phoneno::text) COLLATE "C" IS DISTINCT FROM (NEW.phoneno::text) COLLATE "C")
  OR (OLD.idu IS DISTINCT FROM NEW.idu))
  AND NEW.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = NEW.idu AND (fname = 'Ann')) IS NOT NULL)
  AND NEW.phoneno IS DISTINCT FROM NULL)
UNION ALL SELECT 'idu=' || OLD.idu::text, 2, 'usr_phone.kind', OLD.kind::text, NULL
WHERE (((OLD.kind IS DISTINCT FROM NEW.kind) OR (OLD.idu IS DISTINCT FROM NEW.idu))
  AND OLD.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = OLD.idu AND (fname = 'Ann')) IS NOT NULL)
  AND OLD.kind IS DISTINCT FROM NULL)
UNION ALL SELECT 'idu=' || NEW.idu::text, 1, 'usr_phone.kind', NULL, NEW.kind::text
WHERE (((OLD.kind IS DISTINCT FROM NEW.kind) OR (OLD.idu IS DISTINCT FROM NEW.idu))
  AND NEW.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = NEW.idu AND (fname = 'Ann')) IS NOT NULL)
  AND NEW.kind IS DISTINCT FROM NULL)
) AS fact (key, kind, name, old, new));
PERFORM set_config('eventlog.facts', '[' || array_to_string(eventlog_facts, ',') || ']', true);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr__usr_phone_update() FROM PUBLIC
CREATE TRIGGER event_log_usr__usr_phone_update AFTER UPDATE ON usr_phone
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr__usr_phone_update()

-- event_log_usr__usr_phone_update_written on usr_phone
CREATE OR REPLACE FUNCTION own.event_log_usr__usr_phone_update_written() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp 
AS $eventlog$
DECLARE
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
SELECT fact.value ->> 0, eventlog_waiting, (fact.value ->> 1)::integer, eventlog_now, eventlog_user,
  'usr', fact.value ->> 2, fact.value ->> 3, fact.value ->> 4
FROM json_array_elements(current_setting('eventlog.facts')::json) AS part (value)
CROSS JOIN LATERAL json_array_elements(part.value) AS fact (value);
PERFORM set_config('eventlog.facts', '', true);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr__usr_phone_update_written() FROM PUBLIC
CREATE TRIGGER event_log_usr__usr_phone_update_written AFTER UPDATE ON usr_phone
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr__usr_phone_update_written()

-- event_log_usr__usr_phone_delete on usr_phone
CREATE OR REPLACE FUNCTION own.event_log_usr__usr_phone_delete() RETURNS trigger LANGUAGE plpgsql SECURITY INVOKER
SET search_path = pg_catalog, pg_temp SET row_security = off SET enable_seqscan = off
AS $eventlog$
DECLARE
eventlog_facts text[] := '{}';
BEGIN
eventlog_facts := eventlog_facts || (SELECT coalesce(json_agg(json_build_array(
  fact.key, fact.kind, fact.name, fact.old, fact.new)), '[]')::text
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'idu=' || OLD.idu::text, 2, 'usr_phone.phoneno', OLD.phoneno::text, NULL
WHERE (OLD.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = OLD.idu AND (fname = 'Ann')) IS NOT NULL)
  AND OLD.phoneno IS DISTINCT FROM NULL)
UNION ALL SELECT 'idu=' || OLD.idu::text, 2, 'usr_phone.kind', OLD.kind::text, NULL
WHERE (OLD.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = OLD.idu AND (fname = 'Ann')) IS NOT NULL)
  AND OLD.kind IS DISTINCT FROM NULL)
) AS fact (key, kind, name, old, new));
PERFORM set_config('eventlog.facts', '[' || array_to_string(eventlog_facts, ',') || ']', true);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr__usr_phone_delete() FROM PUBLIC
CREATE TRIGGER event_log_usr__usr_phone_delete AFTER DELETE ON usr_phone
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr__usr_phone_delete()

-- event_log_usr__usr_phone_delete_written on usr_phone
CREATE OR REPLACE FUNCTION own.event_log_usr__usr_phone_delete_written() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp 
AS $eventlog$
DECLARE
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
SELECT fact.value ->> 0, eventlog_waiting, (fact.value ->> 1)::integer, eventlog_now, eventlog_user,
  'usr', fact.value ->> 2, fact.value ->> 3, fact.value ->> 4
FROM json_array_elements(current_setting('eventlog.facts')::json) AS part (value)
CROSS JOIN LATERAL json_array_elements(part.value) AS fact (value);
PERFORM set_config('eventlog.facts', '', true);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr__usr_phone_delete_written() FROM PUBLIC
CREATE TRIGGER event_log_usr__usr_phone_delete_written AFTER DELETE ON usr_phone
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr__usr_phone_delete_written()

-- event_log_usr__usr_phone_truncate on usr_phone
CREATE OR REPLACE FUNCTION own.event_log_usr__usr_phone_truncate() RETURNS trigger LANGUAGE plpgsql SECURITY INVOKER
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $eventlog$
DECLARE
eventlog_facts text[] := '{}';
BEGIN
IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
RAISE WARNING 'eventlog: rows of % that others have committed since this transaction began go without being logged.', TG_RELID::regclass
USING HINT = 'TRUNCATE in a READ COMMITTED transaction, or DELETE.';
END IF;
IF NOT EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'usr'::regclass
  AND mode = 'AccessExclusiveLock' AND granted) THEN
eventlog_facts := eventlog_facts || (SELECT coalesce(json_agg(json_build_array(
  side.key, 2, 'usr_phone.phoneno', side.value0, NULL)), '[]')::text
FROM ((SELECT 'idu=' || o.idu::text AS key, o.phoneno::text AS value0 FROM usr_phone AS o WHERE (o.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (fname = 'Ann')) IS NOT NULL)
  AND o.phoneno IS DISTINCT FROM NULL))) AS side);
eventlog_facts := eventlog_facts || (SELECT coalesce(json_agg(json_build_array(
  side.key, 2, 'usr_phone.kind', side.value0, NULL)), '[]')::text
FROM ((SELECT 'idu=' || o.idu::text AS key, o.kind::text AS value0 FROM usr_phone AS o WHERE (o.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (fname = 'Ann')) IS NOT NULL)
  AND o.kind IS DISTINCT FROM NULL))) AS side);
ELSE
eventlog_facts := eventlog_facts || (SELECT coalesce(json_agg(json_build_array(
  side.key, 8, 'usr_phone.phoneno', NULL, NULL)), '[]')::text
FROM (SELECT side.key FROM ((SELECT 'idu=' || o.idu::text AS key, o.phoneno::text AS value0 FROM usr_phone AS o WHERE (o.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (fname = 'Ann')) IS NOT NULL)
  AND o.phoneno IS DISTINCT FROM NULL))) AS side GROUP BY side.key) AS side);
eventlog_facts := eventlog_facts || (SELECT coalesce(json_agg(json_build_array(
  side.key, 8, 'usr_phone.kind', NULL, NULL)), '[]')::text
FROM (SELECT side.key FROM ((SELECT 'idu=' || o.idu::text AS key, o.kind::text AS value0 FROM usr_phone AS o WHERE (o.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (fname = 'Ann')) IS NOT NULL)
  AND o.kind IS DISTINCT FROM NULL))) AS side GROUP BY side.key) AS side);
END IF;
PERFORM set_config('eventlog.facts', '[' || array_to_string(eventlog_facts, ',') || ']', true);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr__usr_phone_truncate() FROM PUBLIC
CREATE TRIGGER event_log_usr__usr_phone_truncate BEFORE TRUNCATE ON usr_phone
FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_usr__usr_phone_truncate()

-- event_log_usr__usr_phone_truncate_written on usr_phone
CREATE OR REPLACE FUNCTION own.event_log_usr__usr_phone_truncate_written() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp 
AS $eventlog$
DECLARE
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
SELECT fact.value ->> 0, eventlog_waiting, (fact.value ->> 1)::integer, eventlog_now, eventlog_user,
  'usr', fact.value ->> 2, fact.value ->> 3, fact.value ->> 4
FROM json_array_elements(current_setting('eventlog.facts')::json) AS part (value)
CROSS JOIN LATERAL json_array_elements(part.value) AS fact (value);
PERFORM set_config('eventlog.facts', '', true);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr__usr_phone_truncate_written() FROM PUBLIC
CREATE TRIGGER event_log_usr__usr_phone_truncate_written BEFORE TRUNCATE ON usr_phone
FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_usr__usr_phone_truncate_written()
