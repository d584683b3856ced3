-- SQLite has row triggers only. Values have types of their own, whatever their column says.

-- text_of_string: a text as it is
CAST(/* value */NEW.fname AS TEXT);

-- text_of_octet: binary as Base64, three bytes at a time; json_each counts, for a trigger may not use WITH. A text or a
-- number has the bytes of its text: as it is it could be read as Base64 of others
CASE WHEN /* value */NEW.photo IS NOT NULL THEN (
  SELECT coalesce(group_concat(
    substr('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', ((triple >> 18) & 63) + 1, 1)
    || substr('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', ((triple >> 12) & 63) + 1, 1)
    || CASE WHEN missing > 1 THEN '=' ELSE
      substr('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', ((triple >> 6) & 63) + 1, 1) END
    || CASE WHEN missing > 0 THEN '=' ELSE
      substr('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', (triple & 63) + 1, 1) END, ''), '')
  FROM (
    SELECT (instr('123456789ABCDEF', substr(six, 1, 1)) << 20) + (instr('123456789ABCDEF', substr(six, 2, 1)) << 16)
      + (instr('123456789ABCDEF', substr(six, 3, 1)) << 12) + (instr('123456789ABCDEF', substr(six, 4, 1)) << 8)
      + (instr('123456789ABCDEF', substr(six, 5, 1)) << 4) + instr('123456789ABCDEF', substr(six, 6, 1)) AS triple, missing
    FROM (
      SELECT substr(hex(substr(CAST(/* value */NEW.photo AS BLOB), 3 * key + 1, 3)) || '0000', 1, 6) AS six,
        max(0, 3 * key + 3 - length(CAST(/* value */NEW.photo AS BLOB))) AS missing
      FROM json_each('[0' || replace(hex(zeroblob((length(CAST(/* value */NEW.photo AS BLOB)) - 1) / 3)), '00', ',0') || ']')
      WHERE length(CAST(/* value */NEW.photo AS BLOB)) > 0
      LIMIT -1 OFFSET 0)
    LIMIT -1 OFFSET 0)) END;

-- text_of_number: a number; a whole one without a point, as other databases write it, a real one with as many digits as
-- give it back
CASE WHEN typeof(/* value */NEW.share) = 'real' AND abs(/* value */NEW.share) < 1e15
  AND CAST(CAST(/* value */NEW.share AS INTEGER) AS REAL) = /* value */NEW.share
THEN CAST(CAST(/* value */NEW.share AS INTEGER) AS TEXT)
WHEN typeof(/* value */NEW.share) <> 'real' OR CAST(CAST(/* value */NEW.share AS TEXT) AS REAL) = /* value */NEW.share
THEN CAST(/* value */NEW.share AS TEXT)
WHEN CAST(printf('%!.17g', /* value */NEW.share) AS REAL) = /* value */NEW.share THEN printf('%!.17g', /* value */NEW.share)
ELSE printf('%!.18g', /* value */NEW.share) END;

-- text_of_timestamp: date and time with nine digits of a second where the text is one that says so
CASE WHEN typeof(/* value */NEW.seen) = 'text' AND /* value */NEW.seen GLOB
  '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9][ T][0-9][0-9]:[0-9][0-9]:[0-9][0-9]*'
  AND substr(/* value */NEW.seen, 20) NOT GLOB '?*[^0-9]*' AND substr(/* value */NEW.seen, 20, 1) IN ('', '.')
THEN replace(substr(/* value */NEW.seen, 1, 19), 'T', ' ') || '.'
  || substr(substr(/* value */NEW.seen, 21) || '000000000', 1, 9)
ELSE CAST(/* value */NEW.seen AS TEXT) END;

-- value_now: what a column refers to in its own table. If the row refers to itself and its key changed, a foreign key may
-- have changed the column before the trigger of the key fires, and NEW has it as it was
CASE WHEN /* key_before */OLD.idu IS /* key_after */NEW.idu THEN /* value */NEW.manager
ELSE (SELECT standing./* column */manager FROM /* target */usr AS standing WHERE /* match */(1 = 1)) END;

-- quoted: a key's value, in quotes where the grammar of table_key asks for them, which it does of no whole number
CASE WHEN typeof(/* value */NEW.idu) = 'integer' THEN /* text */NEW.idu
WHEN /* text */NEW.idu GLOB '*[,;''+"=\<>]*' OR /* text */NEW.idu GLOB ' *' OR /* text */NEW.idu GLOB '* '
THEN '"' || replace(replace(/* text */NEW.idu, '\', '\\'), '"', '\"') || '"' ELSE coalesce(/* text */NEW.idu, '') END;

-- differs: whether a value changed
/* before */OLD.fname IS NOT /* after */NEW.fname COLLATE BINARY;

-- differs_as_text: the same, whatever the column's collation takes for equal
/* before */OLD.fname IS NOT /* after */NEW.fname COLLATE BINARY;

-- log_row: one row of the log, if its condition holds
SELECT /* key */'idu=1', 'N', /* kind */6, /* now */CURRENT_TIMESTAMP, /* user */NULL, /* table */'usr'/* context_value */, /* column */NULL,
  /* old */NULL, /* new */NULL WHERE /* condition */(1 = 1);

-- log_row_always: the same row without a condition: SQLite writes VALUES without the coroutine that a SELECT is
VALUES (/* key */'idu=1', 'N', /* kind */6, /* now */CURRENT_TIMESTAMP, /* user */NULL, /* table */'usr'/* context_value */, /* column */NULL,
  /* old */NULL, /* new */NULL);

-- log_together: writes rows in one statement, in their order; each INSERT of a trigger opens the log and its index for
-- every row of the writer's statement, also when its condition does not hold
INSERT INTO /* log */event_log (/* table_key */table_key, /* status */status, /* event_type */event_type,
  /* event_time */event_time, /* perpetrator */perpetrator, /* table_name */table_name/* context_name */, /* column_name */column_name,
  /* old_value */old_value, /* new_value */new_value)
/* rows */;

-- image_begin: the first items of an image, an array of texts, the number of its definition first; a function takes 127
rtrim(json_array(/* items */'7'), ']');

-- image_piece: the next ones
',' || rtrim(substr(json_array(/* items */'a'), 2), ']');

-- image_length: how long a value is
coalesce(length(/* value */NEW.fname), 0);

-- image_within: no image of a row that is too long for one: it is read back
CASE WHEN /* length */7 <= 1000000 THEN /* image */NULL END;

-- whole_row_part: a column in the text of a row without a key; nothing where it is NULL
coalesce(/* name */',"fname":' || nullif(json_quote(/* text */NEW.fname), 'null'), '');

-- whole_row: the text of a row without a key
'{' || substr(/* parts */',"fname":"x"', 2) || '}';

-- whole_row_key: the key of a row without one: its text, for SQLite has no hash
/* name */'eventlog_whole_row=' || '"' || replace(replace(/* text */'{}', '\', '\\'), '"', '\"') || '"';

-- row_trigger: fires for each row
CREATE TRIGGER /* trigger */event_log_usr_insert /* time */AFTER /* event */INSERT ON /* target */usr BEGIN
/* body */;
END;
