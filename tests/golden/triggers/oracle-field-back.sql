-- event_log_room_change on room
CREATE OR REPLACE PACKAGE event_log_room_change_76967989 AUTHID DEFINER AS
  TYPE log_row IS RECORD (row_key VARCHAR2(4000 BYTE), kind PLS_INTEGER, column_called VARCHAR2(4000 BYTE),
    old_text VARCHAR2(32767), new_text VARCHAR2(32767));
  TYPE log_rows IS TABLE OF log_row INDEX BY PLS_INTEGER;
  PROCEDURE row_changed(noted IN OUT NOCOPY log_rows, inserts BOOLEAN, updates BOOLEAN,
    old_1 room.house%TYPE,
    new_1 room.house%TYPE,
    old_3 room.open%TYPE,
    new_3 room.open%TYPE);
  PROCEDURE write_rows(noted IN OUT NOCOPY log_rows);
END;
CREATE OR REPLACE PACKAGE BODY event_log_room_change_76967989 AS
  PROCEDURE note(noted IN OUT NOCOPY log_rows, row_key VARCHAR2, kind PLS_INTEGER, column_called VARCHAR2,
    old_text VARCHAR2, new_text VARCHAR2) IS
    place PLS_INTEGER := noted.COUNT + 1;
  BEGIN
    noted(place).row_key := row_key;
    noted(place).kind := kind;
    noted(place).column_called := column_called;
    noted(place).old_text := old_text;
    noted(place).new_text := new_text;
  END;

  PROCEDURE row_changed(noted IN OUT NOCOPY log_rows, inserts BOOLEAN, updates BOOLEAN,
    old_1 room.house%TYPE,
    new_1 room.house%TYPE,
    old_3 room.open%TYPE,
    new_3 room.open%TYPE) IS
    old_key VARCHAR2(32767);
    new_key VARCHAR2(32767);
    moved PLS_INTEGER := 0;
    old_holds PLS_INTEGER := 1;
    new_holds PLS_INTEGER := 1;
    mutating EXCEPTION;
    PRAGMA EXCEPTION_INIT(mutating, -4091);
  BEGIN
BEGIN
  old_key := 'house=' || (CASE WHEN REGEXP_LIKE(old_1, '[,;''+"=\\<>]|^ | $')
 THEN '"' || REPLACE(REPLACE(old_1, '\', '\\'), '"', '\"') || '"' ELSE old_1 END) || '+nr=' || (CASE WHEN REGEXP_LIKE(REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.'), '[,;''+"=\\<>]|^ | $')
 THEN '"' || REPLACE(REPLACE(REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.'), '\', '\\'), '"', '\"') || '"' ELSE REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.') END);
EXCEPTION
  WHEN VALUE_ERROR THEN old_key := NULL;
END;
BEGIN
  new_key := 'house=' || (CASE WHEN REGEXP_LIKE(new_1, '[,;''+"=\\<>]|^ | $')
 THEN '"' || REPLACE(REPLACE(new_1, '\', '\\'), '"', '\"') || '"' ELSE new_1 END) || '+nr=' || (CASE WHEN REGEXP_LIKE(REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.'), '[,;''+"=\\<>]|^ | $')
 THEN '"' || REPLACE(REPLACE(REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.'), '\', '\\'), '"', '\"') || '"' ELSE REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.') END);
EXCEPTION
  WHEN VALUE_ERROR THEN new_key := NULL;
END;
IF old_key IS NULL OR LENGTHB(old_key) > 4000 THEN
  old_key := '=longer than 4000 bytes: ' || SUBSTRB(old_key, 1, 900);
END IF;
IF new_key IS NULL OR LENGTHB(new_key) > 4000 THEN
  new_key := '=longer than 4000 bytes: ' || SUBSTRB(new_key, 1, 900);
END IF;
IF ((CASE WHEN UTL_RAW.CAST_TO_RAW(old_1) = UTL_RAW.CAST_TO_RAW(new_1)
   OR (old_1 IS NULL AND new_1 IS NULL) THEN 0 ELSE 1 END = 1)
  OR (CASE WHEN UTL_RAW.CAST_TO_RAW(REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.')) = UTL_RAW.CAST_TO_RAW(REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.'))
   OR (REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.') IS NULL AND REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.') IS NULL) THEN 0 ELSE 1 END = 1)) THEN
  moved := 1;
END IF;
IF inserts THEN
IF ((new_3 IS NOT NULL OR ( IS NULL))) THEN
  note(noted, new_key, 7, 'open', NULL, NULL);
