-- event_log_usr_insert on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex'
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
FROM new_rows AS n CROSS JOIN LATERAL (
SELECT 'idu=' || n.idu::text, eventlog_kind_1, 'fname', NULL, n.fname::text
WHERE ((n.fname IS DISTINCT FROM NULL OR (n.photo IS NOT DISTINCT FROM NULL AND n.seen IS NOT DISTINCT FROM NULL))
  AND EXISTS (SELECT 1 FROM (SELECT n.idu AS idu, n.fname AS fname, n.photo AS photo, n.seen AS seen) AS usr WHERE (fname = 'Ann')))
UNION ALL SELECT 'idu=' || n.idu::text, eventlog_kind_1, 'photo', NULL, replace(encode(n.photo, 'base64'), E'\n', '')
WHERE (EXISTS (SELECT 1 FROM (SELECT n.idu AS idu, n.fname AS fname, n.photo AS photo, n.seen AS seen) AS usr WHERE (fname = 'Ann'))
  AND n.photo IS DISTINCT FROM NULL)
UNION ALL SELECT 'idu=' || n.idu::text, eventlog_kind_1, 'seen', NULL, CASE WHEN n.seen >= '0001-01-01' AND n.seen < 'infinity'
THEN to_char(n.seen, 'YYYY-MM-DD HH24:MI:SS.US') || '000'
ELSE replace(to_json(n.seen) #>> '{}', 'T', ' ') END
WHERE (EXISTS (SELECT 1 FROM (SELECT n.idu AS idu, n.fname AS fname, n.photo AS photo, n.seen AS seen) AS usr WHERE (fname = 'Ann'))
  AND n.seen IS DISTINCT FROM NULL)
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_insert() FROM PUBLIC
CREATE TRIGGER event_log_usr_insert AFTER INSERT ON usr
REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_usr_insert()

-- event_log_usr_update on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_update() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET enable_mergejoin = off SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $eventlog$
DECLARE
eventlog_kind_1 CONSTANT own.event_log.event_type%TYPE := 1;
eventlog_kind_2 CONSTANT own.event_log.event_type%TYPE := 2;
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
FROM old_rows AS o FULL JOIN new_rows AS n ON o.idu = n.idu CROSS JOIN LATERAL (
SELECT 'idu=' || o.idu::text, eventlog_kind_4, NULL, NULL, NULL
WHERE (n.idu IS NOT DISTINCT FROM NULL
  AND EXISTS (SELECT 1 FROM (SELECT o.idu AS idu, o.fname AS fname, o.photo AS photo, o.seen AS seen) AS usr WHERE (fname = 'Ann')))
UNION ALL SELECT 'idu=' || n.idu::text, eventlog_kind_1, 'fname', NULL, n.fname::text
WHERE (o.idu IS NOT DISTINCT FROM NULL
  AND (n.fname IS DISTINCT FROM NULL OR (n.photo IS NOT DISTINCT FROM NULL AND n.seen IS NOT DISTINCT FROM NULL))
  AND EXISTS (SELECT 1 FROM (SELECT n.idu AS idu, n.fname AS fname, n.photo AS photo, n.seen AS seen) AS usr WHERE (fname = 'Ann')))
UNION ALL SELECT 'idu=' || n.idu::text, eventlog_kind_1, 'photo', NULL, replace(encode(n.photo, 'base64'), E'\n', '')
WHERE (o.idu IS NOT DISTINCT FROM NULL
  AND EXISTS (SELECT 1 FROM (SELECT n.idu AS idu, n.fname AS fname, n.photo AS photo, n.seen AS seen) AS usr WHERE (fname = 'Ann'))
  AND n.photo IS DISTINCT FROM NULL)
UNION ALL SELECT 'idu=' || n.idu::text, eventlog_kind_1, 'seen', NULL, CASE WHEN n.seen >= '0001-01-01' AND n.seen < 'infinity'
THEN to_char(n.seen, 'YYYY-MM-DD HH24:MI:SS.US') || '000'
ELSE replace(to_json(n.seen) #>> '{}', 'T', ' ') END
WHERE (o.idu IS NOT DISTINCT FROM NULL
  AND EXISTS (SELECT 1 FROM (SELECT n.idu AS idu, n.fname AS fname, n.photo AS photo, n.seen AS seen) AS usr WHERE (fname = 'Ann'))
  AND n.seen IS DISTINCT FROM NULL)
UNION ALL SELECT 'idu=' || n.idu::text, eventlog_kind_2, 'fname', o.fname::text, n.fname::text
WHERE (NOT (n.idu IS NOT DISTINCT FROM NULL)
  AND NOT (o.idu IS NOT DISTINCT FROM NULL)
  AND ((o.fname::text) COLLATE "C" IS DISTINCT FROM (n.fname::text) COLLATE "C")
  AND (EXISTS (SELECT 1 FROM (SELECT o.idu AS idu, o.fname AS fname, o.photo AS photo, o.seen AS seen) AS usr WHERE (fname = 'Ann'))
  OR EXISTS (SELECT 1 FROM (SELECT n.idu AS idu, n.fname AS fname, n.photo AS photo, n.seen AS seen) AS usr WHERE (fname = 'Ann'))))
UNION ALL SELECT 'idu=' || n.idu::text, eventlog_kind_2, 'photo', replace(encode(o.photo, 'base64'), E'\n', ''), replace(encode(n.photo, 'base64'), E'\n', '')
WHERE (NOT (n.idu IS NOT DISTINCT FROM NULL)
  AND NOT (o.idu IS NOT DISTINCT FROM NULL)
  AND ((replace(encode(o.photo, 'base64'), E'\n', '')) COLLATE "C" IS DISTINCT FROM (replace(encode(n.photo, 'base64'), E'\n', '')) COLLATE "C")
  AND (EXISTS (SELECT 1 FROM (SELECT o.idu AS idu, o.fname AS fname, o.photo AS photo, o.seen AS seen) AS usr WHERE (fname = 'Ann'))
  OR EXISTS (SELECT 1 FROM (SELECT n.idu AS idu, n.fname AS fname, n.photo AS photo, n.seen AS seen) AS usr WHERE (fname = 'Ann'))))
UNION ALL SELECT 'idu=' || n.idu::text, eventlog_kind_2, 'seen', CASE WHEN o.seen >= '0001-01-01' AND o.seen < 'infinity'
THEN to_char(o.seen, 'YYYY-MM-DD HH24:MI:SS.US') || '000'
ELSE replace(to_json(o.seen) #>> '{}', 'T', ' ') END, CASE WHEN n.seen >= '0001-01-01' AND n.seen < 'infinity'
THEN to_char(n.seen, 'YYYY-MM-DD HH24:MI:SS.US') || '000'
ELSE replace(to_json(n.seen) #>> '{}', 'T', ' ') END
WHERE (NOT (n.idu IS NOT DISTINCT FROM NULL)
  AND NOT (o.idu IS NOT DISTINCT FROM NULL)
  AND (o.seen IS DISTINCT FROM n.seen)
  AND (EXISTS (SELECT 1 FROM (SELECT o.idu AS idu, o.fname AS fname, o.photo AS photo, o.seen AS seen) AS usr WHERE (fname = 'Ann'))
  OR EXISTS (SELECT 1 FROM (SELECT n.idu AS idu, n.fname AS fname, n.photo AS photo, n.seen AS seen) AS usr WHERE (fname = 'Ann'))))
UNION ALL SELECT 'idu=' || o.idu::text, eventlog_kind_5, NULL, NULL, NULL
WHERE (n.idu IS NOT DISTINCT FROM NULL
  AND EXISTS (SELECT 1 FROM usr usr WHERE usr.idu = o.idu AND (fname = 'Ann'))
  AND EXISTS (SELECT 1 FROM (SELECT o.idu AS idu, o.fname AS fname, o.photo AS photo, o.seen AS seen) AS usr WHERE (fname = 'Ann')))
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_update() FROM PUBLIC
CREATE TRIGGER event_log_usr_update AFTER UPDATE ON usr
REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_usr_update()

-- event_log_usr_delete on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_delete() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex'
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
FROM old_rows AS o CROSS JOIN LATERAL (
SELECT 'idu=' || o.idu::text, eventlog_kind_4, NULL, NULL, NULL
WHERE (EXISTS (SELECT 1 FROM (SELECT o.idu AS idu, o.fname AS fname, o.photo AS photo, o.seen AS seen) AS usr WHERE (fname = 'Ann')))
UNION ALL SELECT 'idu=' || o.idu::text, eventlog_kind_5, NULL, NULL, NULL
WHERE (EXISTS (SELECT 1 FROM usr usr WHERE usr.idu = o.idu AND (fname = 'Ann'))
  AND EXISTS (SELECT 1 FROM (SELECT o.idu AS idu, o.fname AS fname, o.photo AS photo, o.seen AS seen) AS usr WHERE (fname = 'Ann')))
) AS fact (key, kind, name, old, new);
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr_delete() FROM PUBLIC
CREATE TRIGGER event_log_usr_delete AFTER DELETE ON usr
REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_usr_delete()

-- event_log_usr_truncate on usr
CREATE OR REPLACE FUNCTION own.event_log_usr_truncate() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
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
  'usr', fact.name, fact.old, fact.new
FROM usr AS o CROSS JOIN LATERAL (
SELECT 'idu=' || o.idu::text, eventlog_kind_4, NULL, NULL, NULL
WHERE (EXISTS (SELECT 1 FROM (SELECT o.idu AS idu, o.fname AS fname, o.photo AS photo, o.seen AS seen) AS usr WHERE (fname = 'Ann')))
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
eventlog_kind_1 CONSTANT own.event_log.event_type%TYPE := 1;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, new_value)
SELECT side.key, eventlog_waiting, eventlog_kind_1, eventlog_now, eventlog_user,
  'usr', 'usr_phone.phoneno', side.value0
FROM ((SELECT 'idu=' || n.idu::text AS key, n.phoneno::text AS value0 FROM new_rows AS n WHERE (n.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = n.idu AND (fname = 'Ann')) IS NOT NULL)
  AND n.phoneno IS DISTINCT FROM NULL))) AS side;
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, new_value)
SELECT side.key, eventlog_waiting, eventlog_kind_1, eventlog_now, eventlog_user,
  'usr', 'usr_phone.kind', side.value0
FROM ((SELECT 'idu=' || n.idu::text AS key, n.kind::text AS value0 FROM new_rows AS n WHERE (n.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = n.idu AND (fname = 'Ann')) IS NOT NULL)
  AND n.kind IS DISTINCT FROM NULL))) AS side;
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
eventlog_kind_1 CONSTANT own.event_log.event_type%TYPE := 1;
eventlog_kind_2 CONSTANT own.event_log.event_type%TYPE := 2;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value)
SELECT side.key, eventlog_waiting, eventlog_kind_2, eventlog_now, eventlog_user,
  'usr', 'usr_phone.phoneno', side.value0
