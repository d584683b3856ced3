-- Queries of installation.

-- run_once: a statement of a script that was run before, and failed further on, has made its thing already: the name is taken,
-- the columns have an index, the column or the row is there
BEGIN
  EXECUTE IMMEDIATE /* statement */'CREATE TABLE event_log (record_id NUMBER)';
EXCEPTION
  WHEN OTHERS THEN
    IF SQLCODE NOT IN (-955, -1408, -1430, -1) THEN
      RAISE;
    END IF;
END;
/

-- run_down_once: the same for what is gone: the table, the column, the index, the sequence, the package, the trigger
BEGIN
  EXECUTE IMMEDIATE /* statement */'DROP TABLE event_log';
EXCEPTION
  WHEN OTHERS THEN
    IF SQLCODE NOT IN (-942, -904, -1418, -2289, -4043, -4080) THEN
      RAISE;
    END IF;
END;
/

-- version_insert: records the migration of a new log
INSERT INTO /* version */event_log_version (version_num)
SELECT /* last */'0002' FROM dual WHERE NOT EXISTS (SELECT 1 FROM /* version */event_log_version);

-- version_update: records the migration that a log has come to
UPDATE /* version */event_log_version SET version_num = /* last */'0002' WHERE version_num = /* first */'0001';