END IF;
IF ( IS NOT NULL) THEN
  note(noted, new_key, 7, 'colour', NULL, NULL);
END IF;
ELSIF updates THEN
IF ((moved > 0)) THEN
  note(noted, old_key, 4, NULL, NULL, NULL);
END IF;
IF ((moved > 0) AND (new_3 IS NOT NULL OR ( IS NULL))) THEN
  note(noted, new_key, 7, 'open', NULL, NULL);
END IF;
IF ((moved > 0) AND  IS NOT NULL) THEN
  note(noted, new_key, 7, 'colour', NULL, NULL);
END IF;
IF (NOT (moved > 0)
  AND ((CASE WHEN UTL_RAW.CAST_TO_RAW((CASE WHEN old_3 THEN '1' WHEN NOT old_3 THEN '0' END)) = UTL_RAW.CAST_TO_RAW((CASE WHEN new_3 THEN '1' WHEN NOT new_3 THEN '0' END))
   OR ((CASE WHEN old_3 THEN '1' WHEN NOT old_3 THEN '0' END) IS NULL AND (CASE WHEN new_3 THEN '1' WHEN NOT new_3 THEN '0' END) IS NULL) THEN 0 ELSE 1 END = 1))) THEN
  note(noted, new_key, 8, 'open', NULL, NULL);
END IF;
IF (NOT (moved > 0)
  AND ((CASE WHEN UTL_RAW.CAST_TO_RAW() = UTL_RAW.CAST_TO_RAW()
   OR ( IS NULL AND  IS NULL) THEN 0 ELSE 1 END = 1))) THEN
  note(noted, new_key, 8, 'colour', NULL, NULL);
END IF;
IF ((moved > 0)) THEN
  note(noted, old_key, 5, NULL, NULL, NULL);
END IF;
ELSE
IF (1 = 1) THEN
  note(noted, old_key, 4, NULL, NULL, NULL);
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
        'room', written_by,
        noted(place).kind, noted(place).row_key, noted(place).column_called,
        noted(place).old_text, noted(place).new_text);
    noted.DELETE;
  END;
END;
CREATE OR REPLACE TRIGGER event_log_room_change
FOR INSERT OR UPDATE OR DELETE ON room
COMPOUND TRIGGER
noted event_log_room_change_76967989.log_rows;
BEFORE STATEMENT IS
BEGIN
noted.DELETE;
END BEFORE STATEMENT;
AFTER EACH ROW IS
BEGIN
event_log_room_change_76967989.row_changed(noted, INSERTING, UPDATING,
:OLD.house,
:NEW.house,
:OLD.open,
:NEW.open);
END AFTER EACH ROW;
AFTER STATEMENT IS
BEGIN
IF noted.COUNT > 0 THEN
event_log_room_change_76967989.write_rows(noted);
END IF;
END AFTER STATEMENT;
END;
DECLARE
  mistakes PLS_INTEGER;
  complaint VARCHAR2(32767);
BEGIN
  SELECT COUNT(*) INTO mistakes FROM all_objects
  WHERE status = 'INVALID' AND owner = USER
    AND ((object_type = 'TRIGGER' AND object_name = 'EVENT_LOG_ROOM_CHANGE')
      OR (object_type IN ('PACKAGE', 'PACKAGE BODY') AND object_name = 'EVENT_LOG_ROOM_CHANGE_76967989'));
  IF mistakes > 0 THEN
    EXECUTE IMMEDIATE 'ALTER TRIGGER event_log_room_change DISABLE';
    FOR mistake IN (
      SELECT name, line, text FROM all_errors
      WHERE attribute = 'ERROR' AND owner = USER
        AND ((type = 'TRIGGER' AND name = 'EVENT_LOG_ROOM_CHANGE')
          OR (type IN ('PACKAGE', 'PACKAGE BODY') AND name = 'EVENT_LOG_ROOM_CHANGE_76967989'))
      ORDER BY type, sequence
    ) LOOP
      complaint := complaint || ' ' || mistake.name || ', line ' || mistake.line || ': ' || mistake.text || '.';
      EXIT WHEN LENGTH(complaint) > 500;
    END LOOP;
    RAISE_APPLICATION_ERROR(-20999, SUBSTRB('The trigger event_log_room_change does not compile and is disabled' || ':'
      || NVL(complaint, ' ALL_ERRORS does not say why.') || ' ' || 'Its owner needs INSERT on own.event_log, granted directly and not by a role' || '.', 1, 2000));
  END IF;
END;
