-- MariaDB and MySQL have row triggers only. Texts become utf8mb4 first, because columns of two character
-- sets cannot be joined. `before_trigger` settles the sql_mode that a trigger keeps: a backslash is one, as in the other
-- databases, and the text that information_schema tells is the one that was sent, which it is not with escapes in it.

-- text_of_string: a text as it is
CONVERT(/* value */NEW.fname USING utf8mb4);

-- text_of_long: the same of a type that JSON has on MariaDB, which JSON_ARRAY would take for an object and not for a text
COALESCE(CONVERT(/* value */NEW.fname USING utf8mb4));

-- text_of_shape: a geometry in words, after the number of its reference system where that is not 0
CONCAT(IF(ST_SRID(/* value */NEW.place) = 0, '', CONCAT('SRID=', ST_SRID(/* value */NEW.place), ';')),
  ST_AsText(/* value */NEW.place));

-- text_of_octet: binary as Base64 without line breaks
REPLACE(TO_BASE64(/* value */NEW.photo), CHAR(10 USING utf8mb4), '');

-- text_of_int: a whole number, also a ZEROFILL one without its zeros
CAST(/* value */NEW.idu + 0 AS CHAR);

-- text_of_state: true and false are 1 and 0 already, as a number or as a bit
CAST(/* value */NEW.active + 0 AS CHAR);

-- text_of_number: a number as the server writes it
CAST(/* value */NEW.share AS CHAR);

-- text_of_double: a number of double precision as the server writes it. Where it sorts rows it cuts texts behind 22
-- characters unless a length is named: 1.2345678901234567e-7 loses three digits, and 1e-308 may become 1e-3.
CAST(/* value */NEW.ratio AS CHAR(260));

-- text_of_single: a number of single precision: six digits, as the server writes it, where they say which one it is
CASE WHEN ABS(CAST(/* value */NEW.ratio AS CHAR) - /* value */NEW.ratio) <= ABS(/* value */NEW.ratio) * 2.98e-8
THEN CAST(/* value */NEW.ratio AS CHAR(260)) ELSE CAST(/* value */NEW.ratio + 0e0 AS CHAR(260)) END;

-- text_of_padded: a number of a type with ZEROFILL that is no whole one, without the zeros before it
REGEXP_REPLACE(CAST(/* value */NEW.share AS CHAR(260)), '^0+(?=[0-9])', '');

-- text_of_date: a date
CAST(/* value */NEW.born AS CHAR);

-- text_of_time: a time of day, or a span
CAST(/* value */NEW.starts AS CHAR);

-- text_of_timestamp: date and time with nine digits of a second
DATE_FORMAT(/* value */NEW.seen, '%Y-%m-%d %H:%i:%s.%f000');

-- text_of_zoned: a TIMESTAMP in UTC, whatever the session's time zone; the zero date is no moment and stays as it is
COALESCE(DATE_FORMAT(TIMESTAMP('1970-01-01 00:00:00') + INTERVAL NULLIF(UNIX_TIMESTAMP(/* value */NEW.seen), 0) SECOND,
  '%Y-%m-%d %H:%i:%s.%f000'), DATE_FORMAT(/* value */NEW.seen, '%Y-%m-%d %H:%i:%s.%f000'));

-- quoted: a key's value, in quotes where the grammar of table_key asks for them
CASE WHEN /* text */NEW.idu REGEXP '[,;''+"=<>\\]' OR CAST(LEFT(/* text */NEW.idu, 1) AS BINARY) = ' '
  OR CAST(RIGHT(/* text */NEW.idu, 1) AS BINARY) = ' '
THEN CONCAT('"', REPLACE(REPLACE(/* text */NEW.idu, '\', '\\'), '"', '\"'), '"') ELSE COALESCE(/* text */NEW.idu, '') END;

-- differs: whether a value changed
NOT (/* before */OLD.fname <=> /* after */NEW.fname);

-- alike: whether two values are one; a NULL is like another
/* before */OLD.fname <=> /* after */NEW.fname;

-- differs_as_text: the same byte by byte, because most collations take 'a' for 'A'
NOT (CAST(/* before */OLD.fname AS BINARY) <=> CAST(/* after */NEW.fname AS BINARY));

-- log_row: one row of the log, if its condition holds
-- Not INSERT … SELECT … WHERE: that holds the table's AUTO-INC lock until the writer's whole statement has ended.
IF /* condition */(1 = 1) THEN
INSERT INTO /* log */event_log (/* table_key */table_key, /* status */status, /* event_type */event_type,
  /* event_time */event_time, /* perpetrator */perpetrator, /* table_name */table_name/* context_name */, /* column_name */column_name,
  /* old_value */old_value, /* new_value */new_value)
VALUES (/* key */'idu=1', 'N', /* kind */6, /* now */CURRENT_TIMESTAMP, /* user */NULL, /* table */'usr'/* context_value */, /* column */NULL,
  /* old */NULL, /* new */NULL);
END IF;

-- if_written: what an update logs that the server carries out: another column changed, or the row is there as it is now
IF /* changed */(1 = 1) OR EXISTS (SELECT 1 FROM /* target */usr AS written WHERE /* match */(1 = 1)) THEN
/* body */;
END IF;

-- image: a row as an array of texts, the number of its definition first
JSON_ARRAY(/* items */'7');

-- image_length: how many bytes a value has
COALESCE(LENGTH(/* value */NEW.fname), 0);

-- image_within: no image of a row that is too long for one: it is read back; nor of one that no packet would take
CASE WHEN /* length */7 <= LEAST(1000000, @@SESSION.max_allowed_packet DIV 4)
THEN /* image */NULL END;

-- whole_row_part: a column in the text of a row without a key; nothing where it is NULL
COALESCE(CONCAT(/* name */',"fname":', '"', REPLACE(REPLACE(/* text */NEW.fname, '\', '\\'), '"', '\"'), '"'), '');

-- whole_row: the text of a row without a key
CONCAT('{', SUBSTR(/* parts */',"fname":"x"', 2), '}');

-- whole_row_key: the key of a row without one: the hash of its text
CONCAT(/* name */'eventlog_whole_row=', SHA2(CONVERT(/* text */'{}' USING utf8mb4), 256));

-- before_trigger: the sql_mode that the trigger keeps, whatever its writers have
SET @eventlog_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES';

-- row_trigger: fires for each row, with the rights of whoever made it, so that writers need none on the log
CREATE TRIGGER /* trigger */event_log_usr_insert /* time */AFTER /* event */INSERT ON /* target */usr FOR EACH ROW BEGIN
/* body */;
END;

-- restore_session: the session has its own sql_mode again, whatever came of it
SET SESSION sql_mode = COALESCE(@eventlog_sql_mode, @@SESSION.sql_mode);

-- hold_table: keeps writers waiting while a trigger is replaced, which takes two statements that commit by themselves
LOCK TABLES /* target */usr WRITE;

-- release_table: lets writers go on
UNLOCK TABLES;
