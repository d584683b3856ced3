-- event_log_usr_insert on usr
SET @eventlog_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES'
CREATE TRIGGER event_log_usr_insert AFTER INSERT ON usr FOR EACH ROW BEGIN
IF ((NEW.fname IS NOT NULL OR (NEW.photo IS NULL AND NEW.seen IS NULL))
  AND EXISTS (SELECT 1 FROM (SELECT NEW.idu AS idu, NEW.fname AS fname, NEW.photo AS photo, NEW.seen AS seen) AS usr WHERE (fname = 'Ann'))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 1, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'fname',
  NULL, CONVERT(NEW.fname USING utf8mb4));
END IF;
IF (EXISTS (SELECT 1 FROM (SELECT NEW.idu AS idu, NEW.fname AS fname, NEW.photo AS photo, NEW.seen AS seen) AS usr WHERE (fname = 'Ann'))
  AND NEW.photo IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 1, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'photo',
  NULL, REPLACE(TO_BASE64(NEW.photo), CHAR(10 USING utf8mb4), ''));
END IF;
IF (EXISTS (SELECT 1 FROM (SELECT NEW.idu AS idu, NEW.fname AS fname, NEW.photo AS photo, NEW.seen AS seen) AS usr WHERE (fname = 'Ann'))
  AND NEW.seen IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 1, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'seen',
  NULL, COALESCE(DATE_FORMAT(TIMESTAMP('1970-01-01 00:00:00') + INTERVAL NULLIF(UNIX_TIMESTAMP(NEW.seen), 0) SECOND,
  '%Y-%m-%d %H:%i:%s.%f000'), DATE_FORMAT(NEW.seen, '%Y-%m-%d %H:%i:%s.%f000')));
END IF;
END
SET SESSION sql_mode = COALESCE(@eventlog_sql_mode, @@SESSION.sql_mode)

-- event_log_usr_update on usr
SET @eventlog_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES'
CREATE TRIGGER event_log_usr_update AFTER UPDATE ON usr FOR EACH ROW BEGIN
IF ((NOT (OLD.idu <=> NEW.idu))
  AND EXISTS (SELECT 1 FROM (SELECT OLD.idu AS idu, OLD.fname AS fname, OLD.photo AS photo, OLD.seen AS seen) AS usr WHERE (fname = 'Ann'))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(OLD.idu + 0 AS CHAR)), 'N', 4, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', NULL,
  NULL, NULL);
END IF;
IF ((NOT (OLD.idu <=> NEW.idu))
  AND (NEW.fname IS NOT NULL OR (NEW.photo IS NULL AND NEW.seen IS NULL))
  AND EXISTS (SELECT 1 FROM (SELECT NEW.idu AS idu, NEW.fname AS fname, NEW.photo AS photo, NEW.seen AS seen) AS usr WHERE (fname = 'Ann'))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 1, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'fname',
  NULL, CONVERT(NEW.fname USING utf8mb4));
END IF;
IF ((NOT (OLD.idu <=> NEW.idu))
  AND EXISTS (SELECT 1 FROM (SELECT NEW.idu AS idu, NEW.fname AS fname, NEW.photo AS photo, NEW.seen AS seen) AS usr WHERE (fname = 'Ann'))
  AND NEW.photo IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 1, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'photo',
  NULL, REPLACE(TO_BASE64(NEW.photo), CHAR(10 USING utf8mb4), ''));
END IF;
IF ((NOT (OLD.idu <=> NEW.idu))
  AND EXISTS (SELECT 1 FROM (SELECT NEW.idu AS idu, NEW.fname AS fname, NEW.photo AS photo, NEW.seen AS seen) AS usr WHERE (fname = 'Ann'))
  AND NEW.seen IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 1, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'seen',
  NULL, COALESCE(DATE_FORMAT(TIMESTAMP('1970-01-01 00:00:00') + INTERVAL NULLIF(UNIX_TIMESTAMP(NEW.seen), 0) SECOND,
  '%Y-%m-%d %H:%i:%s.%f000'), DATE_FORMAT(NEW.seen, '%Y-%m-%d %H:%i:%s.%f000')));