FROM ((SELECT 'idu=' || o.idu::text AS key, o.phoneno::text AS value0 FROM old_rows AS o WHERE (o.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (fname = 'Ann')) IS NOT NULL)
  AND o.phoneno IS DISTINCT FROM NULL) EXCEPT ALL SELECT 'idu=' || n.idu::text AS key, n.phoneno::text AS value0 FROM new_rows AS n WHERE (n.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = n.idu AND (fname = 'Ann')) IS NOT NULL)
  AND n.phoneno IS DISTINCT FROM NULL))) AS side;
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, new_value)
SELECT side.key, eventlog_waiting, eventlog_kind_1, eventlog_now, eventlog_user,
  'usr', 'usr_phone.phoneno', side.value0
FROM ((SELECT 'idu=' || n.idu::text AS key, n.phoneno::text AS value0 FROM new_rows AS n WHERE (n.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = n.idu AND (fname = 'Ann')) IS NOT NULL)
  AND n.phoneno IS DISTINCT FROM NULL) EXCEPT ALL SELECT 'idu=' || o.idu::text AS key, o.phoneno::text AS value0 FROM old_rows AS o WHERE (o.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (fname = 'Ann')) IS NOT NULL)
  AND o.phoneno IS DISTINCT FROM NULL))) AS side;
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value)
SELECT side.key, eventlog_waiting, eventlog_kind_2, eventlog_now, eventlog_user,
  'usr', 'usr_phone.kind', side.value0
