-- event_log_usr_insert on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
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
  'usr', fact.name, fact.old, fact.new
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'idu=' || NEW.idu::text, eventlog_kind_1, 'fname', NULL, NEW.fname::text
WHERE ((1 = 1))
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_insert() FROM PUBLIC
CREATE TRIGGER event_log_usr_insert AFTER INSERT ON usr
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr_insert()

-- event_log_usr_update on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_update() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $eventlog$
DECLARE
eventlog_kind_1 CONSTANT own.event_log.event_type%TYPE := 1;
eventlog_kind_3 CONSTANT own.event_log.event_type%TYPE := 3;
eventlog_kind_4 CONSTANT own.event_log.event_type%TYPE := 4;
eventlog_kind_5 CONSTANT own.event_log.event_type%TYPE := 5;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value, new_value)
SELECT fact.key, eventlog_waiting, fact.kind, eventlog_now, eventlog_user,
  'usr', fact.name, fact.old, fact.new
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'idu=' || OLD.idu::text, eventlog_kind_4, NULL, NULL, NULL
WHERE ((OLD.idu IS DISTINCT FROM NEW.idu))
UNION ALL SELECT 'idu=' || NEW.idu::text, eventlog_kind_1, 'fname', NULL, NEW.fname::text
WHERE ((OLD.idu IS DISTINCT FROM NEW.idu) AND (1 = 1))
UNION ALL SELECT 'idu=' || NEW.idu::text, eventlog_kind_3, 'fname', OLD.fname::text, NEW.fname::text
WHERE (NOT (OLD.idu IS DISTINCT FROM NEW.idu)
  AND ((OLD.fname::text) COLLATE "C" IS DISTINCT FROM (NEW.fname::text) COLLATE "C"))
UNION ALL SELECT 'idu=' || OLD.idu::text, eventlog_kind_5, NULL, NULL, NULL
WHERE ((OLD.idu IS DISTINCT FROM NEW.idu)
  AND (EXISTS (SELECT 1 FROM usr_phone standing WHERE (standing.idu = OLD.idu) AND (1 = 1))))
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_update() FROM PUBLIC
CREATE TRIGGER event_log_usr_update AFTER UPDATE ON usr
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr_update()

-- event_log_usr_delete on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_delete() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
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
  'usr', fact.name, fact.old, fact.new
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'idu=' || OLD.idu::text, eventlog_kind_4, NULL, NULL, NULL
WHERE (1 = 1)
UNION ALL SELECT 'idu=' || OLD.idu::text, eventlog_kind_5, NULL, NULL, NULL
WHERE ((EXISTS (SELECT 1 FROM usr_phone standing WHERE (standing.idu = OLD.idu) AND (1 = 1))))
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_delete() FROM PUBLIC
CREATE TRIGGER event_log_usr_delete AFTER DELETE ON usr
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr_delete()

-- event_log_usr_truncate on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_truncate() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off
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
  'usr', fact.name, fact.old, fact.new
FROM usr AS o CROSS JOIN LATERAL (
SELECT 'idu=' || o.idu::text, eventlog_kind_4, NULL, NULL, NULL
WHERE (1 = 1)
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_truncate() FROM PUBLIC
CREATE TRIGGER event_log_usr_truncate BEFORE TRUNCATE ON usr
FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_usr_truncate()

-- event_log_usr__usr_phone_insert on usr_phone
CREATE OR REPLACE FUNCTION own.event_log_usr__usr_phone_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
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
  'usr', fact.name, fact.old, fact.new
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'idu=' || NEW.idu::text, eventlog_kind_1, 'usr_phone.phoneno', NULL, NEW.phoneno::text
WHERE (NEW.idu IS DISTINCT FROM NULL AND NEW.phoneno IS DISTINCT FROM NULL)
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr__usr_phone_insert() FROM PUBLIC
CREATE TRIGGER event_log_usr__usr_phone_insert AFTER INSERT ON usr_phone
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr__usr_phone_insert()

-- event_log_usr__usr_phone_update on usr_phone
CREATE OR REPLACE FUNCTION own.event_log_usr__usr_phone_update() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $eventlog$
DECLARE
eventlog_kind_1 CONSTANT own.event_log.event_type%TYPE := 1;
eventlog_kind_2 CONSTANT own.event_log.event_type%TYPE := 2;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value, new_value)
SELECT fact.key, eventlog_waiting, fact.kind, eventlog_now, eventlog_user,
  'usr', fact.name, fact.old, fact.new
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'idu=' || OLD.idu::text, eventlog_kind_2, 'usr_phone.phoneno', OLD.phoneno::text, NULL
WHERE ((((OLD.phoneno::text) COLLATE "C" IS DISTINCT FROM (NEW.phoneno::text) COLLATE "C")
  OR (OLD.idu IS DISTINCT FROM NEW.idu))
  AND OLD.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = OLD.idu AND (1 = 1)) IS NOT NULL)
  AND OLD.phoneno IS DISTINCT FROM NULL)
