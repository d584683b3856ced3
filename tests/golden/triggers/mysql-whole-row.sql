-- event_log_note_insert on note
SET @eventlog_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES'
CREATE TRIGGER event_log_note_insert AFTER INSERT ON note FOR EACH ROW BEGIN
IF (1 = 1) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('eventlog_whole_row=', SHA2(CONVERT(CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(NEW.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(NEW.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(NEW.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}') USING utf8mb4), 256)), 'N', 5, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'note', NULL,
  NULL, CASE WHEN COALESCE(LENGTH(NEW.photo), 0) <= LEAST(1000000, @@SESSION.max_allowed_packet DIV 4)
THEN JSON_ARRAY('1', CONVERT(NEW.b USING utf8mb4), CAST(NEW.a + 0 AS CHAR), REPLACE(TO_BASE64(NEW.photo), CHAR(10 USING utf8mb4), '')) END);
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
VALUES (CONCAT('eventlog_whole_row=', SHA2(CONVERT(CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(OLD.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(OLD.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(OLD.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}') USING utf8mb4), 256)), 'N', 4, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'note', NULL,
  CASE WHEN COALESCE(LENGTH(OLD.photo), 0) <= LEAST(1000000, @@SESSION.max_allowed_packet DIV 4)
THEN JSON_ARRAY('1', CONVERT(OLD.b USING utf8mb4), CAST(OLD.a + 0 AS CHAR), REPLACE(TO_BASE64(OLD.photo), CHAR(10 USING utf8mb4), '')) END, NULL);
END IF;
IF (NOT (CAST(CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(OLD.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(OLD.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(OLD.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}') AS BINARY) <=> CAST(CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(NEW.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(NEW.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(NEW.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}') AS BINARY))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('eventlog_whole_row=', SHA2(CONVERT(CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(NEW.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(NEW.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(NEW.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}') USING utf8mb4), 256)), 'N', 5, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'note', NULL,
  NULL, CASE WHEN COALESCE(LENGTH(NEW.photo), 0) <= LEAST(1000000, @@SESSION.max_allowed_packet DIV 4)
THEN JSON_ARRAY('1', CONVERT(NEW.b USING utf8mb4), CAST(NEW.a + 0 AS CHAR), REPLACE(TO_BASE64(NEW.photo), CHAR(10 USING utf8mb4), '')) END);
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
VALUES (CONCAT('eventlog_whole_row=', SHA2(CONVERT(CONCAT('{', SUBSTR(CONCAT(COALESCE(CONCAT(',"a":', '"', REPLACE(REPLACE(CAST(OLD.a + 0 AS CHAR), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"b":', '"', REPLACE(REPLACE(CONVERT(OLD.b USING utf8mb4), '\', '\\'), '"', '\"'), '"'), ''), COALESCE(CONCAT(',"photo":', '"', REPLACE(REPLACE(REPLACE(TO_BASE64(OLD.photo), CHAR(10 USING utf8mb4), ''), '\', '\\'), '"', '\"'), '"'), '')), 2), '}') USING utf8mb4), 256)), 'N', 4, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'note', NULL,
  CASE WHEN COALESCE(LENGTH(OLD.photo), 0) <= LEAST(1000000, @@SESSION.max_allowed_packet DIV 4)
THEN JSON_ARRAY('1', CONVERT(OLD.b USING utf8mb4), CAST(OLD.a + 0 AS CHAR), REPLACE(TO_BASE64(OLD.photo), CHAR(10 USING utf8mb4), '')) END, NULL);
END IF;
END
SET SESSION sql_mode = COALESCE(@eventlog_sql_mode, @@SESSION.sql_mode)
