-- event_log_usr_change on usr
CREATE OR REPLACE PROCEDURE event_log_usr_change_log
(row_key VARCHAR2, kind NUMBER, column_called VARCHAR2, old_text CLOB, new_text VARCHAR2) IS
BEGIN
  INSERT INTO own.event_log (table_key, status,
    event_type, event_time, perpetrator, table_name,
    column_name, old_value, new_value)
  VALUES (row_key, 'N', kind, CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE), SYS_CONTEXT('USERENV', 'SESSION_USER'), 'usr', column_called, old_text,
    new_text);
END;
CREATE OR REPLACE TRIGGER event_log_usr_change
AFTER INSERT OR UPDATE OR DELETE ON usr
FOR EACH ROW
DECLARE
/* eventlog {"log":"own.event_log","table":"usr","options":{"style":"image","exclude":["photo"],"repeated":["usr_phone.phoneno"]},"hash":"bec01971a1c6e6c2","watched":["fname","seen","usr_phone.phoneno","usr_phone.kind"]} */
  old_key VARCHAR2(32767);
  new_key VARCHAR2(32767);
  moved PLS_INTEGER := 0;
  old_holds PLS_INTEGER := 1;
  new_holds PLS_INTEGER := 1;
  mutating EXCEPTION;
  PRAGMA EXCEPTION_INIT(mutating, -4091);
BEGIN
old_key := 'idu=' || TO_CHAR(:OLD.idu, 'TM9');
new_key := 'idu=' || TO_CHAR(:NEW.idu, 'TM9');
IF ((CASE WHEN UTL_RAW.CAST_TO_RAW(TO_CHAR(:OLD.idu, 'TM9')) = UTL_RAW.CAST_TO_RAW(TO_CHAR(:NEW.idu, 'TM9'))
   OR (TO_CHAR(:OLD.idu, 'TM9') IS NULL AND TO_CHAR(:NEW.idu, 'TM9') IS NULL) THEN 0 ELSE 1 END = 1)) THEN
  moved := 1;
END IF;
IF INSERTING THEN
IF (1 = 1) THEN
IF (1 = 1) THEN
  event_log_usr_change_log(new_key, 1, 'fname', NULL, :NEW.fname);