UNION ALL SELECT 'idu=' || NEW.idu::text, eventlog_kind_1, 'usr_phone.phoneno', NULL, NEW.phoneno::text
WHERE ((((OLD.phoneno::text) COLLATE "C" IS DISTINCT FROM (NEW.phoneno::text) COLLATE "C")
  OR (OLD.idu IS DISTINCT FROM NEW.idu))
  AND NEW.idu IS DISTINCT FROM NULL
  AND NEW.phoneno IS DISTINCT FROM NULL)
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr__usr_phone_update() FROM PUBLIC
CREATE TRIGGER event_log_usr__usr_phone_update AFTER UPDATE ON usr_phone
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr__usr_phone_update()

-- event_log_usr__usr_phone_delete on usr_phone
CREATE OR REPLACE FUNCTION own.event_log_usr__usr_phone_delete() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $eventlog$
DECLARE
eventlog_kind_2 CONSTANT own.event_log.event_type%TYPE := 2;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value, new_value)
SELECT fact.key, eventlog_waiting, fact.kind, eventlog_now, eventlog_user,
  'usr', fact.name, fact.old, fact.new
FROM (VALUES (1)) AS one (row) CROSS JOIN LATERAL (
SELECT 'idu=' || OLD.idu::text, eventlog_kind_2, 'usr_phone.phoneno', OLD.phoneno::text, NULL
WHERE (OLD.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = OLD.idu AND (1 = 1)) IS NOT NULL)
  AND OLD.phoneno IS DISTINCT FROM NULL)
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr__usr_phone_delete() FROM PUBLIC
CREATE TRIGGER event_log_usr__usr_phone_delete AFTER DELETE ON usr_phone
FOR EACH ROW EXECUTE FUNCTION own.event_log_usr__usr_phone_delete()

-- event_log_usr__usr_phone_truncate on usr_phone
CREATE OR REPLACE FUNCTION own.event_log_usr__usr_phone_truncate() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off
AS $eventlog$
DECLARE
eventlog_kind_2 CONSTANT own.event_log.event_type%TYPE := 2;
eventlog_kind_8 CONSTANT own.event_log.event_type%TYPE := 8;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
RAISE WARNING 'eventlog: rows of % that others have committed since this transaction began go without being logged.', TG_RELID::regclass
USING HINT = 'TRUNCATE in a READ COMMITTED transaction, or DELETE.';
END IF;
IF NOT EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'usr'::regclass
  AND mode = 'AccessExclusiveLock' AND granted) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value)
SELECT side.key, eventlog_waiting, eventlog_kind_2, eventlog_now, eventlog_user,
  'usr', 'usr_phone.phoneno', side.value0
FROM ((SELECT 'idu=' || o.idu::text AS key, o.phoneno::text AS value0 FROM usr_phone AS o WHERE (o.idu IS DISTINCT FROM NULL AND o.phoneno IS DISTINCT FROM NULL))) AS side;
ELSE
IF has_table_privilege('own.event_log', 'SELECT') THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name)
SELECT side.key, eventlog_waiting, eventlog_kind_8, eventlog_now, eventlog_user,
  'usr', 'usr_phone.phoneno'
FROM ((SELECT side.* FROM (SELECT 'idu=' || o.idu::text AS key, o.phoneno::text AS value0 FROM usr_phone AS o WHERE (o.idu IS DISTINCT FROM NULL AND o.phoneno IS DISTINCT FROM NULL)) AS side WHERE side.key NOT IN (SELECT ended.key FROM (
  SELECT DISTINCT ON (told.table_key) told.table_key AS key, told.event_type AS kind
  FROM own.event_log AS told WHERE told.status = 'N' AND told.table_name = 'usr'
  ORDER BY told.table_key, told.record_id DESC) AS ended WHERE ended.kind = 4))) AS side GROUP BY side.key;
ELSE
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name)
SELECT side.key, eventlog_waiting, eventlog_kind_8, eventlog_now, eventlog_user,
  'usr', 'usr_phone.phoneno'
FROM ((SELECT 'idu=' || o.idu::text AS key, o.phoneno::text AS value0 FROM usr_phone AS o WHERE (o.idu IS DISTINCT FROM NULL AND o.phoneno IS DISTINCT FROM NULL))) AS side GROUP BY side.key;
END IF;
END IF;
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr__usr_phone_truncate() FROM PUBLIC
CREATE TRIGGER event_log_usr__usr_phone_truncate BEFORE TRUNCATE ON usr_phone
FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_usr__usr_phone_truncate()
