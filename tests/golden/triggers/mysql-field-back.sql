-- event_log_room_insert on room
SET @eventlog_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES'
CREATE TRIGGER event_log_room_insert AFTER INSERT ON room FOR EACH ROW BEGIN
IF ((NEW.open IS NOT NULL OR ( IS NULL))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('house=', CASE WHEN CONVERT(NEW.house USING utf8mb4) REGEXP '[,;''+"=<>\\]' OR CAST(LEFT(CONVERT(NEW.house USING utf8mb4), 1) AS BINARY) = ' '
  OR CAST(RIGHT(CONVERT(NEW.house USING utf8mb4), 1) AS BINARY) = ' '
THEN CONCAT('"', REPLACE(REPLACE(CONVERT(NEW.house USING utf8mb4), '\', '\\'), '"', '\"'), '"') ELSE COALESCE(CONVERT(NEW.house USING utf8mb4), '') END, '+nr=', CAST( AS CHAR)), 'N', 7, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'room', 'open',
  NULL, NULL);
END IF;
IF ( IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('house=', CASE WHEN CONVERT(NEW.house USING utf8mb4) REGEXP '[,;''+"=<>\\]' OR CAST(LEFT(CONVERT(NEW.house USING utf8mb4), 1) AS BINARY) = ' '
  OR CAST(RIGHT(CONVERT(NEW.house USING utf8mb4), 1) AS BINARY) = ' '
THEN CONCAT('"', REPLACE(REPLACE(CONVERT(NEW.house USING utf8mb4), '\', '\\'), '"', '\"'), '"') ELSE COALESCE(CONVERT(NEW.house USING utf8mb4), '') END, '+nr=', CAST( AS CHAR)), 'N', 7, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'room', 'colour',
  NULL, NULL);
END IF;
END
SET SESSION sql_mode = COALESCE(@eventlog_sql_mode, @@SESSION.sql_mode)

-- event_log_room_update on room
SET @eventlog_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES'
CREATE TRIGGER event_log_room_update AFTER UPDATE ON room FOR EACH ROW BEGIN
IF ((NOT (CAST(CONVERT(OLD.house USING utf8mb4) AS BINARY) <=> CAST(CONVERT(NEW.house USING utf8mb4) AS BINARY))
  OR NOT ( <=> ))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('house=', CASE WHEN CONVERT(OLD.house USING utf8mb4) REGEXP '[,;''+"=<>\\]' OR CAST(LEFT(CONVERT(OLD.house USING utf8mb4), 1) AS BINARY) = ' '
  OR CAST(RIGHT(CONVERT(OLD.house USING utf8mb4), 1) AS BINARY) = ' '
THEN CONCAT('"', REPLACE(REPLACE(CONVERT(OLD.house USING utf8mb4), '\', '\\'), '"', '\"'), '"') ELSE COALESCE(CONVERT(OLD.house USING utf8mb4), '') END, '+nr=', CAST( AS CHAR)), 'N', 4, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'room', NULL,
  NULL, NULL);
END IF;
IF ((NOT (CAST(CONVERT(OLD.house USING utf8mb4) AS BINARY) <=> CAST(CONVERT(NEW.house USING utf8mb4) AS BINARY))
  OR NOT ( <=> ))
  AND (NEW.open IS NOT NULL OR ( IS NULL))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('house=', CASE WHEN CONVERT(NEW.house USING utf8mb4) REGEXP '[,;''+"=<>\\]' OR CAST(LEFT(CONVERT(NEW.house USING utf8mb4), 1) AS BINARY) = ' '
  OR CAST(RIGHT(CONVERT(NEW.house USING utf8mb4), 1) AS BINARY) = ' '
THEN CONCAT('"', REPLACE(REPLACE(CONVERT(NEW.house USING utf8mb4), '\', '\\'), '"', '\"'), '"') ELSE COALESCE(CONVERT(NEW.house USING utf8mb4), '') END, '+nr=', CAST( AS CHAR)), 'N', 7, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'room', 'open',
  NULL, NULL);
END IF;
IF ((NOT (CAST(CONVERT(OLD.house USING utf8mb4) AS BINARY) <=> CAST(CONVERT(NEW.house USING utf8mb4) AS BINARY))
  OR NOT ( <=> ))
  AND  IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('house=', CASE WHEN CONVERT(NEW.house USING utf8mb4) REGEXP '[,;''+"=<>\\]' OR CAST(LEFT(CONVERT(NEW.house USING utf8mb4), 1) AS BINARY) = ' '
  OR CAST(RIGHT(CONVERT(NEW.house USING utf8mb4), 1) AS BINARY) = ' '
THEN CONCAT('"', REPLACE(REPLACE(CONVERT(NEW.house USING utf8mb4), '\', '\\'), '"', '\"'), '"') ELSE COALESCE(CONVERT(NEW.house USING utf8mb4), '') END, '+nr=', CAST( AS CHAR)), 'N', 7, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'room', 'colour',
  NULL, NULL);
END IF;
IF (NOT (NOT (CAST(CONVERT(OLD.house USING utf8mb4) AS BINARY) <=> CAST(CONVERT(NEW.house USING utf8mb4) AS BINARY))
  OR NOT ( <=> ))
  AND (NOT (OLD.open <=> NEW.open))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('house=', CASE WHEN CONVERT(NEW.house USING utf8mb4) REGEXP '[,;''+"=<>\\]' OR CAST(LEFT(CONVERT(NEW.house USING utf8mb4), 1) AS BINARY) = ' '
  OR CAST(RIGHT(CONVERT(NEW.house USING utf8mb4), 1) AS BINARY) = ' '
THEN CONCAT('"', REPLACE(REPLACE(CONVERT(NEW.house USING utf8mb4), '\', '\\'), '"', '\"'), '"') ELSE COALESCE(CONVERT(NEW.house USING utf8mb4), '') END, '+nr=', CAST( AS CHAR)), 'N', 8, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'room', 'open',
  NULL, NULL);
END IF;
IF (NOT (NOT (CAST(CONVERT(OLD.house USING utf8mb4) AS BINARY) <=> CAST(CONVERT(NEW.house USING utf8mb4) AS BINARY))
  OR NOT ( <=> ))
  AND (NOT (CAST(CONVERT( USING utf8mb4) AS BINARY) <=> CAST(CONVERT( USING utf8mb4) AS BINARY)))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('house=', CASE WHEN CONVERT(NEW.house USING utf8mb4) REGEXP '[,;''+"=<>\\]' OR CAST(LEFT(CONVERT(NEW.house USING utf8mb4), 1) AS BINARY) = ' '
  OR CAST(RIGHT(CONVERT(NEW.house USING utf8mb4), 1) AS BINARY) = ' '
THEN CONCAT('"', REPLACE(REPLACE(CONVERT(NEW.house USING utf8mb4), '\', '\\'), '"', '\"'), '"') ELSE COALESCE(CONVERT(NEW.house USING utf8mb4), '') END, '+nr=', CAST( AS CHAR)), 'N', 8, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'room', 'colour',
  NULL, NULL);
END IF;
END
SET SESSION sql_mode = COALESCE(@eventlog_sql_mode, @@SESSION.sql_mode)

-- event_log_room_delete on room
SET @eventlog_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES'
CREATE TRIGGER event_log_room_delete AFTER DELETE ON room FOR EACH ROW BEGIN
IF (1 = 1) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('house=', CASE WHEN CONVERT(OLD.house USING utf8mb4) REGEXP '[,;''+"=<>\\]' OR CAST(LEFT(CONVERT(OLD.house USING utf8mb4), 1) AS BINARY) = ' '
  OR CAST(RIGHT(CONVERT(OLD.house USING utf8mb4), 1) AS BINARY) = ' '
THEN CONCAT('"', REPLACE(REPLACE(CONVERT(OLD.house USING utf8mb4), '\', '\\'), '"', '\"'), '"') ELSE COALESCE(CONVERT(OLD.house USING utf8mb4), '') END, '+nr=', CAST( AS CHAR)), 'N', 4, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'room', NULL,
  NULL, NULL);
END IF;
END
SET SESSION sql_mode = COALESCE(@eventlog_sql_mode, @@SESSION.sql_mode)
