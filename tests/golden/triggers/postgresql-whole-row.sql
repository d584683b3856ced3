-- event_log_note_insert on note
CREATE OR REPLACE FUNCTION own.event_log_note_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $eventlog$
DECLARE
eventlog_kind_5 CONSTANT own.event_log.event_type%TYPE := 5;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value, new_value)
SELECT fact.key, eventlog_waiting, fact.kind, eventlog_now, eventlog_user,
  'note', fact.name, fact.old, fact.new
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'eventlog_whole_row=' || encode(sha256(convert_to('{' || substr(coalesce(',"a":' || to_json(NEW.a::text)::text, '') || coalesce(',"b":' || to_json(NEW.b::text)::text, '') || coalesce(',"photo":' || to_json(replace(encode(NEW.photo, 'base64'), E'\n', ''))::text, ''), 2) || '}', getdatabaseencoding())), 'hex'), eventlog_kind_5, NULL, NULL, CASE WHEN coalesce(octet_length(replace(encode(NEW.photo, 'base64'), E'\n', '')::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', NEW.b::text, NEW.a::text, replace(encode(NEW.photo, 'base64'), E'\n', '')])::text END
WHERE (1 = 1)
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_note_insert() FROM PUBLIC
CREATE TRIGGER event_log_note_insert AFTER INSERT ON note
FOR EACH ROW EXECUTE FUNCTION own.event_log_note_insert()

-- event_log_note_update on note
CREATE OR REPLACE FUNCTION own.event_log_note_update() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $eventlog$
DECLARE
eventlog_kind_4 CONSTANT own.event_log.event_type%TYPE := 4;
eventlog_kind_5 CONSTANT own.event_log.event_type%TYPE := 5;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value, new_value)
SELECT fact.key, eventlog_waiting, fact.kind, eventlog_now, eventlog_user,
  'note', fact.name, fact.old, fact.new
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'eventlog_whole_row=' || encode(sha256(convert_to('{' || substr(coalesce(',"a":' || to_json(OLD.a::text)::text, '') || coalesce(',"b":' || to_json(OLD.b::text)::text, '') || coalesce(',"photo":' || to_json(replace(encode(OLD.photo, 'base64'), E'\n', ''))::text, ''), 2) || '}', getdatabaseencoding())), 'hex'), eventlog_kind_4, NULL, CASE WHEN coalesce(octet_length(replace(encode(OLD.photo, 'base64'), E'\n', '')::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', OLD.b::text, OLD.a::text, replace(encode(OLD.photo, 'base64'), E'\n', '')])::text END, NULL
WHERE (('{' || substr(coalesce(',"a":' || to_json(OLD.a::text)::text, '') || coalesce(',"b":' || to_json(OLD.b::text)::text, '') || coalesce(',"photo":' || to_json(replace(encode(OLD.photo, 'base64'), E'\n', ''))::text, ''), 2) || '}') COLLATE "C" IS DISTINCT FROM ('{' || substr(coalesce(',"a":' || to_json(NEW.a::text)::text, '') || coalesce(',"b":' || to_json(NEW.b::text)::text, '') || coalesce(',"photo":' || to_json(replace(encode(NEW.photo, 'base64'), E'\n', ''))::text, ''), 2) || '}') COLLATE "C")
UNION ALL SELECT 'eventlog_whole_row=' || encode(sha256(convert_to('{' || substr(coalesce(',"a":' || to_json(NEW.a::text)::text, '') || coalesce(',"b":' || to_json(NEW.b::text)::text, '') || coalesce(',"photo":' || to_json(replace(encode(NEW.photo, 'base64'), E'\n', ''))::text, ''), 2) || '}', getdatabaseencoding())), 'hex'), eventlog_kind_5, NULL, NULL, CASE WHEN coalesce(octet_length(replace(encode(NEW.photo, 'base64'), E'\n', '')::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', NEW.b::text, NEW.a::text, replace(encode(NEW.photo, 'base64'), E'\n', '')])::text END
WHERE (('{' || substr(coalesce(',"a":' || to_json(OLD.a::text)::text, '') || coalesce(',"b":' || to_json(OLD.b::text)::text, '') || coalesce(',"photo":' || to_json(replace(encode(OLD.photo, 'base64'), E'\n', ''))::text, ''), 2) || '}') COLLATE "C" IS DISTINCT FROM ('{' || substr(coalesce(',"a":' || to_json(NEW.a::text)::text, '') || coalesce(',"b":' || to_json(NEW.b::text)::text, '') || coalesce(',"photo":' || to_json(replace(encode(NEW.photo, 'base64'), E'\n', ''))::text, ''), 2) || '}') COLLATE "C")
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_note_update() FROM PUBLIC
CREATE TRIGGER event_log_note_update AFTER UPDATE ON note
FOR EACH ROW EXECUTE FUNCTION own.event_log_note_update()

-- event_log_note_delete on note
CREATE OR REPLACE FUNCTION own.event_log_note_delete() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $eventlog$
DECLARE
eventlog_kind_4 CONSTANT own.event_log.event_type%TYPE := 4;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value, new_value)
SELECT fact.key, eventlog_waiting, fact.kind, eventlog_now, eventlog_user,
  'note', fact.name, fact.old, fact.new
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'eventlog_whole_row=' || encode(sha256(convert_to('{' || substr(coalesce(',"a":' || to_json(OLD.a::text)::text, '') || coalesce(',"b":' || to_json(OLD.b::text)::text, '') || coalesce(',"photo":' || to_json(replace(encode(OLD.photo, 'base64'), E'\n', ''))::text, ''), 2) || '}', getdatabaseencoding())), 'hex'), eventlog_kind_4, NULL, CASE WHEN coalesce(octet_length(replace(encode(OLD.photo, 'base64'), E'\n', '')::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', OLD.b::text, OLD.a::text, replace(encode(OLD.photo, 'base64'), E'\n', '')])::text END, NULL
WHERE (1 = 1)
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_note_delete() FROM PUBLIC
CREATE TRIGGER event_log_note_delete AFTER DELETE ON note
FOR EACH ROW EXECUTE FUNCTION own.event_log_note_delete()

-- event_log_note_truncate on note
CREATE OR REPLACE FUNCTION own.event_log_note_truncate() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $eventlog$
DECLARE
eventlog_kind_4 CONSTANT own.event_log.event_type%TYPE := 4;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
RAISE WARNING 'eventlog: rows of % that others have committed since this transaction began go without being logged.', TG_RELID::regclass
USING HINT = 'TRUNCATE in a READ COMMITTED transaction, or DELETE.';
END IF;
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value, new_value)
SELECT fact.key, eventlog_waiting, fact.kind, eventlog_now, eventlog_user,
  'note', fact.name, fact.old, fact.new
FROM note AS o CROSS JOIN LATERAL (
SELECT 'eventlog_whole_row=' || encode(sha256(convert_to('{' || substr(coalesce(',"a":' || to_json(o.a::text)::text, '') || coalesce(',"b":' || to_json(o.b::text)::text, '') || coalesce(',"photo":' || to_json(replace(encode(o.photo, 'base64'), E'\n', ''))::text, ''), 2) || '}', getdatabaseencoding())), 'hex'), eventlog_kind_4, NULL, CASE WHEN coalesce(octet_length(replace(encode(o.photo, 'base64'), E'\n', '')::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', o.b::text, o.a::text, replace(encode(o.photo, 'base64'), E'\n', '')])::text END, NULL
WHERE (1 = 1)
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_note_truncate() FROM PUBLIC
CREATE TRIGGER event_log_note_truncate BEFORE TRUNCATE ON note
FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_note_truncate()