END IF;
IF (NOT (NOT (OLD.idu <=> NEW.idu))
  AND (NOT (CAST(CONVERT(OLD.fname USING utf8mb4) AS BINARY) <=> CAST(CONVERT(NEW.fname USING utf8mb4) AS BINARY)))
  AND (EXISTS (SELECT 1 FROM (SELECT OLD.idu AS idu, OLD.fname AS fname, OLD.photo AS photo, OLD.seen AS seen) AS usr WHERE (fname = 'Ann'))
  OR EXISTS (SELECT 1 FROM (SELECT NEW.idu AS idu, NEW.fname AS fname, NEW.photo AS photo, NEW.seen AS seen) AS usr WHERE (fname = 'Ann')))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 2, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'fname',
  CONVERT(OLD.fname USING utf8mb4), CONVERT(NEW.fname USING utf8mb4));
END IF;
IF (NOT (NOT (OLD.idu <=> NEW.idu))
  AND (NOT (OLD.photo <=> NEW.photo))
  AND (EXISTS (SELECT 1 FROM (SELECT OLD.idu AS idu, OLD.fname AS fname, OLD.photo AS photo, OLD.seen AS seen) AS usr WHERE (fname = 'Ann'))
  OR EXISTS (SELECT 1 FROM (SELECT NEW.idu AS idu, NEW.fname AS fname, NEW.photo AS photo, NEW.seen AS seen) AS usr WHERE (fname = 'Ann')))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 2, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'photo',
  REPLACE(TO_BASE64(OLD.photo), CHAR(10 USING utf8mb4), ''), REPLACE(TO_BASE64(NEW.photo), CHAR(10 USING utf8mb4), ''));
END IF;
IF (NOT (NOT (OLD.idu <=> NEW.idu))
  AND (NOT (OLD.seen <=> NEW.seen))
  AND (EXISTS (SELECT 1 FROM (SELECT OLD.idu AS idu, OLD.fname AS fname, OLD.photo AS photo, OLD.seen AS seen) AS usr WHERE (fname = 'Ann'))
  OR EXISTS (SELECT 1 FROM (SELECT NEW.idu AS idu, NEW.fname AS fname, NEW.photo AS photo, NEW.seen AS seen) AS usr WHERE (fname = 'Ann')))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 2, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'seen',
  COALESCE(DATE_FORMAT(TIMESTAMP('1970-01-01 00:00:00') + INTERVAL NULLIF(UNIX_TIMESTAMP(OLD.seen), 0) SECOND,
  '%Y-%m-%d %H:%i:%s.%f000'), DATE_FORMAT(OLD.seen, '%Y-%m-%d %H:%i:%s.%f000')), COALESCE(DATE_FORMAT(TIMESTAMP('1970-01-01 00:00:00') + INTERVAL NULLIF(UNIX_TIMESTAMP(NEW.seen), 0) SECOND,
  '%Y-%m-%d %H:%i:%s.%f000'), DATE_FORMAT(NEW.seen, '%Y-%m-%d %H:%i:%s.%f000')));
END IF;
IF ((NOT (OLD.idu <=> NEW.idu))
  AND EXISTS (SELECT 1 FROM usr usr WHERE usr.idu = OLD.idu AND (fname = 'Ann'))
  AND EXISTS (SELECT 1 FROM (SELECT OLD.idu AS idu, OLD.fname AS fname, OLD.photo AS photo, OLD.seen AS seen) AS usr WHERE (fname = 'Ann'))) THEN
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
IF (EXISTS (SELECT 1 FROM (SELECT OLD.idu AS idu, OLD.fname AS fname, OLD.photo AS photo, OLD.seen AS seen) AS usr WHERE (fname = 'Ann'))) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(OLD.idu + 0 AS CHAR)), 'N', 4, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', NULL,
  NULL, NULL);
