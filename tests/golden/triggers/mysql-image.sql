-- event_log_usr_insert on usr
SET @eventlog_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES'
CREATE TRIGGER event_log_usr_insert AFTER INSERT ON usr FOR EACH ROW BEGIN
IF (1 = 1) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 5, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', NULL,
  NULL, JSON_ARRAY('1', CONVERT(NEW.fname USING utf8mb4), COALESCE(DATE_FORMAT(TIMESTAMP('1970-01-01 00:00:00') + INTERVAL NULLIF(UNIX_TIMESTAMP(NEW.seen), 0) SECOND,
  '%Y-%m-%d %H:%i:%s.%f000'), DATE_FORMAT(NEW.seen, '%Y-%m-%d %H:%i:%s.%f000'))));
END IF;
END
SET SESSION sql_mode = COALESCE(@eventlog_sql_mode, @@SESSION.sql_mode)

-- event_log_usr_update on usr
SET @eventlog_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES'
CREATE TRIGGER event_log_usr_update AFTER UPDATE ON usr FOR EACH ROW BEGIN
IF ((NOT (OLD.idu <=> NEW.idu))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(OLD.idu + 0 AS CHAR)), 'N', 4, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', NULL,
  JSON_ARRAY('1', CONVERT(OLD.fname USING utf8mb4), COALESCE(DATE_FORMAT(TIMESTAMP('1970-01-01 00:00:00') + INTERVAL NULLIF(UNIX_TIMESTAMP(OLD.seen), 0) SECOND,
  '%Y-%m-%d %H:%i:%s.%f000'), DATE_FORMAT(OLD.seen, '%Y-%m-%d %H:%i:%s.%f000'))), NULL);
END IF;
IF ((NOT (OLD.idu <=> NEW.idu))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 5, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', NULL,
  NULL, JSON_ARRAY('1', CONVERT(NEW.fname USING utf8mb4), COALESCE(DATE_FORMAT(TIMESTAMP('1970-01-01 00:00:00') + INTERVAL NULLIF(UNIX_TIMESTAMP(NEW.seen), 0) SECOND,
  '%Y-%m-%d %H:%i:%s.%f000'), DATE_FORMAT(NEW.seen, '%Y-%m-%d %H:%i:%s.%f000'))));
END IF;
IF (NOT (NOT (OLD.idu <=> NEW.idu))
  AND (NOT (CAST(CONVERT(OLD.fname USING utf8mb4) AS BINARY) <=> CAST(CONVERT(NEW.fname USING utf8mb4) AS BINARY))
  OR NOT (OLD.seen <=> NEW.seen))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 6, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', NULL,
  JSON_ARRAY('1', CONVERT(OLD.fname USING utf8mb4), COALESCE(DATE_FORMAT(TIMESTAMP('1970-01-01 00:00:00') + INTERVAL NULLIF(UNIX_TIMESTAMP(OLD.seen), 0) SECOND,
  '%Y-%m-%d %H:%i:%s.%f000'), DATE_FORMAT(OLD.seen, '%Y-%m-%d %H:%i:%s.%f000'))), JSON_ARRAY('1', CONVERT(NEW.fname USING utf8mb4), COALESCE(DATE_FORMAT(TIMESTAMP('1970-01-01 00:00:00') + INTERVAL NULLIF(UNIX_TIMESTAMP(NEW.seen), 0) SECOND,
  '%Y-%m-%d %H:%i:%s.%f000'), DATE_FORMAT(NEW.seen, '%Y-%m-%d %H:%i:%s.%f000'))));
END IF;
IF ((NOT (OLD.idu <=> NEW.idu)) AND (EXISTS (SELECT 1 FROM usr_phone standing WHERE (standing.idu = OLD.idu) AND (1 = 1)))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(OLD.idu + 0 AS CHAR)), 'N', 5, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', NULL,
  NULL, NULL);
END IF;
END
SET SESSION sql_mode = COALESCE(@eventlog_sql_mode, @@SESSION.sql_mode)

-- event_log_usr_delete on usr
SET @eventlog_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES'
CREATE TRIGGER event_log_usr_delete AFTER DELETE ON usr FOR EACH ROW BEGIN
IF (1 = 1) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(OLD.idu + 0 AS CHAR)), 'N', 4, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', NULL,
  JSON_ARRAY('1', CONVERT(OLD.fname USING utf8mb4), COALESCE(DATE_FORMAT(TIMESTAMP('1970-01-01 00:00:00') + INTERVAL NULLIF(UNIX_TIMESTAMP(OLD.seen), 0) SECOND,
  '%Y-%m-%d %H:%i:%s.%f000'), DATE_FORMAT(OLD.seen, '%Y-%m-%d %H:%i:%s.%f000'))), NULL);
