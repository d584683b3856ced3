-- event_log_room_insert on room
CREATE OR REPLACE FUNCTION own.event_log_room_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $eventlog$
DECLARE
eventlog_kind_7 CONSTANT own.event_log.event_type%TYPE := 7;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value, new_value)
SELECT fact.key, eventlog_waiting, fact.kind, eventlog_now, eventlog_user,
  'room', fact.name, fact.old, fact.new
FROM new_rows AS n CROSS JOIN LATERAL (
SELECT 'house=' || CASE WHEN (n.house::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(n.house::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(n.house::text, '') END || '+nr=' || CASE WHEN (CAST(CASE WHEN n.nr IS DISTINCT FROM NULL THEN concat(n.nr) END AS numeric(4,1))::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(CAST(CASE WHEN n.nr IS DISTINCT FROM NULL THEN concat(n.nr) END AS numeric(4,1))::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(CAST(CASE WHEN n.nr IS DISTINCT FROM NULL THEN concat(n.nr) END AS numeric(4,1))::text, '') END, eventlog_kind_7, 'open', NULL, NULL
WHERE ((n.open IS DISTINCT FROM NULL
  OR (CASE WHEN n.colour IS DISTINCT FROM NULL THEN concat(n.colour) END IS NOT DISTINCT FROM NULL)))
UNION ALL SELECT 'house=' || CASE WHEN (n.house::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(n.house::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(n.house::text, '') END || '+nr=' || CASE WHEN (CAST(CASE WHEN n.nr IS DISTINCT FROM NULL THEN concat(n.nr) END AS numeric(4,1))::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(CAST(CASE WHEN n.nr IS DISTINCT FROM NULL THEN concat(n.nr) END AS numeric(4,1))::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(CAST(CASE WHEN n.nr IS DISTINCT FROM NULL THEN concat(n.nr) END AS numeric(4,1))::text, '') END, eventlog_kind_7, 'colour', NULL, NULL
WHERE (CASE WHEN n.colour IS DISTINCT FROM NULL THEN concat(n.colour) END IS DISTINCT FROM NULL)
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_room_insert() FROM PUBLIC
CREATE TRIGGER event_log_room_insert AFTER INSERT ON room
REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_room_insert()

-- event_log_room_update on room
CREATE OR REPLACE FUNCTION own.event_log_room_update() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_mergejoin = off SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $eventlog$
DECLARE
eventlog_kind_4 CONSTANT own.event_log.event_type%TYPE := 4;
eventlog_kind_7 CONSTANT own.event_log.event_type%TYPE := 7;
eventlog_kind_8 CONSTANT own.event_log.event_type%TYPE := 8;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value, new_value)
SELECT fact.key, eventlog_waiting, fact.kind, eventlog_now, eventlog_user,
  'room', fact.name, fact.old, fact.new
FROM old_rows AS o FULL JOIN new_rows AS n ON (o.house::text) COLLATE "C" = (n.house::text) COLLATE "C" AND (CAST(CASE WHEN o.nr IS DISTINCT FROM NULL THEN concat(o.nr) END AS numeric(4,1))::text) COLLATE "C" = (CAST(CASE WHEN n.nr IS DISTINCT FROM NULL THEN concat(n.nr) END AS numeric(4,1))::text) COLLATE "C" CROSS JOIN LATERAL (
SELECT 'house=' || CASE WHEN (o.house::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(o.house::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(o.house::text, '') END || '+nr=' || CASE WHEN (CAST(CASE WHEN o.nr IS DISTINCT FROM NULL THEN concat(o.nr) END AS numeric(4,1))::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(CAST(CASE WHEN o.nr IS DISTINCT FROM NULL THEN concat(o.nr) END AS numeric(4,1))::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(CAST(CASE WHEN o.nr IS DISTINCT FROM NULL THEN concat(o.nr) END AS numeric(4,1))::text, '') END, eventlog_kind_4, NULL, NULL, NULL
WHERE (n.house IS NOT DISTINCT FROM NULL)
UNION ALL SELECT 'house=' || CASE WHEN (n.house::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(n.house::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(n.house::text, '') END || '+nr=' || CASE WHEN (CAST(CASE WHEN n.nr IS DISTINCT FROM NULL THEN concat(n.nr) END AS numeric(4,1))::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(CAST(CASE WHEN n.nr IS DISTINCT FROM NULL THEN concat(n.nr) END AS numeric(4,1))::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(CAST(CASE WHEN n.nr IS DISTINCT FROM NULL THEN concat(n.nr) END AS numeric(4,1))::text, '') END, CASE WHEN (o.house IS NOT DISTINCT FROM NULL) THEN eventlog_kind_7 ELSE eventlog_kind_8 END, 'open', NULL, NULL
WHERE (NOT (n.house IS NOT DISTINCT FROM NULL)
  AND ((o.open IS DISTINCT FROM n.open)
  OR ((o.house IS NOT DISTINCT FROM NULL)
  AND n.open IS NOT DISTINCT FROM NULL
  AND CASE WHEN n.colour IS DISTINCT FROM NULL THEN concat(n.colour) END IS NOT DISTINCT FROM NULL)))
UNION ALL SELECT 'house=' || CASE WHEN (n.house::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(n.house::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(n.house::text, '') END || '+nr=' || CASE WHEN (CAST(CASE WHEN n.nr IS DISTINCT FROM NULL THEN concat(n.nr) END AS numeric(4,1))::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(CAST(CASE WHEN n.nr IS DISTINCT FROM NULL THEN concat(n.nr) END AS numeric(4,1))::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(CAST(CASE WHEN n.nr IS DISTINCT FROM NULL THEN concat(n.nr) END AS numeric(4,1))::text, '') END, CASE WHEN (o.house IS NOT DISTINCT FROM NULL) THEN eventlog_kind_7 ELSE eventlog_kind_8 END, 'colour', NULL, NULL
WHERE (NOT (n.house IS NOT DISTINCT FROM NULL)
  AND ((CASE WHEN o.colour IS DISTINCT FROM NULL THEN concat(o.colour) END::text) COLLATE "C" IS DISTINCT FROM (CASE WHEN n.colour IS DISTINCT FROM NULL THEN concat(n.colour) END::text) COLLATE "C"))
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_room_update() FROM PUBLIC
CREATE TRIGGER event_log_room_update AFTER UPDATE ON room
REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_room_update()

-- event_log_room_delete on room
CREATE OR REPLACE FUNCTION own.event_log_room_delete() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex'
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
FROM old_rows AS o CROSS JOIN LATERAL (
SELECT 'house=' || CASE WHEN (o.house::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(o.house::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(o.house::text, '') END || '+nr=' || CASE WHEN (CAST(CASE WHEN o.nr IS DISTINCT FROM NULL THEN concat(o.nr) END AS numeric(4,1))::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(CAST(CASE WHEN o.nr IS DISTINCT FROM NULL THEN concat(o.nr) END AS numeric(4,1))::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(CAST(CASE WHEN o.nr IS DISTINCT FROM NULL THEN concat(o.nr) END AS numeric(4,1))::text, '') END, eventlog_kind_4, NULL, NULL, NULL
WHERE (1 = 1)
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_room_delete() FROM PUBLIC
CREATE TRIGGER event_log_room_delete AFTER DELETE ON room
REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_room_delete()

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
THEN '"' || replace(replace(CAST(CASE WHEN o.nr IS DISTINCT FROM NULL THEN concat(o.nr) END AS numeric(4,1))::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(CAST(CASE WHEN o.nr IS DISTINCT FROM NULL THEN concat(o.nr) END AS numeric(4,1))::text, '') END, eventlog_kind_4, NULL, NULL, NULL
WHERE (1 = 1)
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_room_truncate() FROM PUBLIC
CREATE TRIGGER event_log_room_truncate BEFORE TRUNCATE ON room
FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_room_truncate()