FROM ((SELECT 'idu=' || o.idu::text AS key, o.kind::text AS value0 FROM old_rows AS o WHERE (o.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (fname = 'Ann')) IS NOT NULL)
  AND o.kind IS DISTINCT FROM NULL) EXCEPT ALL SELECT 'idu=' || n.idu::text AS key, n.kind::text AS value0 FROM new_rows AS n WHERE (n.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = n.idu AND (fname = 'Ann')) IS NOT NULL)
  AND n.kind IS DISTINCT FROM NULL))) AS side;
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, new_value)
SELECT side.key, eventlog_waiting, eventlog_kind_1, eventlog_now, eventlog_user,
  'usr', 'usr_phone.kind', side.value0
FROM ((SELECT 'idu=' || n.idu::text AS key, n.kind::text AS value0 FROM new_rows AS n WHERE (n.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = n.idu AND (fname = 'Ann')) IS NOT NULL)
  AND n.kind IS DISTINCT FROM NULL) EXCEPT ALL SELECT 'idu=' || o.idu::text AS key, o.kind::text AS value0 FROM old_rows AS o WHERE (o.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (fname = 'Ann')) IS NOT NULL)
  AND o.kind IS DISTINCT FROM NULL))) AS side;
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
eventlog_kind_2 CONSTANT own.event_log.event_type%TYPE := 2;
eventlog_now CONSTANT own.event_log.event_time%TYPE := (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
eventlog_user CONSTANT own.event_log.perpetrator%TYPE := SESSION_USER;
eventlog_waiting CONSTANT own.event_log.status%TYPE := 'N';
BEGIN

INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value)
SELECT side.key, eventlog_waiting, eventlog_kind_2, eventlog_now, eventlog_user,
  'usr', 'usr_phone.phoneno', side.value0
