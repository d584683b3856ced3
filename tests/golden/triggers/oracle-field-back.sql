-- event_log_room_change on room
CREATE OR REPLACE PROCEDURE event_log_room_change_log
(row_key VARCHAR2, kind NUMBER, column_called VARCHAR2, old_text VARCHAR2, new_text VARCHAR2) IS
BEGIN
  INSERT INTO own.event_log (table_key, status,
    event_type, event_time, perpetrator, table_name,
    column_name, old_value, new_value)
  VALUES (row_key, 'N', kind, CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE), SYS_CONTEXT('USERENV', 'SESSION_USER'), 'room', column_called, old_text,
    new_text);
END;
CREATE OR REPLACE TRIGGER event_log_room_change
AFTER INSERT OR UPDATE OR DELETE ON room
FOR EACH ROW
DECLARE
/* eventlog {"log":"own.event_log","table":"room","options":{"style":"field-back"},"hash":"8f4e2f9bb2eaee87"} */
  old_key VARCHAR2(32767);
  new_key VARCHAR2(32767);
  moved PLS_INTEGER := 0;
  old_holds PLS_INTEGER := 1;
  new_holds PLS_INTEGER := 1;
  mutating EXCEPTION;
  PRAGMA EXCEPTION_INIT(mutating, -4091);
BEGIN
old_key := 'house=' || (CASE WHEN REGEXP_LIKE(:OLD.house, '[,;''+"=\\<>]|^ | $')
 THEN '"' || REPLACE(REPLACE(:OLD.house, '\', '\\'), '"', '\"') || '"' ELSE :OLD.house END) || '+nr=' || (CASE WHEN REGEXP_LIKE(REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.'), '[,;''+"=\\<>]|^ | $')
 THEN '"' || REPLACE(REPLACE(REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.'), '\', '\\'), '"', '\"') || '"' ELSE REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.') END);
new_key := 'house=' || (CASE WHEN REGEXP_LIKE(:NEW.house, '[,;''+"=\\<>]|^ | $')
 THEN '"' || REPLACE(REPLACE(:NEW.house, '\', '\\'), '"', '\"') || '"' ELSE :NEW.house END) || '+nr=' || (CASE WHEN REGEXP_LIKE(REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.'), '[,;''+"=\\<>]|^ | $')
 THEN '"' || REPLACE(REPLACE(REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.'), '\', '\\'), '"', '\"') || '"' ELSE REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.') END);
IF ((CASE WHEN UTL_RAW.CAST_TO_RAW(:OLD.house) = UTL_RAW.CAST_TO_RAW(:NEW.house)
   OR (:OLD.house IS NULL AND :NEW.house IS NULL) THEN 0 ELSE 1 END = 1)
  OR (CASE WHEN UTL_RAW.CAST_TO_RAW(REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.')) = UTL_RAW.CAST_TO_RAW(REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.'))
   OR (REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.') IS NULL AND REGEXP_REPLACE(TO_CHAR(, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.') IS NULL) THEN 0 ELSE 1 END = 1)) THEN
  moved := 1;
END IF;
IF INSERTING THEN
IF ((:NEW.open IS NOT NULL OR ( IS NULL))) THEN
  event_log_room_change_log(new_key, 7, 'open', NULL, NULL);
END IF;
IF ( IS NOT NULL) THEN
  event_log_room_change_log(new_key, 7, 'colour', NULL, NULL);
END IF;
ELSIF UPDATING THEN
IF ((moved > 0)) THEN
  event_log_room_change_log(old_key, 4, NULL, NULL, NULL);
END IF;
IF ((moved > 0) AND (:NEW.open IS NOT NULL OR ( IS NULL))) THEN
  event_log_room_change_log(new_key, 7, 'open', NULL, NULL);
END IF;
IF ((moved > 0) AND  IS NOT NULL) THEN
  event_log_room_change_log(new_key, 7, 'colour', NULL, NULL);
END IF;
IF (NOT (moved > 0)
  AND ((CASE WHEN UTL_RAW.CAST_TO_RAW((CASE WHEN :OLD.open THEN '1' WHEN NOT :OLD.open THEN '0' END)) = UTL_RAW.CAST_TO_RAW((CASE WHEN :NEW.open THEN '1' WHEN NOT :NEW.open THEN '0' END))
   OR ((CASE WHEN :OLD.open THEN '1' WHEN NOT :OLD.open THEN '0' END) IS NULL AND (CASE WHEN :NEW.open THEN '1' WHEN NOT :NEW.open THEN '0' END) IS NULL) THEN 0 ELSE 1 END = 1))) THEN
  event_log_room_change_log(new_key, 8, 'open', NULL, NULL);
END IF;
IF (NOT (moved > 0)
  AND ((CASE WHEN UTL_RAW.CAST_TO_RAW() = UTL_RAW.CAST_TO_RAW()
   OR ( IS NULL AND  IS NULL) THEN 0 ELSE 1 END = 1))) THEN
  event_log_room_change_log(new_key, 8, 'colour', NULL, NULL);
END IF;
ELSE
IF (1 = 1) THEN
  event_log_room_change_log(old_key, 4, NULL, NULL, NULL);
END IF;
END IF;
END;
DECLARE
  mistakes PLS_INTEGER;
BEGIN
  SELECT COUNT(*) INTO mistakes FROM all_triggers
  JOIN all_objects ON all_objects.owner = all_triggers.owner AND object_name = trigger_name
  WHERE object_type = 'TRIGGER' AND all_objects.status = 'INVALID'
    AND trigger_name = 'EVENT_LOG_ROOM_CHANGE' AND all_triggers.owner = USER;
  IF mistakes > 0 THEN
    EXECUTE IMMEDIATE 'ALTER TRIGGER event_log_room_change DISABLE';
    RAISE_APPLICATION_ERROR(-20999, 'The trigger event_log_room_change does not compile and is disabled. May the owner of its table insert into the log?');
  END IF;
END;