END IF;
IF (EXISTS (SELECT 1 FROM usr usr WHERE usr.idu = OLD.idu AND (fname = 'Ann'))
  AND EXISTS (SELECT 1 FROM (SELECT OLD.idu AS idu, OLD.fname AS fname, OLD.photo AS photo, OLD.seen AS seen) AS usr WHERE (fname = 'Ann'))) THEN
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
IF (NEW.idu IS NOT NULL
  AND EXISTS (SELECT 1 FROM usr AS usr WHERE usr.idu = NEW.idu AND (fname = 'Ann'))
  AND NEW.phoneno IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 1, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'usr_phone.phoneno',
  NULL, CONVERT(NEW.phoneno USING utf8mb4));
END IF;
IF (NEW.idu IS NOT NULL
  AND EXISTS (SELECT 1 FROM usr AS usr WHERE usr.idu = NEW.idu AND (fname = 'Ann'))
  AND NEW.kind IS NOT NULL) THEN
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
  AND EXISTS (SELECT 1 FROM usr AS usr WHERE usr.idu = OLD.idu AND (fname = 'Ann'))
  AND OLD.phoneno IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(OLD.idu + 0 AS CHAR)), 'N', 2, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'usr_phone.phoneno',
  CONVERT(OLD.phoneno USING utf8mb4), NULL);
END IF;
IF (((NOT (CAST(CONVERT(OLD.phoneno USING utf8mb4) AS BINARY) <=> CAST(CONVERT(NEW.phoneno USING utf8mb4) AS BINARY)))
  OR (NOT (OLD.idu <=> NEW.idu)))
  AND NEW.idu IS NOT NULL
  AND EXISTS (SELECT 1 FROM usr AS usr WHERE usr.idu = NEW.idu AND (fname = 'Ann'))
  AND NEW.phoneno IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(NEW.idu + 0 AS CHAR)), 'N', 1, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'usr_phone.phoneno',
  NULL, CONVERT(NEW.phoneno USING utf8mb4));
END IF;
IF (((NOT (OLD.kind <=> NEW.kind)) OR (NOT (OLD.idu <=> NEW.idu)))
  AND OLD.idu IS NOT NULL
  AND EXISTS (SELECT 1 FROM usr AS usr WHERE usr.idu = OLD.idu AND (fname = 'Ann'))
  AND OLD.kind IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(OLD.idu + 0 AS CHAR)), 'N', 2, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'usr_phone.kind',
  CAST(OLD.kind + 0 AS CHAR), NULL);
END IF;
IF (((NOT (OLD.kind <=> NEW.kind)) OR (NOT (OLD.idu <=> NEW.idu)))
  AND NEW.idu IS NOT NULL
  AND EXISTS (SELECT 1 FROM usr AS usr WHERE usr.idu = NEW.idu AND (fname = 'Ann'))
  AND NEW.kind IS NOT NULL) THEN
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
  AND EXISTS (SELECT 1 FROM usr AS usr WHERE usr.idu = OLD.idu AND (fname = 'Ann'))
  AND OLD.phoneno IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(OLD.idu + 0 AS CHAR)), 'N', 2, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'usr_phone.phoneno',
  CONVERT(OLD.phoneno USING utf8mb4), NULL);
END IF;
IF (OLD.idu IS NOT NULL
  AND EXISTS (SELECT 1 FROM usr AS usr WHERE usr.idu = OLD.idu AND (fname = 'Ann'))
  AND OLD.kind IS NOT NULL) THEN
INSERT INTO own.event_log (table_key, status, event_type,
  event_time, perpetrator, table_name, column_name,
  old_value, new_value)
VALUES (CONCAT('idu=', CAST(OLD.idu + 0 AS CHAR)), 'N', 2, UTC_TIMESTAMP(6), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), 'usr', 'usr_phone.kind',
  CAST(OLD.kind + 0 AS CHAR), NULL);
END IF;
END
SET SESSION sql_mode = COALESCE(@eventlog_sql_mode, @@SESSION.sql_mode)
