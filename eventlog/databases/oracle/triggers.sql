-- One trigger fires for every event. It hands a row's values to a package in the schema of its table, because a trigger may
-- have no more than 32 K, and a table 1,000 columns. The package has the rights of that schema's owner, so writers need none.
-- It has no state: a session goes on when it is made anew. The rows of the log are gathered in the trigger, which Oracle
-- empties with every statement, and written a hundred at a time.
-- Texts are made in PL/SQL, which knows longer ones than SQL does. Blocks of PL/SQL end with a slash on a line of its own, as
-- SQL*Plus has it.
-- '' is NULL in Oracle: an empty text is logged as NULL, and no text tells the two apart.

-- text_of_string: a text as it is
/* value */:NEW.fname;

-- text_of_char: a text in a key, without the blanks that fill its column
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

-- sets: whether the statement sets a column that cannot be compared; only the trigger itself can tell
UPDATING(/* column */'PHOTO');

-- holds: asks whether the row is one that the condition is about
SELECT COUNT(*) INTO /* answer */new_holds FROM (SELECT /* columns */:NEW.idu FROM dual) /* row */usr
WHERE /* condition */(1 = 1);

-- parent_is_there: asks whether the condition is about the parent of a child's row; a parent that this very statement
-- changes cannot be asked, and then the row is logged
BEGIN
  SELECT COUNT(*) INTO /* answer */new_holds FROM /* parent */usr /* row */usr
  WHERE /* match */(usr.idu = :NEW.idu) AND /* condition */(1 = 1);
EXCEPTION
  WHEN mutating THEN /* answer */new_holds := 1;
END;

-- log_row: one row of the log, if its condition holds
IF /* condition */(1 = 1) THEN
  note(noted, /* key */'idu=1', /* kind */6, /* column */NULL, /* old */NULL, /* new */NULL);
END IF;

-- image_begins: the beginning of an image, an array of texts, the number of its definition first; it may be longer than a VARCHAR2
TO_CLOB(/* text */'["7"');

