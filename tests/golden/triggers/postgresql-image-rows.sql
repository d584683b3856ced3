-- event_log_room_insert on room
CREATE OR REPLACE FUNCTION own.event_log_room_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
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
  'room', fact.name, fact.old, fact.new
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'house=' || CASE WHEN (NEW.house::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(NEW.house::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(NEW.house::text, '') END || '+nr=' || CASE WHEN (CAST(CASE WHEN NEW.nr IS DISTINCT FROM NULL THEN concat(NEW.nr) END AS numeric(4,1))::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(CAST(CASE WHEN NEW.nr IS DISTINCT FROM NULL THEN concat(NEW.nr) END AS numeric(4,1))::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(CAST(CASE WHEN NEW.nr IS DISTINCT FROM NULL THEN concat(NEW.nr) END AS numeric(4,1))::text, '') END, eventlog_kind_5, NULL, NULL, CASE WHEN coalesce(octet_length(CASE WHEN NEW.colour IS DISTINCT FROM NULL THEN concat(NEW.colour) END::text::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', NEW.open::integer::text, CASE WHEN NEW.colour IS DISTINCT FROM NULL THEN concat(NEW.colour) END::text])::text END
WHERE (1 = 1)
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_room_insert() FROM PUBLIC
CREATE TRIGGER event_log_room_insert AFTER INSERT ON room
FOR EACH ROW EXECUTE FUNCTION own.event_log_room_insert()

-- event_log_room_update on room
CREATE OR REPLACE FUNCTION own.event_log_room_update() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $eventlog$
DECLARE
eventlog_kind_4 CONSTANT own.event_log.event_type%TYPE := 4;
eventlog_kind_5 CONSTANT own.event_log.event_type%TYPE := 5;
eventlog_kind_6 CONSTANT own.event_log.event_type%TYPE := 6;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value, new_value)
SELECT fact.key, eventlog_waiting, fact.kind, eventlog_now, eventlog_user,
  'room', fact.name, fact.old, fact.new
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'house=' || CASE WHEN (OLD.house::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(OLD.house::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(OLD.house::text, '') END || '+nr=' || CASE WHEN (CAST(CASE WHEN OLD.nr IS DISTINCT FROM NULL THEN concat(OLD.nr) END AS numeric(4,1))::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(CAST(CASE WHEN OLD.nr IS DISTINCT FROM NULL THEN concat(OLD.nr) END AS numeric(4,1))::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(CAST(CASE WHEN OLD.nr IS DISTINCT FROM NULL THEN concat(OLD.nr) END AS numeric(4,1))::text, '') END, eventlog_kind_4, NULL, CASE WHEN coalesce(octet_length(CASE WHEN OLD.colour IS DISTINCT FROM NULL THEN concat(OLD.colour) END::text::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', OLD.open::integer::text, CASE WHEN OLD.colour IS DISTINCT FROM NULL THEN concat(OLD.colour) END::text])::text END, NULL
WHERE (((OLD.house::text) COLLATE "C" IS DISTINCT FROM (NEW.house::text) COLLATE "C"
  OR (CAST(CASE WHEN OLD.nr IS DISTINCT FROM NULL THEN concat(OLD.nr) END AS numeric(4,1))::text) COLLATE "C" IS DISTINCT FROM (CAST(CASE WHEN NEW.nr IS DISTINCT FROM NULL THEN concat(NEW.nr) END AS numeric(4,1))::text) COLLATE "C"))
UNION ALL SELECT 'house=' || CASE WHEN (NEW.house::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(NEW.house::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(NEW.house::text, '') END || '+nr=' || CASE WHEN (CAST(CASE WHEN NEW.nr IS DISTINCT FROM NULL THEN concat(NEW.nr) END AS numeric(4,1))::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(CAST(CASE WHEN NEW.nr IS DISTINCT FROM NULL THEN concat(NEW.nr) END AS numeric(4,1))::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(CAST(CASE WHEN NEW.nr IS DISTINCT FROM NULL THEN concat(NEW.nr) END AS numeric(4,1))::text, '') END, eventlog_kind_5, NULL, NULL, CASE WHEN coalesce(octet_length(CASE WHEN NEW.colour IS DISTINCT FROM NULL THEN concat(NEW.colour) END::text::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', NEW.open::integer::text, CASE WHEN NEW.colour IS DISTINCT FROM NULL THEN concat(NEW.colour) END::text])::text END
WHERE (((OLD.house::text) COLLATE "C" IS DISTINCT FROM (NEW.house::text) COLLATE "C"
  OR (CAST(CASE WHEN OLD.nr IS DISTINCT FROM NULL THEN concat(OLD.nr) END AS numeric(4,1))::text) COLLATE "C" IS DISTINCT FROM (CAST(CASE WHEN NEW.nr IS DISTINCT FROM NULL THEN concat(NEW.nr) END AS numeric(4,1))::text) COLLATE "C"))
UNION ALL SELECT 'house=' || CASE WHEN (NEW.house::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(NEW.house::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(NEW.house::text, '') END || '+nr=' || CASE WHEN (CAST(CASE WHEN NEW.nr IS DISTINCT FROM NULL THEN concat(NEW.nr) END AS numeric(4,1))::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(CAST(CASE WHEN NEW.nr IS DISTINCT FROM NULL THEN concat(NEW.nr) END AS numeric(4,1))::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(CAST(CASE WHEN NEW.nr IS DISTINCT FROM NULL THEN concat(NEW.nr) END AS numeric(4,1))::text, '') END, eventlog_kind_6, NULL, CASE WHEN coalesce(octet_length(CASE WHEN OLD.colour IS DISTINCT FROM NULL THEN concat(OLD.colour) END::text::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', OLD.open::integer::text, CASE WHEN OLD.colour IS DISTINCT FROM NULL THEN concat(OLD.colour) END::text])::text END, CASE WHEN coalesce(octet_length(CASE WHEN NEW.colour IS DISTINCT FROM NULL THEN concat(NEW.colour) END::text::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', NEW.open::integer::text, CASE WHEN NEW.colour IS DISTINCT FROM NULL THEN concat(NEW.colour) END::text])::text END
WHERE (NOT ((OLD.house::text) COLLATE "C" IS DISTINCT FROM (NEW.house::text) COLLATE "C"
  OR (CAST(CASE WHEN OLD.nr IS DISTINCT FROM NULL THEN concat(OLD.nr) END AS numeric(4,1))::text) COLLATE "C" IS DISTINCT FROM (CAST(CASE WHEN NEW.nr IS DISTINCT FROM NULL THEN concat(NEW.nr) END AS numeric(4,1))::text) COLLATE "C")
  AND (OLD.open IS DISTINCT FROM NEW.open
  OR (CASE WHEN OLD.colour IS DISTINCT FROM NULL THEN concat(OLD.colour) END::text) COLLATE "C" IS DISTINCT FROM (CASE WHEN NEW.colour IS DISTINCT FROM NULL THEN concat(NEW.colour) END::text) COLLATE "C"))
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_room_update() FROM PUBLIC
CREATE TRIGGER event_log_room_update AFTER UPDATE ON room
FOR EACH ROW EXECUTE FUNCTION own.event_log_room_update()

-- event_log_room_delete on room
CREATE OR REPLACE FUNCTION own.event_log_room_delete() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
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
  'room', fact.name, fact.old, fact.new
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'house=' || CASE WHEN (OLD.house::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(OLD.house::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(OLD.house::text, '') END || '+nr=' || CASE WHEN (CAST(CASE WHEN OLD.nr IS DISTINCT FROM NULL THEN concat(OLD.nr) END AS numeric(4,1))::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(CAST(CASE WHEN OLD.nr IS DISTINCT FROM NULL THEN concat(OLD.nr) END AS numeric(4,1))::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(CAST(CASE WHEN OLD.nr IS DISTINCT FROM NULL THEN concat(OLD.nr) END AS numeric(4,1))::text, '') END, eventlog_kind_4, NULL, CASE WHEN coalesce(octet_length(CASE WHEN OLD.colour IS DISTINCT FROM NULL THEN concat(OLD.colour) END::text::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', OLD.open::integer::text, CASE WHEN OLD.colour IS DISTINCT FROM NULL THEN concat(OLD.colour) END::text])::text END, NULL
WHERE (1 = 1)
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_room_delete() FROM PUBLIC
CREATE TRIGGER event_log_room_delete AFTER DELETE ON room
FOR EACH ROW EXECUTE FUNCTION own.event_log_room_delete()

-- event_log_room_truncate on room
CREATE OR REPLACE FUNCTION own.event_log_room_truncate() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
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
  'room', fact.name, fact.old, fact.new
FROM room AS o CROSS JOIN LATERAL (
SELECT 'house=' || CASE WHEN (o.house::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(o.house::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(o.house::text, '') END || '+nr=' || CASE WHEN (CAST(CASE WHEN o.nr IS DISTINCT FROM NULL THEN concat(o.nr) END AS numeric(4,1))::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(CAST(CASE WHEN o.nr IS DISTINCT FROM NULL THEN concat(o.nr) END AS numeric(4,1))::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(CAST(CASE WHEN o.nr IS DISTINCT FROM NULL THEN concat(o.nr) END AS numeric(4,1))::text, '') END, eventlog_kind_4, NULL, CASE WHEN coalesce(octet_length(CASE WHEN o.colour IS DISTINCT FROM NULL THEN concat(o.colour) END::text::text), 0) <= 1000000 THEN array_to_json(ARRAY['1', o.open::integer::text, CASE WHEN o.colour IS DISTINCT FROM NULL THEN concat(o.colour) END::text])::text END, NULL
WHERE (1 = 1)
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_room_truncate() FROM PUBLIC
CREATE TRIGGER event_log_room_truncate BEFORE TRUNCATE ON room
FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_room_truncate()
