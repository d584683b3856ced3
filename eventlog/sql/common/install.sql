-- Queries of installation.

-- count_waiting: rows that nobody has published yet
SELECT COUNT(*) FROM /* log */event_log WHERE /* status */status = 'N';

-- count_rows: all rows, published or not
SELECT COUNT(*) FROM /* log */event_log;

-- try_log: a row as triggers write it, without a number of its own
INSERT INTO /* log */event_log (/* table_key */table_key, /* status */status, /* event_type */event_type,
  /* event_time */event_time, /* perpetrator */perpetrator, /* table_name */table_name/* number_name */)
VALUES ('eventlog=1', 'N', 6, /* now */CURRENT_TIMESTAMP, /* user */NULL, 'eventlog'/* number */);

-- count_unnumbered: rows that the log gave no number
SELECT COUNT(*) FROM /* log */event_log WHERE /* record_id */record_id IS NULL;
