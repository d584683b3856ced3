-- event_log_usr_change on usr
CREATE OR REPLACE PACKAGE event_log_usr_change_15ada078 AUTHID DEFINER AS
  TYPE log_row IS RECORD (row_key VARCHAR2(4000 BYTE), kind PLS_INTEGER, column_called VARCHAR2(4000 BYTE),
    old_text CLOB, new_text CLOB);
  TYPE log_rows IS TABLE OF log_row INDEX BY PLS_INTEGER;
  PROCEDURE row_changed(noted IN OUT NOCOPY log_rows, inserts BOOLEAN, updates BOOLEAN,
    old_1 usr.idu%TYPE,
    new_1 usr.idu%TYPE,
    old_2 usr.fname%TYPE,
    new_2 usr.fname%TYPE,
    old_4 usr.seen%TYPE,
    new_4 usr.seen%TYPE);
  PROCEDURE write_rows(noted IN OUT NOCOPY log_rows);
END;
CREATE OR REPLACE PACKAGE BODY event_log_usr_change_15ada078 AS
  PROCEDURE note(noted IN OUT NOCOPY log_rows, row_key VARCHAR2, kind PLS_INTEGER, column_called VARCHAR2,
    old_text CLOB, new_text CLOB) IS
    place PLS_INTEGER := noted.COUNT + 1;
  BEGIN
    noted(place).row_key := row_key;
    noted(place).kind := kind;
    noted(place).column_called := column_called;
    IF LENGTH(old_text) <= 1000000 THEN
      noted(place).old_text := old_text;
    END IF;
    IF LENGTH(new_text) <= 1000000 THEN
      noted(place).new_text := new_text;
    END IF;
  END;

  PROCEDURE row_changed(noted IN OUT NOCOPY log_rows, inserts BOOLEAN, updates BOOLEAN,
    old_1 usr.idu%TYPE,
    new_1 usr.idu%TYPE,
    old_2 usr.fname%TYPE,
    new_2 usr.fname%TYPE,
    old_4 usr.seen%TYPE,
    new_4 usr.seen%TYPE) IS
    old_key VARCHAR2(32767);
    new_key VARCHAR2(32767);
    moved PLS_INTEGER := 0;
    old_holds PLS_INTEGER := 1;
    new_holds PLS_INTEGER := 1;
    mutating EXCEPTION;
    PRAGMA EXCEPTION_INIT(mutating, -4091);
  BEGIN
BEGIN
  old_key := 'idu=' || TO_CHAR(old_1, 'TM9');
EXCEPTION
  WHEN VALUE_ERROR THEN old_key := NULL;
END;
BEGIN
  new_key := 'idu=' || TO_CHAR(new_1, 'TM9');
EXCEPTION
  WHEN VALUE_ERROR THEN new_key := NULL;
END;
IF old_key IS NULL OR LENGTHB(old_key) > 4000 THEN
  old_key := '=longer than 4000 bytes: ' || SUBSTRB(old_key, 1, 900);
END IF;
IF new_key IS NULL OR LENGTHB(new_key) > 4000 THEN
  new_key := '=longer than 4000 bytes: ' || SUBSTRB(new_key, 1, 900);
END IF;
IF ((CASE WHEN UTL_RAW.CAST_TO_RAW(TO_CHAR(old_1, 'TM9')) = UTL_RAW.CAST_TO_RAW(TO_CHAR(new_1, 'TM9'))
   OR (TO_CHAR(old_1, 'TM9') IS NULL AND TO_CHAR(new_1, 'TM9') IS NULL) THEN 0 ELSE 1 END = 1)) THEN
  moved := 1;