END IF;
IF ((EXISTS (SELECT 1 FROM usr_phone standing WHERE (standing.idu = OLD.idu) AND (1 = 1)))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(OLD.idu + 0 AS CHAR)), 'N', 5, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', NULL,
  NULL, NULL);
END IF;
END
SET SESSION sql_mode = COALESCE(@eventlog_sql_mode, @@SESSION.sql_mode)

-- event_log_usr__usr_phone_insert on usr_phone
SET @eventlog_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES'
CREATE TRIGGER event_log_usr__usr_phone_insert AFTER INSERT ON usr_phone FOR EACH ROW BEGIN
IF (NEW.idu IS NOT NULL AND NEW.phoneno IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 1, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'usr_phone.phoneno',
  NULL, CONVERT(NEW.phoneno USING utf8mb4));
END IF;
IF (NEW.idu IS NOT NULL AND NEW.kind IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 1, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'usr_phone.kind',
  NULL, CAST(NEW.kind + 0 AS CHAR));
END IF;
END
SET SESSION sql_mode = COALESCE(@eventlog_sql_mode, @@SESSION.sql_mode)

-- event_log_usr__usr_phone_update on usr_phone
SET @eventlog_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES'
CREATE TRIGGER event_log_usr__usr_phone_update AFTER UPDATE ON usr_phone FOR EACH ROW BEGIN
IF (((NOT (CAST(CONVERT(OLD.phoneno USING utf8mb4) AS BINARY) <=> CAST(CONVERT(NEW.phoneno USING utf8mb4) AS BINARY)))
  OR (NOT (OLD.idu <=> NEW.idu)))
  AND OLD.idu IS NOT NULL
  AND EXISTS (SELECT 1 FROM usr AS usr WHERE usr.idu = OLD.idu AND (1 = 1))
  AND OLD.phoneno IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(OLD.idu + 0 AS CHAR)), 'N', 8, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'usr_phone.phoneno',
  NULL, NULL);
END IF;
IF (((NOT (CAST(CONVERT(OLD.phoneno USING utf8mb4) AS BINARY) <=> CAST(CONVERT(NEW.phoneno USING utf8mb4) AS BINARY)))
  OR (NOT (OLD.idu <=> NEW.idu)))
  AND NEW.idu IS NOT NULL
  AND NEW.phoneno IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 1, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'usr_phone.phoneno',
  NULL, CONVERT(NEW.phoneno USING utf8mb4));
END IF;
IF (((NOT (OLD.kind <=> NEW.kind)) OR (NOT (OLD.idu <=> NEW.idu)))
  AND OLD.idu IS NOT NULL
  AND EXISTS (SELECT 1 FROM usr AS usr WHERE usr.idu = OLD.idu AND (1 = 1))
  AND OLD.kind IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(OLD.idu + 0 AS CHAR)), 'N', 2, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'usr_phone.kind',
  CAST(OLD.kind + 0 AS CHAR), NULL);
END IF;
IF (((NOT (OLD.kind <=> NEW.kind)) OR (NOT (OLD.idu <=> NEW.idu))) AND NEW.idu IS NOT NULL AND NEW.kind IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 1, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'usr_phone.kind',
  NULL, CAST(NEW.kind + 0 AS CHAR));
END IF;
END
SET SESSION sql_mode = COALESCE(@eventlog_sql_mode, @@SESSION.sql_mode)

-- event_log_usr__usr_phone_delete on usr_phone
SET @eventlog_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES'
CREATE TRIGGER event_log_usr__usr_phone_delete AFTER DELETE ON usr_phone FOR EACH ROW BEGIN
IF (OLD.idu IS NOT NULL
  AND EXISTS (SELECT 1 FROM usr AS usr WHERE usr.idu = OLD.idu AND (1 = 1))
  AND OLD.phoneno IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(OLD.idu + 0 AS CHAR)), 'N', 8, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'usr_phone.phoneno',
  NULL, NULL);
END IF;
IF (OLD.idu IS NOT NULL AND EXISTS (SELECT 1 FROM usr AS usr WHERE usr.idu = OLD.idu AND (1 = 1)) AND OLD.kind IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(OLD.idu + 0 AS CHAR)), 'N', 2, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'usr_phone.kind',
  CAST(OLD.kind + 0 AS CHAR), NULL);
END IF;
END
SET SESSION sql_mode = COALESCE(@eventlog_sql_mode, @@SESSION.sql_mode)
