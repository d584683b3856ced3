-- One trigger fires for each row of every event and runs a procedure beside it, because a trigger may have no more than
-- 32 K. Texts are made in PL/SQL, which knows longer ones than SQL does. Blocks of PL/SQL end with a slash on a line of
-- its own, as SQL*Plus has it.
-- '' is NULL in Oracle: an empty text is logged as NULL, and no text tells the two apart.

-- text_of_string: a text as it is
/* value */:NEW.fname;

-- text_of_char: a text without the blanks that fill its column
RTRIM(/* value */:NEW.code);

-- text_of_other: an interval or a row's address in Oracle's words
TO_CHAR(/* value */:NEW.lasts);

-- text_of_octet: binary as Base64; the encoder breaks its lines
REPLACE(REPLACE(UTL_RAW.CAST_TO_VARCHAR2(UTL_ENCODE.BASE64_ENCODE(/* value */:NEW.photo)), CHR(13)), CHR(10));

-- text_of_int: a whole number, without the blank that other formats leave for its sign
TO_CHAR(/* value */:NEW.idu, 'TM9');

-- text_of_state: true and false as 1 and 0
(CASE WHEN /* value */:NEW.active THEN '1' WHEN NOT /* value */:NEW.active THEN '0' END);

-- text_of_number: a number with a point whatever the session has, and a digit before it
REGEXP_REPLACE(TO_CHAR(/* value */:NEW.ratio, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.');

-- text_of_date: a DATE has a time of day
TO_CHAR(/* value */:NEW.born, 'YYYY-MM-DD HH24:MI:SS".000000000"', 'NLS_CALENDAR=GREGORIAN');

-- text_of_time: there is no such type
/* value */:NEW.starts;

-- text_of_timestamp: date and time with nine digits of a second
TO_CHAR(/* value */:NEW.seen, 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN');

-- text_of_zoned: the same in UTC
TO_CHAR(SYS_EXTRACT_UTC(/* value */:NEW.seen), 'YYYY-MM-DD HH24:MI:SS.FF9', 'NLS_CALENDAR=GREGORIAN');

-- quoted: a key's value, in quotes where the grammar of table_key asks for them; two backslashes in brackets are one
(CASE WHEN REGEXP_LIKE(/* text */:NEW.idu, '[,;''+"=\\<>]|^ | $')
 THEN '"' || REPLACE(REPLACE(/* text */:NEW.idu, '\', '\\'), '"', '\"') || '"' ELSE /* text */:NEW.idu END);

-- differs: whether a value changed
(CASE WHEN /* before */:OLD.idu = /* after */:NEW.idu OR (/* before */:OLD.idu IS NULL AND /* after */:NEW.idu IS NULL)
 THEN 0 ELSE 1 END = 1);

-- differs_as_text: the same byte by byte, for a session may compare texts without regard to case
(CASE WHEN UTL_RAW.CAST_TO_RAW(/* before */:OLD.fname) = UTL_RAW.CAST_TO_RAW(/* after */:NEW.fname)
   OR (/* before */:OLD.fname IS NULL AND /* after */:NEW.fname IS NULL) THEN 0 ELSE 1 END = 1);

-- sets: whether the statement sets a column that cannot be compared
UPDATING(/* column */'PHOTO');

-- holds: asks whether the row is one that the condition is about
SELECT COUNT(*) INTO /* answer */new_holds FROM (SELECT /* columns */:NEW.idu FROM dual) /* row */usr
WHERE /* condition */(1 = 1);

-- parent_stands: asks whether the condition is about the parent of a child's row; a parent that this very statement
-- changes cannot be asked, and then the row is logged
BEGIN
  SELECT COUNT(*) INTO /* answer */new_holds FROM /* parent */usr /* row */usr
  WHERE /* match */(usr.idu = :NEW.idu) AND /* condition */(1 = 1);
EXCEPTION
  WHEN mutating THEN /* answer */new_holds := 1;
END;

-- log_row: one row of the log, if its condition holds
IF /* condition */(1 = 1) THEN
  /* function */event_log_usr_change_log(/* key */'idu=1', /* kind */6, /* column */NULL, /* old */NULL, /* new */NULL);
END IF;

-- log_together: a row of the log for each column, if the condition holds, which is asked once for all of them
IF /* condition */(1 = 1) THEN
/* rows */NULL;
END IF;

-- image_begins: the beginning of the text that holds the image of a row, which may be longer than a VARCHAR2
TO_CLOB(/* text */'{"fname":');

-- image_value: a value in the image of a row
(CASE WHEN /* text */:OLD.fname IS NULL THEN 'null'
 ELSE '"' || REPLACE(REPLACE(/* text */:OLD.fname, '\', '\\'), '"', '\"') || '"' END);

-- by_event: what each event writes; keys and whether they differ are worked out once
old_key := /* old_key */'idu=1';
new_key := /* new_key */'idu=1';
IF /* moved */(1 = 0) THEN
  moved := 1;
END IF;
IF INSERTING THEN
/* insert */NULL;
ELSIF UPDATING THEN
/* update */NULL;
ELSE
/* delete */NULL;
END IF;

-- function: writes into the log with its owner's rights, so that writers need none
CREATE OR REPLACE PROCEDURE /* function */event_log_usr_change_log
(row_key VARCHAR2, kind NUMBER, column_called VARCHAR2, old_text /* old_type */VARCHAR2, new_text VARCHAR2) IS
BEGIN
  INSERT INTO /* log */event_log (/* table_key */table_key, /* status */status,
    /* event_type */event_type, /* event_time */event_time, /* perpetrator */perpetrator, /* table_name */table_name,
    /* column_name */column_name, /* old_value */old_value, /* new_value */new_value/* number_name */)
  VALUES (row_key, 'N', kind, /* now */SYSDATE, /* user */USER, /* table */'USR', column_called, old_text,
    new_text/* number */);
END;
/

-- row_trigger: fires for each row
CREATE OR REPLACE TRIGGER /* trigger */event_log_usr_change
/* time */AFTER /* event */INSERT ON /* target */usr
FOR EACH ROW
DECLARE
/* marker */
  old_key VARCHAR2(32767);
  new_key VARCHAR2(32767);
  moved PLS_INTEGER := 0;
  old_holds PLS_INTEGER := 1;
  new_holds PLS_INTEGER := 1;
  mutating EXCEPTION;
  PRAGMA EXCEPTION_INIT(mutating, -4091);
BEGIN
/* body */NULL;
END;
/

-- after_trigger: disables a trigger that does not compile, which would refuse every writer, and says so
DECLARE
  mistakes PLS_INTEGER;
BEGIN
  SELECT COUNT(*) INTO mistakes FROM all_triggers
  JOIN all_objects ON all_objects.owner = all_triggers.owner AND object_name = trigger_name
  WHERE object_type = 'TRIGGER' AND all_objects.status = 'INVALID'
    AND trigger_name = /* name */'EVENT_LOG_USR_CHANGE' AND all_triggers.owner = /* owner */USER;
  IF mistakes > 0 THEN
    EXECUTE IMMEDIATE /* disable */'ALTER TRIGGER event_log_usr_change DISABLE';
    RAISE_APPLICATION_ERROR(-20999, /* complaint */'The trigger does not compile.');
  END IF;
END;
/

-- drop_trigger: takes a trigger off
DROP TRIGGER /* trigger */event_log_usr_change;

-- drop_function: takes off what the trigger ran
DROP PROCEDURE /* function */event_log_usr_change_log;