-- image_value: a value in the image of a row
(CASE WHEN /* text */:OLD.fname IS NULL THEN ',null'
 ELSE ',"' || REPLACE(REPLACE(/* text */:OLD.fname, '\', '\\'), '"', '\"') || '"' END);

-- by_event: what each event writes; keys and whether they differ are worked out once. No writer fails for a key that the log
-- cannot hold. What is written instead is no key, so its row ends as an error that says why.
BEGIN
  old_key := /* old_key */'idu=1';
EXCEPTION
  WHEN VALUE_ERROR THEN old_key := NULL;
END;
BEGIN
  new_key := /* new_key */'idu=1';
EXCEPTION
  WHEN VALUE_ERROR THEN new_key := NULL;
END;
IF old_key IS NULL OR LENGTHB(old_key) > 4000 THEN
  old_key := '=longer than 4000 bytes: ' || SUBSTRB(old_key, 1, 900);
END IF;
IF new_key IS NULL OR LENGTHB(new_key) > 4000 THEN
  new_key := '=longer than 4000 bytes: ' || SUBSTRB(new_key, 1, 900);
END IF;
IF /* moved */(1 = 0) THEN
  moved := 1;
END IF;
IF inserts THEN
/* insert */NULL;
ELSIF updates THEN
/* update */NULL;
ELSE
/* delete */NULL;
END IF;

-- function: the head of the package: what a trigger gathers, and the two things that it does
CREATE OR REPLACE PACKAGE /* function */event_log_usr_change_12345678 AUTHID DEFINER AS
  TYPE log_row IS RECORD (row_key VARCHAR2(4000 BYTE), kind PLS_INTEGER, column_called VARCHAR2(4000 BYTE),
    old_text /* text_kept */CLOB, new_text /* text_kept */CLOB);
  TYPE log_rows IS TABLE OF log_row INDEX BY PLS_INTEGER;
  PROCEDURE row_changed(noted IN OUT NOCOPY log_rows, inserts BOOLEAN, updates BOOLEAN/* parameters */);
  PROCEDURE write_rows(noted IN OUT NOCOPY log_rows);
END;
/

-- keep_texts: keeps the values of a row of the log
    noted(place).old_text := old_text;
    noted(place).new_text := new_text;

-- keep_images: no image of a row that is too long for one: it is read back
    IF LENGTH(old_text) <= 1000000 THEN
      noted(place).old_text := old_text;
    END IF;
    IF LENGTH(new_text) <= 1000000 THEN
      noted(place).new_text := new_text;
    END IF;

-- function_body: what a row's change means, and one INSERT for the rows of the log that were gathered.
-- Texts that may be long are bound last, as Oracle wants them (ORA-24816). Without rows it is not called: it would begin a
-- transaction for a statement that changed nothing.
CREATE OR REPLACE PACKAGE BODY /* function */event_log_usr_change_12345678 AS
  PROCEDURE note(noted IN OUT NOCOPY log_rows, row_key VARCHAR2, kind PLS_INTEGER, column_called VARCHAR2,
    old_text /* text_type */VARCHAR2, new_text /* text_type */VARCHAR2) IS
    place PLS_INTEGER := noted.COUNT + 1;
  BEGIN
    noted(place).row_key := row_key;
    noted(place).kind := kind;
    noted(place).column_called := column_called;
    /* keeps */NULL;
  END;

  PROCEDURE row_changed(noted IN OUT NOCOPY log_rows, inserts BOOLEAN, updates BOOLEAN/* parameters */) IS
    old_key VARCHAR2(32767);
    new_key VARCHAR2(32767);
    moved PLS_INTEGER := 0;
    old_holds PLS_INTEGER := 1;
    new_holds PLS_INTEGER := 1;
    mutating EXCEPTION;
    PRAGMA EXCEPTION_INIT(mutating, -4091);
  BEGIN
/* body */NULL;
    IF noted.COUNT >= 100 THEN
      write_rows(noted);
    END IF;
  END;

  PROCEDURE write_rows(noted IN OUT NOCOPY log_rows) IS
/* transaction_declared */
  BEGIN
    FORALL place IN 1 .. noted.COUNT
      INSERT INTO /* log */event_log (/* status */status, /* event_time */event_time,
        /* perpetrator */perpetrator, /* table_name */table_name/* number_name *//* transaction_name *//* context_name */,
        /* event_type */event_type, /* table_key */table_key, /* column_name */column_name,
        /* old_value */old_value, /* new_value */new_value)
      VALUES ('N', /* now */SYSDATE, /* user */USER,
        /* table */'USR'/* number *//* transaction_value *//* context_value */,
        noted(place).kind, noted(place).row_key, noted(place).column_called,
        noted(place).old_text, noted(place).new_text);
    noted.DELETE;
  END;
END;
/

-- transaction_declared: the number of the transaction, worked out once for all rows of a statement. Its three parts, of 15, 16
-- and 32 bits, make one.
    parts VARCHAR2(100) := DBMS_TRANSACTION.LOCAL_TRANSACTION_ID(TRUE);
    first_point PLS_INTEGER := INSTR(parts, '.');
    last_point PLS_INTEGER := INSTR(parts, '.', -1);
    written_by NUMBER := TO_NUMBER(SUBSTR(parts, 1, first_point - 1)) * 281474976710656
      + TO_NUMBER(SUBSTR(parts, first_point + 1, last_point - first_point - 1)) * 4294967296
      + TO_NUMBER(SUBSTR(parts, last_point + 1));

-- compound_trigger: fires for each row, and writes when the statement ends. Oracle may begin a statement anew when somebody else
-- has changed its rows meanwhile; then it says so by another BEFORE STATEMENT.
CREATE OR REPLACE TRIGGER /* trigger */event_log_usr_change
FOR /* event */INSERT ON /* target */usr
COMPOUND TRIGGER
noted /* function */"EVENT_LOG_USR_CHANGE_12345678".log_rows;
BEFORE STATEMENT IS
BEGIN
noted.DELETE;
END BEFORE STATEMENT;
AFTER EACH ROW IS
BEGIN
/* function */"EVENT_LOG_USR_CHANGE_12345678".row_changed(noted, INSERTING, UPDATING/* values */);
END AFTER EACH ROW;
AFTER STATEMENT IS
BEGIN
IF noted.COUNT > 0 THEN
/* function */"EVENT_LOG_USR_CHANGE_12345678".write_rows(noted);
END IF;
END AFTER STATEMENT;
END;
/

-- row_trigger: fires for each row and writes at once: for a view, and where triggers of others may write in between
CREATE OR REPLACE TRIGGER /* trigger */event_log_usr_change
/* time */AFTER /* event */INSERT ON /* target */usr
FOR EACH ROW
DECLARE
noted /* function */"EVENT_LOG_USR_CHANGE_12345678".log_rows;
BEGIN
/* function */"EVENT_LOG_USR_CHANGE_12345678".row_changed(noted, INSERTING, UPDATING/* values */);
IF noted.COUNT > 0 THEN
/* function */"EVENT_LOG_USR_CHANGE_12345678".write_rows(noted);
END IF;
END;
/

-- after_trigger: disables a trigger that does not compile, or whose package does not, which would refuse every writer, and
-- says why
DECLARE
  mistakes PLS_INTEGER;
  complaint VARCHAR2(32767);
BEGIN
  SELECT COUNT(*) INTO mistakes FROM all_objects
  WHERE status = 'INVALID' AND owner = /* owner */USER
    AND ((object_type = 'TRIGGER' AND object_name = /* name */'EVENT_LOG_USR_CHANGE')
      OR (object_type IN ('PACKAGE', 'PACKAGE BODY') AND object_name = /* package */'EVENT_LOG_USR_CHANGE_12345678'));
  IF mistakes > 0 THEN
    EXECUTE IMMEDIATE /* disable */'ALTER TRIGGER event_log_usr_change DISABLE';
    FOR mistake IN (
      SELECT name, line, text FROM all_errors
      WHERE attribute = 'ERROR' AND owner = /* owner */USER
        AND ((type = 'TRIGGER' AND name = /* name */'EVENT_LOG_USR_CHANGE')
          OR (type IN ('PACKAGE', 'PACKAGE BODY') AND name = /* package */'EVENT_LOG_USR_CHANGE_12345678'))
      ORDER BY type, sequence
    ) LOOP
      complaint := complaint || ' ' || mistake.name || ', line ' || mistake.line || ': ' || mistake.text || '.';
      EXIT WHEN LENGTH(complaint) > 500;
    END LOOP;
    RAISE_APPLICATION_ERROR(-20999, SUBSTRB(/* complaint */'The trigger does not compile' || ':'
      || NVL(complaint, ' ALL_ERRORS does not say why.') || ' ' || /* rights */'Its owner needs INSERT on the log' || '.', 1, 2000));
  END IF;
END;
/

-- drop_trigger: takes a trigger off
DROP TRIGGER /* trigger */event_log_usr_change;

-- drop_function: takes off what a trigger ran, if it is there
BEGIN
  EXECUTE IMMEDIATE /* dropped */'DROP PACKAGE event_log_usr_change_12345678';
EXCEPTION
  WHEN OTHERS THEN
    IF SQLCODE <> -4043 THEN
      RAISE;
    END IF;
END;
/
