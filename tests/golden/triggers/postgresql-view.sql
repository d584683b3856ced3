-- event_log_people_insert on people
CREATE OR REPLACE FUNCTION own.event_log_people_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp 
AS $eventlog$
DECLARE
eventlog_kind_1 CONSTANT own.event_log.event_type%TYPE := 1;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value, new_value)
SELECT fact.key, eventlog_waiting, fact.kind, eventlog_now, eventlog_user,
  'people', fact.name, fact.old, fact.new
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'pk_id=' || CASE WHEN (NEW.pk_id::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(NEW.pk_id::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(NEW.pk_id::text, '') END, eventlog_kind_1, 'name', NULL, NEW.sv_name::text
WHERE ((NEW.sv_name IS DISTINCT FROM NULL OR (NEW.mv_mail IS NOT DISTINCT FROM NULL)))
UNION ALL SELECT 'pk_id=' || CASE WHEN (NEW.pk_id::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(NEW.pk_id::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(NEW.pk_id::text, '') END, eventlog_kind_1, 'mail', NULL, NEW.mv_mail::text
WHERE (NEW.mv_mail IS DISTINCT FROM NULL)
) AS fact (key, kind, name, old, new);
RETURN NEW;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_people_insert() FROM PUBLIC
CREATE TRIGGER event_log_people_insert INSTEAD OF INSERT ON people
FOR EACH ROW EXECUTE FUNCTION own.event_log_people_insert()

-- event_log_people_update on people
CREATE OR REPLACE FUNCTION own.event_log_people_update() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp 
AS $eventlog$
DECLARE
eventlog_kind_1 CONSTANT own.event_log.event_type%TYPE := 1;
eventlog_kind_2 CONSTANT own.event_log.event_type%TYPE := 2;
eventlog_kind_4 CONSTANT own.event_log.event_type%TYPE := 4;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value, new_value)
SELECT fact.key, eventlog_waiting, fact.kind, eventlog_now, eventlog_user,
  'people', fact.name, fact.old, fact.new
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'pk_id=' || CASE WHEN (OLD.pk_id::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(OLD.pk_id::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(OLD.pk_id::text, '') END, eventlog_kind_4, NULL, NULL, NULL
WHERE (((OLD.pk_id::text) COLLATE "C" IS DISTINCT FROM (NEW.pk_id::text) COLLATE "C"))
UNION ALL SELECT 'pk_id=' || CASE WHEN (NEW.pk_id::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(NEW.pk_id::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(NEW.pk_id::text, '') END, eventlog_kind_1, 'name', NULL, NEW.sv_name::text
WHERE (((OLD.pk_id::text) COLLATE "C" IS DISTINCT FROM (NEW.pk_id::text) COLLATE "C")
  AND (NEW.sv_name IS DISTINCT FROM NULL OR (NEW.mv_mail IS NOT DISTINCT FROM NULL)))
UNION ALL SELECT 'pk_id=' || CASE WHEN (NEW.pk_id::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(NEW.pk_id::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(NEW.pk_id::text, '') END, eventlog_kind_1, 'mail', NULL, NEW.mv_mail::text
WHERE (((OLD.pk_id::text) COLLATE "C" IS DISTINCT FROM (NEW.pk_id::text) COLLATE "C") AND NEW.mv_mail IS DISTINCT FROM NULL)
UNION ALL SELECT 'pk_id=' || CASE WHEN (NEW.pk_id::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(NEW.pk_id::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(NEW.pk_id::text, '') END, eventlog_kind_2, 'name', OLD.sv_name::text, NEW.sv_name::text
WHERE (NOT ((OLD.pk_id::text) COLLATE "C" IS DISTINCT FROM (NEW.pk_id::text) COLLATE "C")
  AND ((OLD.sv_name::text) COLLATE "C" IS DISTINCT FROM (NEW.sv_name::text) COLLATE "C"))
UNION ALL SELECT 'pk_id=' || CASE WHEN (NEW.pk_id::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(NEW.pk_id::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(NEW.pk_id::text, '') END, eventlog_kind_2, 'mail', OLD.mv_mail::text, NEW.mv_mail::text
WHERE (NOT ((OLD.pk_id::text) COLLATE "C" IS DISTINCT FROM (NEW.pk_id::text) COLLATE "C")
  AND ((OLD.mv_mail::text) COLLATE "C" IS DISTINCT FROM (NEW.mv_mail::text) COLLATE "C"))
) AS fact (key, kind, name, old, new);
RETURN NEW;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_people_update() FROM PUBLIC
CREATE TRIGGER event_log_people_update INSTEAD OF UPDATE ON people
FOR EACH ROW EXECUTE FUNCTION own.event_log_people_update()

-- event_log_people_delete on people
CREATE OR REPLACE FUNCTION own.event_log_people_delete() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp 
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
  'people', fact.name, fact.old, fact.new
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'pk_id=' || CASE WHEN (OLD.pk_id::text) COLLATE "C" ~ E'[,;''+"=\\\\<>]|^ | $'
THEN '"' || replace(replace(OLD.pk_id::text, E'\\', E'\\\\'), '"', E'\\"') || '"' ELSE coalesce(OLD.pk_id::text, '') END, eventlog_kind_4, NULL, NULL, NULL
WHERE (1 = 1)
) AS fact (key, kind, name, old, new);
RETURN OLD;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_people_delete() FROM PUBLIC
CREATE TRIGGER event_log_people_delete INSTEAD OF DELETE ON people
FOR EACH ROW EXECUTE FUNCTION own.event_log_people_delete()