END IF;
IF inserts THEN
IF (1 = 1) THEN
  note(noted, new_key, 5, NULL, NULL, TO_CLOB('["1"') || (CASE WHEN new_2 IS NULL THEN ',null'
 ELSE ',"' || REPLACE(REPLACE(new_2, '\', '\\'), '"', '\"') || '"' END) || (CASE WHEN TO_CHAR(new_4, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN') IS NULL THEN ',null'
 ELSE ',"' || REPLACE(REPLACE(TO_CHAR(new_4, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN'), '\', '\\'), '"', '\"') || '"' END) || ']');
END IF;
ELSIF updates THEN
IF ((moved > 0)) THEN
  note(noted, old_key, 4, NULL, TO_CLOB('["1"') || (CASE WHEN old_2 IS NULL THEN ',null'
 ELSE ',"' || REPLACE(REPLACE(old_2, '\', '\\'), '"', '\"') || '"' END) || (CASE WHEN TO_CHAR(old_4, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN') IS NULL THEN ',null'
 ELSE ',"' || REPLACE(REPLACE(TO_CHAR(old_4, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN'), '\', '\\'), '"', '\"') || '"' END) || ']', NULL);
END IF;
IF ((moved > 0)) THEN
  note(noted, new_key, 5, NULL, NULL, TO_CLOB('["1"') || (CASE WHEN new_2 IS NULL THEN ',null'
 ELSE ',"' || REPLACE(REPLACE(new_2, '\', '\\'), '"', '\"') || '"' END) || (CASE WHEN TO_CHAR(new_4, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN') IS NULL THEN ',null'
 ELSE ',"' || REPLACE(REPLACE(TO_CHAR(new_4, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN'), '\', '\\'), '"', '\"') || '"' END) || ']');
END IF;
IF (NOT (moved > 0)
  AND ((CASE WHEN UTL_RAW.CAST_TO_RAW(old_2) = UTL_RAW.CAST_TO_RAW(new_2)
   OR (old_2 IS NULL AND new_2 IS NULL) THEN 0 ELSE 1 END = 1)
  OR (CASE WHEN old_4 = new_4 OR (old_4 IS NULL AND new_4 IS NULL)
 THEN 0 ELSE 1 END = 1))) THEN
  note(noted, new_key, 6, NULL, TO_CLOB('["1"') || (CASE WHEN old_2 IS NULL THEN ',null'
 ELSE ',"' || REPLACE(REPLACE(old_2, '\', '\\'), '"', '\"') || '"' END) || (CASE WHEN TO_CHAR(old_4, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN') IS NULL THEN ',null'
 ELSE ',"' || REPLACE(REPLACE(TO_CHAR(old_4, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN'), '\', '\\'), '"', '\"') || '"' END) || ']', TO_CLOB('["1"') || (CASE WHEN new_2 IS NULL THEN ',null'
 ELSE ',"' || REPLACE(REPLACE(new_2, '\', '\\'), '"', '\"') || '"' END) || (CASE WHEN TO_CHAR(new_4, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN') IS NULL THEN ',null'
 ELSE ',"' || REPLACE(REPLACE(TO_CHAR(new_4, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN'), '\', '\\'), '"', '\"') || '"' END) || ']');
END IF;
IF ((moved > 0)) THEN
  note(noted, old_key, 5, NULL, NULL, NULL);
END IF;
ELSE
IF (1 = 1) THEN
  note(noted, old_key, 4, NULL, TO_CLOB('["1"') || (CASE WHEN old_2 IS NULL THEN ',null'
 ELSE ',"' || REPLACE(REPLACE(old_2, '\', '\\'), '"', '\"') || '"' END) || (CASE WHEN TO_CHAR(old_4, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN') IS NULL THEN ',null'
 ELSE ',"' || REPLACE(REPLACE(TO_CHAR(old_4, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN'), '\', '\\'), '"', '\"') || '"' END) || ']', NULL);
END IF;
END IF;
    IF noted.COUNT >= 100 THEN
      write_rows(noted);
    END IF;
  END;

  PROCEDURE write_rows(noted IN OUT NOCOPY log_rows) IS
    parts VARCHAR2(100) := DBMS_TRANSACTION.LOCAL_TRANSACTION_ID(TRUE);
    first_point PLS_INTEGER := INSTR(parts, '.');
    last_point PLS_INTEGER := INSTR(parts, '.', -1);
    written_by NUMBER := TO_NUMBER(SUBSTR(parts, 1, first_point - 1)) * 281474976710656
      + TO_NUMBER(SUBSTR(parts, first_point + 1, last_point - first_point - 1)) * 4294967296
      + TO_NUMBER(SUBSTR(parts, last_point + 1));
  BEGIN
    FORALL place IN 1 .. noted.COUNT
      INSERT INTO own.event_log (status, event_time,
        perpetrator, table_name, eventlog_transaction,
        event_type, table_key, column_name,
        old_value, new_value)
      VALUES ('N', CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE), SYS_CONTEXT('USERENV', 'SESSION_USER'),
        'usr', written_by,
        noted(place).kind, noted(place).row_key, noted(place).column_called,
        noted(place).old_text, noted(place).new_text);
    noted.DELETE;
  END;
END;
CREATE OR REPLACE TRIGGER event_log_usr_change
FOR INSERT OR UPDATE OR DELETE ON usr
COMPOUND TRIGGER
noted event_log_usr_change_15ada078.log_rows;
BEFORE STATEMENT IS
BEGIN
noted.DELETE;
END BEFORE STATEMENT;
AFTER EACH ROW IS
BEGIN
event_log_usr_change_15ada078.row_changed(noted, INSERTING, UPDATING,
:OLD.idu,
:NEW.idu,
:OLD.fname,
:NEW.fname,
:OLD.seen,
:NEW.seen);
END AFTER EACH ROW;
AFTER STATEMENT IS
BEGIN
IF noted.COUNT > 0 THEN
event_log_usr_change_15ada078.write_rows(noted);
END IF;
END AFTER STATEMENT;
END;
DECLARE
  mistakes PLS_INTEGER;
  complaint VARCHAR2(32767);
BEGIN
  SELECT COUNT(*) INTO mistakes FROM all_objects
  WHERE status = 'INVALID' AND owner = USER
    AND ((object_type = 'TRIGGER' AND object_name = 'EVENT_LOG_USR_CHANGE')
      OR (object_type IN ('PACKAGE', 'PACKAGE BODY') AND object_name = 'EVENT_LOG_USR_CHANGE_15ADA078'));
  IF mistakes > 0 THEN
    EXECUTE IMMEDIATE 'ALTER TRIGGER event_log_usr_change DISABLE';
    FOR mistake IN (
      SELECT name, line, text FROM all_errors
      WHERE attribute = 'ERROR' AND owner = USER
        AND ((type = 'TRIGGER' AND name = 'EVENT_LOG_USR_CHANGE')
          OR (type IN ('PACKAGE', 'PACKAGE BODY') AND name = 'EVENT_LOG_USR_CHANGE_15ADA078'))
      ORDER BY type, sequence
    ) LOOP
      complaint := complaint || ' ' || mistake.name || ', line ' || mistake.line || ': ' || mistake.text || '.';
      EXIT WHEN LENGTH(complaint) > 500;
    END LOOP;
    RAISE_APPLICATION_ERROR(-20999, SUBSTRB('The trigger event_log_usr_change does not compile and is disabled' || ':'
      || NVL(complaint, ' ALL_ERRORS does not say why.') || ' ' || 'Its owner needs INSERT on own.event_log, granted directly and not by a role' || '.', 1, 2000));
  END IF;
END;

-- event_log_usr__usr_ph_fbd8f1ed on usr_phone
CREATE OR REPLACE PACKAGE event_log_usr__usr_ph_f763238e AUTHID DEFINER AS
  TYPE log_row IS RECORD (row_key VARCHAR2(4000 BYTE), kind PLS_INTEGER, column_called VARCHAR2(4000 BYTE),
    old_text CLOB, new_text CLOB);
  TYPE log_rows IS TABLE OF log_row INDEX BY PLS_INTEGER;
  PROCEDURE row_changed(noted IN OUT NOCOPY log_rows, inserts BOOLEAN, updates BOOLEAN,
    old_1 usr_phone.idu%TYPE,
    new_1 usr_phone.idu%TYPE,
    old_2 usr_phone.phoneno%TYPE,
    new_2 usr_phone.phoneno%TYPE,
    old_3 usr_phone.kind%TYPE,
    new_3 usr_phone.kind%TYPE);
  PROCEDURE write_rows(noted IN OUT NOCOPY log_rows);
END;
CREATE OR REPLACE PACKAGE BODY event_log_usr__usr_ph_f763238e AS
  PROCEDURE note(noted IN OUT NOCOPY log_rows, row_key VARCHAR2, kind PLS_INTEGER, column_called VARCHAR2,
    old_text CLOB, new_text CLOB) IS
    place PLS_INTEGER := noted.COUNT + 1;
  BEGIN
    noted(place).row_key := row_key;
    noted(place).kind := kind;
    noted(place).column_called := column_called;
    IF LENGTH(old_text) <= 1000000 THEN
      noted(place).old_text := old_text;
    END IF;
    IF LENGTH(new_text) <= 1000000 THEN
      noted(place).new_text := new_text;
    END IF;
  END;

  PROCEDURE row_changed(noted IN OUT NOCOPY log_rows, inserts BOOLEAN, updates BOOLEAN,
    old_1 usr_phone.idu%TYPE,
    new_1 usr_phone.idu%TYPE,
    old_2 usr_phone.phoneno%TYPE,
    new_2 usr_phone.phoneno%TYPE,
    old_3 usr_phone.kind%TYPE,
    new_3 usr_phone.kind%TYPE) IS
    old_key VARCHAR2(32767);
    new_key VARCHAR2(32767);
    moved PLS_INTEGER := 0;
    old_holds PLS_INTEGER := 1;
    new_holds PLS_INTEGER := 1;
    mutating EXCEPTION;
    PRAGMA EXCEPTION_INIT(mutating, -4091);
  BEGIN
BEGIN
  old_key := 'idu=' || TO_CHAR(old_1, 'TM9');
EXCEPTION
  WHEN VALUE_ERROR THEN old_key := NULL;
END;
BEGIN
  new_key := 'idu=' || TO_CHAR(new_1, 'TM9');
EXCEPTION
  WHEN VALUE_ERROR THEN new_key := NULL;
END;
IF old_key IS NULL OR LENGTHB(old_key) > 4000 THEN
  old_key := '=longer than 4000 bytes: ' || SUBSTRB(old_key, 1, 900);
END IF;
IF new_key IS NULL OR LENGTHB(new_key) > 4000 THEN
  new_key := '=longer than 4000 bytes: ' || SUBSTRB(new_key, 1, 900);
END IF;
IF ((CASE WHEN UTL_RAW.CAST_TO_RAW(TO_CHAR(old_1, 'TM9')) = UTL_RAW.CAST_TO_RAW(TO_CHAR(new_1, 'TM9'))
   OR (TO_CHAR(old_1, 'TM9') IS NULL AND TO_CHAR(new_1, 'TM9') IS NULL) THEN 0 ELSE 1 END = 1)) THEN
  moved := 1;
END IF;
IF inserts THEN
IF (new_1 IS NOT NULL AND new_2 IS NOT NULL) THEN
  note(noted, new_key, 1, 'usr_phone.phoneno', NULL, new_2);
END IF;
IF (new_1 IS NOT NULL AND new_3 IS NOT NULL) THEN
  note(noted, new_key, 1, 'usr_phone.kind', NULL, TO_CHAR(new_3, 'TM9'));
END IF;
ELSIF updates THEN
IF ((((CASE WHEN UTL_RAW.CAST_TO_RAW(old_2) = UTL_RAW.CAST_TO_RAW(new_2)
   OR (old_2 IS NULL AND new_2 IS NULL) THEN 0 ELSE 1 END = 1))
  OR (moved > 0))
  AND old_1 IS NOT NULL
  AND old_2 IS NOT NULL) THEN
  note(noted, old_key, 8, 'usr_phone.phoneno', NULL, NULL);
END IF;
IF ((((CASE WHEN UTL_RAW.CAST_TO_RAW(old_2) = UTL_RAW.CAST_TO_RAW(new_2)
   OR (old_2 IS NULL AND new_2 IS NULL) THEN 0 ELSE 1 END = 1))
  OR (moved > 0))
  AND new_1 IS NOT NULL
  AND new_2 IS NOT NULL) THEN
  note(noted, new_key, 1, 'usr_phone.phoneno', NULL, new_2);
END IF;
IF ((((CASE WHEN UTL_RAW.CAST_TO_RAW(TO_CHAR(old_3, 'TM9')) = UTL_RAW.CAST_TO_RAW(TO_CHAR(new_3, 'TM9'))
   OR (TO_CHAR(old_3, 'TM9') IS NULL AND TO_CHAR(new_3, 'TM9') IS NULL) THEN 0 ELSE 1 END = 1))
  OR (moved > 0))
  AND old_1 IS NOT NULL
  AND old_3 IS NOT NULL) THEN
  note(noted, old_key, 2, 'usr_phone.kind', TO_CHAR(old_3, 'TM9'), NULL);
END IF;
IF ((((CASE WHEN UTL_RAW.CAST_TO_RAW(TO_CHAR(old_3, 'TM9')) = UTL_RAW.CAST_TO_RAW(TO_CHAR(new_3, 'TM9'))
   OR (TO_CHAR(old_3, 'TM9') IS NULL AND TO_CHAR(new_3, 'TM9') IS NULL) THEN 0 ELSE 1 END = 1))
  OR (moved > 0))
  AND new_1 IS NOT NULL
  AND new_3 IS NOT NULL) THEN
  note(noted, new_key, 1, 'usr_phone.kind', NULL, TO_CHAR(new_3, 'TM9'));
END IF;
ELSE
IF (old_1 IS NOT NULL AND old_2 IS NOT NULL) THEN
  note(noted, old_key, 8, 'usr_phone.phoneno', NULL, NULL);
END IF;
IF (old_1 IS NOT NULL AND old_3 IS NOT NULL) THEN
  note(noted, old_key, 2, 'usr_phone.kind', TO_CHAR(old_3, 'TM9'), NULL);
END IF;
END IF;
    IF noted.COUNT >= 100 THEN
      write_rows(noted);
    END IF;
  END;

  PROCEDURE write_rows(noted IN OUT NOCOPY log_rows) IS
    parts VARCHAR2(100) := DBMS_TRANSACTION.LOCAL_TRANSACTION_ID(TRUE);
    first_point PLS_INTEGER := INSTR(parts, '.');
    last_point PLS_INTEGER := INSTR(parts, '.', -1);
    written_by NUMBER := TO_NUMBER(SUBSTR(parts, 1, first_point - 1)) * 281474976710656
      + TO_NUMBER(SUBSTR(parts, first_point + 1, last_point - first_point - 1)) * 4294967296
      + TO_NUMBER(SUBSTR(parts, last_point + 1));
  BEGIN
    FORALL place IN 1 .. noted.COUNT
      INSERT INTO own.event_log (status, event_time,
        perpetrator, table_name, eventlog_transaction,
        event_type, table_key, column_name,
        old_value, new_value)
      VALUES ('N', CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE), SYS_CONTEXT('USERENV', 'SESSION_USER'),
        'usr', written_by,
        noted(place).kind, noted(place).row_key, noted(place).column_called,
        noted(place).old_text, noted(place).new_text);
    noted.DELETE;
  END;
END;
CREATE OR REPLACE TRIGGER event_log_usr__usr_ph_fbd8f1ed
FOR INSERT OR UPDATE OR DELETE ON usr_phone
COMPOUND TRIGGER
noted event_log_usr__usr_ph_f763238e.log_rows;
BEFORE STATEMENT IS
BEGIN
noted.DELETE;
END BEFORE STATEMENT;
AFTER EACH ROW IS
BEGIN
event_log_usr__usr_ph_f763238e.row_changed(noted, INSERTING, UPDATING,
:OLD.idu,
:NEW.idu,
:OLD.phoneno,
:NEW.phoneno,
:OLD.kind,
:NEW.kind);
END AFTER EACH ROW;
AFTER STATEMENT IS
BEGIN
IF noted.COUNT > 0 THEN
event_log_usr__usr_ph_f763238e.write_rows(noted);
END IF;
END AFTER STATEMENT;
END;
DECLARE
  mistakes PLS_INTEGER;
  complaint VARCHAR2(32767);
BEGIN
  SELECT COUNT(*) INTO mistakes FROM all_objects
  WHERE status = 'INVALID' AND owner = USER
    AND ((object_type = 'TRIGGER' AND object_name = 'EVENT_LOG_USR__USR_PH_FBD8F1ED')
      OR (object_type IN ('PACKAGE', 'PACKAGE BODY') AND object_name = 'EVENT_LOG_USR__USR_PH_F763238E'));
  IF mistakes > 0 THEN
    EXECUTE IMMEDIATE 'ALTER TRIGGER event_log_usr__usr_ph_fbd8f1ed DISABLE';
    FOR mistake IN (
      SELECT name, line, text FROM all_errors
      WHERE attribute = 'ERROR' AND owner = USER
        AND ((type = 'TRIGGER' AND name = 'EVENT_LOG_USR__USR_PH_FBD8F1ED')
          OR (type IN ('PACKAGE', 'PACKAGE BODY') AND name = 'EVENT_LOG_USR__USR_PH_F763238E'))
      ORDER BY type, sequence
    ) LOOP
      complaint := complaint || ' ' || mistake.name || ', line ' || mistake.line || ': ' || mistake.text || '.';
      EXIT WHEN LENGTH(complaint) > 500;
    END LOOP;
    RAISE_APPLICATION_ERROR(-20999, SUBSTRB('The trigger event_log_usr__usr_ph_fbd8f1ed does not compile and is disabled' || ':'
      || NVL(complaint, ' ALL_ERRORS does not say why.') || ' ' || 'Its owner needs INSERT on own.event_log, granted directly and not by a role' || '.', 1, 2000));
  END IF;
END;
