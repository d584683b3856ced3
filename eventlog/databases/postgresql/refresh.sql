-- The full load: keys of a table, a row_range at a time in the order of the key, and the log's rows that ask to read them.

-- refresh_session: the settings that triggers bring along where a text depends on them
SELECT set_config('IntervalStyle', 'postgres', true), set_config('extra_float_digits', '1', true),
       set_config('bytea_output', 'hex', true);

-- refresh_row: asks for rows of a table as they will be when the publisher comes to them; in a list, which is several times as quick
INSERT INTO /* log */event_log (/* table_key */table_key, /* status */status, /* event_type */event_type,
  /* event_time */event_time, /* perpetrator */perpetrator, /* table_name */table_name)
SELECT asked.key, :status, :kind, :time, :perpetrator, :called
FROM unnest(CAST(:keys AS text[])) WITH ORDINALITY AS asked (key, n) ORDER BY asked.n;