END IF;
IF (1 = 1) THEN
  event_log_usr_change_log(new_key, 1, 'seen', NULL, TO_CHAR(:NEW.seen, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN'));
END IF;
END IF;
ELSIF UPDATING THEN
IF ((moved > 0)) THEN
  event_log_usr_change_log(old_key, 4, NULL, TO_CLOB('{"fname":') || (CASE WHEN :OLD.fname IS NULL THEN 'null'
 ELSE '"' || REPLACE(REPLACE(:OLD.fname, '\', '\\'), '"', '\"') || '"' END) || ',"seen":' || (CASE WHEN TO_CHAR(:OLD.seen, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN') IS NULL THEN 'null'
 ELSE '"' || REPLACE(REPLACE(TO_CHAR(:OLD.seen, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN'), '\', '\\'), '"', '\"') || '"' END) || '}', NULL);
END IF;
IF ((moved > 0)) THEN
IF (1 = 1) THEN
  event_log_usr_change_log(new_key, 1, 'fname', NULL, :NEW.fname);
END IF;
IF (1 = 1) THEN
  event_log_usr_change_log(new_key, 1, 'seen', NULL, TO_CHAR(:NEW.seen, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN'));
END IF;
END IF;
IF (NOT (moved > 0)
  AND ((CASE WHEN UTL_RAW.CAST_TO_RAW(:OLD.fname) = UTL_RAW.CAST_TO_RAW(:NEW.fname)
   OR (:OLD.fname IS NULL AND :NEW.fname IS NULL) THEN 0 ELSE 1 END = 1)
  OR (CASE WHEN :OLD.seen = :NEW.seen OR (:OLD.seen IS NULL AND :NEW.seen IS NULL)
 THEN 0 ELSE 1 END = 1))) THEN
IF (1 = 1) THEN
  event_log_usr_change_log(new_key, 2, 'fname', :OLD.fname, :NEW.fname);
END IF;
IF (1 = 1) THEN
  event_log_usr_change_log(new_key, 2, 'seen', TO_CHAR(:OLD.seen, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN'), TO_CHAR(:NEW.seen, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN'));
END IF;
END IF;
ELSE
IF (1 = 1) THEN
  event_log_usr_change_log(old_key, 4, NULL, TO_CLOB('{"fname":') || (CASE WHEN :OLD.fname IS NULL THEN 'null'
 ELSE '"' || REPLACE(REPLACE(:OLD.fname, '\', '\\'), '"', '\"') || '"' END) || ',"seen":' || (CASE WHEN TO_CHAR(:OLD.seen, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN') IS NULL THEN 'null'
 ELSE '"' || REPLACE(REPLACE(TO_CHAR(:OLD.seen, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN'), '\', '\\'), '"', '\"') || '"' END) || '}', NULL);
END IF;
END IF;
END;
DECLARE
  mistakes PLS_INTEGER;
BEGIN
  SELECT COUNT(*) INTO mistakes FROM all_triggers
  JOIN all_objects ON all_objects.owner = all_triggers.owner AND object_name = trigger_name
  WHERE object_type = 'TRIGGER' AND all_objects.status = 'INVALID'
    AND trigger_name = 'EVENT_LOG_USR_CHANGE' AND all_triggers.owner = USER;
  IF mistakes > 0 THEN
    EXECUTE IMMEDIATE 'ALTER TRIGGER event_log_usr_change DISABLE';
    RAISE_APPLICATION_ERROR(-20999, 'The trigger event_log_usr_change does not compile and is disabled. May the owner of its table insert into the log?');
  END IF;
END;

-- event_log_usr__usr_ph_fbd8f1ed on usr_phone
CREATE OR REPLACE PROCEDURE event_log_usr__usr_ph_04e563a0
(row_key VARCHAR2, kind NUMBER, column_called VARCHAR2, old_text CLOB, new_text VARCHAR2) IS
BEGIN
  INSERT INTO own.event_log (table_key, status,
    event_type, event_time, perpetrator, table_name,
    column_name, old_value, new_value)
  VALUES (row_key, 'N', kind, CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE), SYS_CONTEXT('USERENV', 'SESSION_USER'), 'usr', column_called, old_text,
    new_text);
END;
CREATE OR REPLACE TRIGGER event_log_usr__usr_ph_fbd8f1ed
AFTER INSERT OR UPDATE OR DELETE ON usr_phone
FOR EACH ROW
DECLARE
/* eventlog {"log":"own.event_log","table":"usr","options":{"style":"image","exclude":["photo"],"repeated":["usr_phone.phoneno"]},"hash":"228c91b967455766","watched":["fname","seen","usr_phone.phoneno","usr_phone.kind"]} */
  old_key VARCHAR2(32767);
  new_key VARCHAR2(32767);
  moved PLS_INTEGER := 0;
  old_holds PLS_INTEGER := 1;
  new_holds PLS_INTEGER := 1;
  mutating EXCEPTION;
  PRAGMA EXCEPTION_INIT(mutating, -4091);
BEGIN
old_key := 'idu=' || TO_CHAR(:OLD.idu, 'TM9');
new_key := 'idu=' || TO_CHAR(:NEW.idu, 'TM9');
IF ((CASE WHEN UTL_RAW.CAST_TO_RAW(TO_CHAR(:OLD.idu, 'TM9')) = UTL_RAW.CAST_TO_RAW(TO_CHAR(:NEW.idu, 'TM9'))
   OR (TO_CHAR(:OLD.idu, 'TM9') IS NULL AND TO_CHAR(:NEW.idu, 'TM9') IS NULL) THEN 0 ELSE 1 END = 1)) THEN
  moved := 1;
END IF;
IF INSERTING THEN
IF (:NEW.idu IS NOT NULL AND :NEW.phoneno IS NOT NULL) THEN
  event_log_usr__usr_ph_04e563a0(new_key, 1, 'usr_phone.phoneno', NULL, :NEW.phoneno);
END IF;
IF (:NEW.idu IS NOT NULL AND :NEW.kind IS NOT NULL) THEN
  event_log_usr__usr_ph_04e563a0(new_key, 1, 'usr_phone.kind', NULL, TO_CHAR(:NEW.kind, 'TM9'));
END IF;
ELSIF UPDATING THEN
IF ((((CASE WHEN UTL_RAW.CAST_TO_RAW(:OLD.phoneno) = UTL_RAW.CAST_TO_RAW(:NEW.phoneno)
   OR (:OLD.phoneno IS NULL AND :NEW.phoneno IS NULL) THEN 0 ELSE 1 END = 1))
  OR (moved > 0))
  AND :OLD.idu IS NOT NULL
  AND :OLD.phoneno IS NOT NULL) THEN
  event_log_usr__usr_ph_04e563a0(old_key, 8, 'usr_phone.phoneno', NULL, NULL);
END IF;
IF ((((CASE WHEN UTL_RAW.CAST_TO_RAW(:OLD.phoneno) = UTL_RAW.CAST_TO_RAW(:NEW.phoneno)
   OR (:OLD.phoneno IS NULL AND :NEW.phoneno IS NULL) THEN 0 ELSE 1 END = 1))
  OR (moved > 0))
  AND :NEW.idu IS NOT NULL
  AND :NEW.phoneno IS NOT NULL) THEN
  event_log_usr__usr_ph_04e563a0(new_key, 1, 'usr_phone.phoneno', NULL, :NEW.phoneno);
END IF;
IF ((((CASE WHEN UTL_RAW.CAST_TO_RAW(TO_CHAR(:OLD.kind, 'TM9')) = UTL_RAW.CAST_TO_RAW(TO_CHAR(:NEW.kind, 'TM9'))
   OR (TO_CHAR(:OLD.kind, 'TM9') IS NULL AND TO_CHAR(:NEW.kind, 'TM9') IS NULL) THEN 0 ELSE 1 END = 1))
  OR (moved > 0))
  AND :OLD.idu IS NOT NULL
  AND :OLD.kind IS NOT NULL) THEN
  event_log_usr__usr_ph_04e563a0(old_key, 2, 'usr_phone.kind', TO_CHAR(:OLD.kind, 'TM9'), NULL);
END IF;
IF ((((CASE WHEN UTL_RAW.CAST_TO_RAW(TO_CHAR(:OLD.kind, 'TM9')) = UTL_RAW.CAST_TO_RAW(TO_CHAR(:NEW.kind, 'TM9'))
   OR (TO_CHAR(:OLD.kind, 'TM9') IS NULL AND TO_CHAR(:NEW.kind, 'TM9') IS NULL) THEN 0 ELSE 1 END = 1))
  OR (moved > 0))
  AND :NEW.idu IS NOT NULL
  AND :NEW.kind IS NOT NULL) THEN
  event_log_usr__usr_ph_04e563a0(new_key, 1, 'usr_phone.kind', NULL, TO_CHAR(:NEW.kind, 'TM9'));
END IF;
ELSE
IF (:OLD.idu IS NOT NULL AND :OLD.phoneno IS NOT NULL) THEN
  event_log_usr__usr_ph_04e563a0(old_key, 8, 'usr_phone.phoneno', NULL, NULL);
END IF;
IF (:OLD.idu IS NOT NULL AND :OLD.kind IS NOT NULL) THEN
  event_log_usr__usr_ph_04e563a0(old_key, 2, 'usr_phone.kind', TO_CHAR(:OLD.kind, 'TM9'), NULL);
END IF;
END IF;
END;
DECLARE
  mistakes PLS_INTEGER;
BEGIN
  SELECT COUNT(*) INTO mistakes FROM all_triggers
  JOIN all_objects ON all_objects.owner = all_triggers.owner AND object_name = trigger_name
  WHERE object_type = 'TRIGGER' AND all_objects.status = 'INVALID'
    AND trigger_name = 'EVENT_LOG_USR__USR_PH_FBD8F1ED' AND all_triggers.owner = USER;
  IF mistakes > 0 THEN
    EXECUTE IMMEDIATE 'ALTER TRIGGER event_log_usr__usr_ph_fbd8f1ed DISABLE';
    RAISE_APPLICATION_ERROR(-20999, 'The trigger event_log_usr__usr_ph_fbd8f1ed does not compile and is disabled. May the owner of its table insert into the log?');
  END IF;
END;
