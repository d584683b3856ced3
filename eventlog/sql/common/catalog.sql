-- What the database's own catalog tells of tables and triggers.

-- try_condition: whether a condition can be asked of a table
SELECT COUNT(*) FROM /* target */usr WHERE /* condition */(1 = 1) AND 1 = 0;

-- newest_number: the number of the newest row of the log
SELECT MAX(/* record_id */record_id) FROM /* log */event_log;

-- history_stamp: what grows with each version of a table that somebody enters, or the database itself
SELECT COUNT(*) + (SELECT COUNT(*) FROM /* seen */event_log_seen) FROM /* history */event_log_schema;

-- version_add: enters how a class looks, in a script
INSERT INTO /* history */event_log_schema (table_name, table_version, seen_at, changed, definition, first_record, described)
VALUES (/* class_name */'public.usr', /* table_version */1, /* seen_at */'2025-03-23T10:57:19+00:00', /* changed */'{}',
  /* definition */'{}', (SELECT MAX(/* record_id */record_id) FROM /* log */event_log), /* described */'{}');
