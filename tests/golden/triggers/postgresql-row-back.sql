-- event_log_usr_insert on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off
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
  'usr', fact.name, fact.old, fact.new
FROM new_rows AS n CROSS JOIN LATERAL (
SELECT 'idu=' || n.idu::text, eventlog_kind_5, NULL, NULL, NULL
WHERE (1 = 1)
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_insert() FROM PUBLIC
CREATE TRIGGER event_log_usr_insert AFTER INSERT ON usr
REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_usr_insert()

-- event_log_usr_update on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_update() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_mergejoin = off
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
  event_time, perpetrator, table_name)
SELECT CASE WHEN (n.idu IS NOT DISTINCT FROM NULL) THEN 'idu=' || o.idu::text ELSE 'idu=' || n.idu::text END, eventlog_waiting, CASE WHEN (n.idu IS NOT DISTINCT FROM NULL) THEN eventlog_kind_4
       WHEN (o.idu IS NOT DISTINCT FROM NULL) THEN eventlog_kind_5 ELSE eventlog_kind_6 END, eventlog_now, eventlog_user,
  'usr'
FROM old_rows AS o FULL JOIN new_rows AS n ON o.idu = n.idu WHERE ((n.idu IS NOT DISTINCT FROM NULL) OR (o.idu IS NOT DISTINCT FROM NULL) OR o.* *<> n.*);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_update() FROM PUBLIC
CREATE TRIGGER event_log_usr_update AFTER UPDATE ON usr
REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_usr_update()

-- event_log_usr_delete on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_delete() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off
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
  'usr', fact.name, fact.old, fact.new
FROM old_rows AS o CROSS JOIN LATERAL (
SELECT 'idu=' || o.idu::text, eventlog_kind_4, NULL, NULL, NULL
WHERE (1 = 1)
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_delete() FROM PUBLIC
CREATE TRIGGER event_log_usr_delete AFTER DELETE ON usr
REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_usr_delete()

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
SET search_path = pg_catalog, pg_temp SET jit = off
AS $eventlog$
DECLARE
eventlog_kind_6 CONSTANT own.event_log.event_type%TYPE := 6;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name)
SELECT side.key, eventlog_waiting, eventlog_kind_6, eventlog_now, eventlog_user,
  'usr', NULL
FROM ((SELECT 'idu=' || n.idu::text AS key, n.phoneno::text AS value0, n.kind::text AS value1 FROM new_rows AS n WHERE (n.idu IS DISTINCT FROM NULL))) AS side GROUP BY side.key;
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr__usr_phone_insert() FROM PUBLIC
CREATE TRIGGER event_log_usr__usr_phone_insert AFTER INSERT ON usr_phone
REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_usr__usr_phone_insert()

-- event_log_usr__usr_phone_update on usr_phone
CREATE OR REPLACE FUNCTION own.event_log_usr__usr_phone_update() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off
AS $eventlog$
DECLARE
eventlog_kind_6 CONSTANT own.event_log.event_type%TYPE := 6;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name)
SELECT side.key, eventlog_waiting, eventlog_kind_6, eventlog_now, eventlog_user,
  'usr', NULL
FROM (((SELECT 'idu=' || o.idu::text AS key, o.phoneno::text AS value0, o.kind::text AS value1 FROM old_rows AS o WHERE (o.idu IS DISTINCT FROM NULL AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (1 = 1)) IS NOT NULL)) EXCEPT ALL SELECT 'idu=' || n.idu::text AS key, n.phoneno::text AS value0, n.kind::text AS value1 FROM new_rows AS n WHERE (n.idu IS DISTINCT FROM NULL)) UNION ALL (SELECT 'idu=' || n.idu::text AS key, n.phoneno::text AS value0, n.kind::text AS value1 FROM new_rows AS n WHERE (n.idu IS DISTINCT FROM NULL) EXCEPT ALL SELECT 'idu=' || o.idu::text AS key, o.phoneno::text AS value0, o.kind::text AS value1 FROM old_rows AS o WHERE (o.idu IS DISTINCT FROM NULL AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (1 = 1)) IS NOT NULL))))) AS side GROUP BY side.key;
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr__usr_phone_update() FROM PUBLIC
CREATE TRIGGER event_log_usr__usr_phone_update AFTER UPDATE ON usr_phone
REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_usr__usr_phone_update()

-- event_log_usr__usr_phone_delete on usr_phone
CREATE OR REPLACE FUNCTION own.event_log_usr__usr_phone_delete() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off
AS $eventlog$
DECLARE
eventlog_kind_6 CONSTANT own.event_log.event_type%TYPE := 6;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name)
SELECT side.key, eventlog_waiting, eventlog_kind_6, eventlog_now, eventlog_user,
  'usr', NULL
FROM ((SELECT 'idu=' || o.idu::text AS key, o.phoneno::text AS value0, o.kind::text AS value1 FROM old_rows AS o WHERE (o.idu IS DISTINCT FROM NULL AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (1 = 1)) IS NOT NULL)))) AS side GROUP BY side.key;
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr__usr_phone_delete() FROM PUBLIC
CREATE TRIGGER event_log_usr__usr_phone_delete AFTER DELETE ON usr_phone
REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_usr__usr_phone_delete()

-- event_log_usr__usr_phone_truncate on usr_phone
CREATE OR REPLACE FUNCTION own.event_log_usr__usr_phone_truncate() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off
AS $eventlog$
DECLARE
eventlog_kind_6 CONSTANT own.event_log.event_type%TYPE := 6;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
RAISE WARNING 'eventlog: rows of % that others have committed since this transaction began go without being logged.', TG_RELID::regclass
USING HINT = 'TRUNCATE in a READ COMMITTED transaction, or DELETE.';
END IF;
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name)
SELECT side.key, eventlog_waiting, eventlog_kind_6, eventlog_now, eventlog_user,
  'usr', NULL
FROM ((SELECT 'idu=' || o.idu::text AS key, o.phoneno::text AS value0, o.kind::text AS value1 FROM usr_phone AS o WHERE (o.idu IS DISTINCT FROM NULL))) AS side GROUP BY side.key;
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr__usr_phone_truncate() FROM PUBLIC
CREATE TRIGGER event_log_usr__usr_phone_truncate BEFORE TRUNCATE ON usr_phone
FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_usr__usr_phone_truncate()