FROM ((SELECT 'idu=' || o.idu::text AS key, o.phoneno::text AS value0 FROM old_rows AS o WHERE (o.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (fname = 'Ann')) IS NOT NULL)
  AND o.phoneno IS DISTINCT FROM NULL))) AS side;
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value)
SELECT side.key, eventlog_waiting, eventlog_kind_2, eventlog_now, eventlog_user,
  'usr', 'usr_phone.kind', side.value0
FROM ((SELECT 'idu=' || o.idu::text AS key, o.kind::text AS value0 FROM old_rows AS o WHERE (o.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (fname = 'Ann')) IS NOT NULL)
  AND o.kind IS DISTINCT FROM NULL))) AS side;
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
FROM ((SELECT 'idu=' || o.idu::text AS key, o.phoneno::text AS value0 FROM usr_phone AS o WHERE (o.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (fname = 'Ann')) IS NOT NULL)
  AND o.phoneno IS DISTINCT FROM NULL))) AS side;
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name, old_value)
SELECT side.key, eventlog_waiting, eventlog_kind_2, eventlog_now, eventlog_user,
  'usr', 'usr_phone.kind', side.value0
FROM ((SELECT 'idu=' || o.idu::text AS key, o.kind::text AS value0 FROM usr_phone AS o WHERE (o.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (fname = 'Ann')) IS NOT NULL)
  AND o.kind IS DISTINCT FROM NULL))) AS side;
ELSE
IF has_table_privilege('own.event_log', 'SELECT') THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name)
SELECT side.key, eventlog_waiting, eventlog_kind_8, eventlog_now, eventlog_user,
  'usr', 'usr_phone.phoneno'
FROM ((SELECT side.* FROM (SELECT 'idu=' || o.idu::text AS key, o.phoneno::text AS value0 FROM usr_phone AS o WHERE (o.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (fname = 'Ann')) IS NOT NULL)
  AND o.phoneno IS DISTINCT FROM NULL)) AS side WHERE side.key NOT IN (SELECT ended.key FROM (
  SELECT DISTINCT ON (told.table_key) told.table_key AS key, told.event_type AS kind
  FROM own.event_log AS told WHERE told.status = 'N' AND told.table_name = 'usr'
  ORDER BY told.table_key, told.record_id DESC) AS ended WHERE ended.kind = 4))) AS side GROUP BY side.key;
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name)
SELECT side.key, eventlog_waiting, eventlog_kind_8, eventlog_now, eventlog_user,
  'usr', 'usr_phone.kind'
FROM ((SELECT side.* FROM (SELECT 'idu=' || o.idu::text AS key, o.kind::text AS value0 FROM usr_phone AS o WHERE (o.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (fname = 'Ann')) IS NOT NULL)
  AND o.kind IS DISTINCT FROM NULL)) AS side WHERE side.key NOT IN (SELECT ended.key FROM (
  SELECT DISTINCT ON (told.table_key) told.table_key AS key, told.event_type AS kind
  FROM own.event_log AS told WHERE told.status = 'N' AND told.table_name = 'usr'
  ORDER BY told.table_key, told.record_id DESC) AS ended WHERE ended.kind = 4))) AS side GROUP BY side.key;
ELSE
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name)
SELECT side.key, eventlog_waiting, eventlog_kind_8, eventlog_now, eventlog_user,
  'usr', 'usr_phone.phoneno'
FROM ((SELECT 'idu=' || o.idu::text AS key, o.phoneno::text AS value0 FROM usr_phone AS o WHERE (o.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (fname = 'Ann')) IS NOT NULL)
  AND o.phoneno IS DISTINCT FROM NULL))) AS side GROUP BY side.key;
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name)
SELECT side.key, eventlog_waiting, eventlog_kind_8, eventlog_now, eventlog_user,
  'usr', 'usr_phone.kind'
FROM ((SELECT 'idu=' || o.idu::text AS key, o.kind::text AS value0 FROM usr_phone AS o WHERE (o.idu IS DISTINCT FROM NULL
  AND ((SELECT true FROM usr AS usr WHERE usr.idu = o.idu AND (fname = 'Ann')) IS NOT NULL)
  AND o.kind IS DISTINCT FROM NULL))) AS side GROUP BY side.key;
END IF;
END IF;
RETURN NULL;
END
$eventlog$
REVOKE ALL ON FUNCTION own.event_log_usr__usr_phone_truncate() FROM PUBLIC
CREATE TRIGGER event_log_usr__usr_phone_truncate BEFORE TRUNCATE ON usr_phone
FOR EACH STATEMENT EXECUTE FUNCTION own.event_log_usr__usr_phone_truncate()
