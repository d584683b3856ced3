-- event_log_note_insert on note
SET @eventlog_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES'
CREATE TRIGGER event_log_note_insert AFTER INSERT ON note FOR EACH ROW BEGIN
IF (1 = 1) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('eventlog_whole_row=', SHA2(CONVERT(CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(NEW.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(NEW.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(NEW.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}') USING utf8mb4), 256)), 'N', 1, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - CHAR_LENGTH(SUBSTRING_INDEX(USER(), '@', -1)) - 1), 'note', 'eventlog_whole_row',
  NULL, CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(NEW.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(NEW.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(NEW.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}'));
END IF;
END
SET SESSION sql_mode = COALESCE(@eventlog_sql_mode, @@SESSION.sql_mode)

-- event_log_note_update on note
SET @eventlog_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES'
CREATE TRIGGER event_log_note_update AFTER UPDATE ON note FOR EACH ROW BEGIN
IF (NOT (CAST(CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(OLD.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(OLD.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(OLD.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}') AS BINARY) <=> CAST(CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(NEW.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(NEW.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(NEW.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}') AS BINARY))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('eventlog_whole_row=', SHA2(CONVERT(CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(OLD.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(OLD.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(OLD.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}') USING utf8mb4), 256)), 'N', 4, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - CHAR_LENGTH(SUBSTRING_INDEX(USER(), '@', -1)) - 1), 'note', NULL,
  CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(OLD.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(OLD.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(OLD.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}'), NULL);
END IF;
IF (NOT (CAST(CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(OLD.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(OLD.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(OLD.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}') AS BINARY) <=> CAST(CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(NEW.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(NEW.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(NEW.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}') AS BINARY))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('eventlog_whole_row=', SHA2(CONVERT(CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(NEW.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(NEW.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(NEW.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}') USING utf8mb4), 256)), 'N', 1, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - CHAR_LENGTH(SUBSTRING_INDEX(USER(), '@', -1)) - 1), 'note', 'eventlog_whole_row',
  NULL, CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(NEW.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(NEW.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(NEW.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}'));
END IF;
END
SET SESSION sql_mode = COALESCE(@eventlog_sql_mode, @@SESSION.sql_mode)

-- event_log_note_delete on note
SET @eventlog_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES'
CREATE TRIGGER event_log_note_delete AFTER DELETE ON note FOR EACH ROW BEGIN
IF (1 = 1) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('eventlog_whole_row=', SHA2(CONVERT(CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(OLD.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(OLD.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(OLD.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}') USING utf8mb4), 256)), 'N', 4, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - CHAR_LENGTH(SUBSTRING_INDEX(USER(), '@', -1)) - 1), 'note', NULL,
  CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(OLD.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(OLD.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(OLD.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}'), NULL);
END IF;
END
SET SESSION sql_mode = COALESCE(@eventlog_sql_mode, @@SESSION.sql_mode)
