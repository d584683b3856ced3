-- The full load: keys of a table, a stretch at a time in the order of the key, and the log's rows that ask to read them.

-- refresh_session: the settings that triggers bring along where a text depends on them
SELECT set_config('IntervalStyle', 'postgres', true), set_config('extra_float_digits', '1', true),
       set_config('bytea_output', 'hex', true);

-- refresh_count: how many rows are asked for
SELECT count(*) FROM /* table */usr AS /* row */usr WHERE /* chosen */(1 = 1);

-- refresh_keys: the keys of the next rows
SELECT /* key */'idu=1' FROM /* table */usr AS /* row */usr
WHERE /* chosen */(1 = 1) AND /* after */(1 = 1) AND /* upto */(1 = 1) ORDER BY /* columns */usr.idu LIMIT :limit;

-- refresh_bound: the key of one row so many further on, at which a range ends
SELECT /* key */'idu=1' FROM /* table */usr AS /* row */usr
WHERE /* chosen */(1 = 1) AND /* after */(1 = 1) AND /* upto */(1 = 1) ORDER BY /* columns */usr.idu LIMIT 1 OFFSET :skip;

-- refresh_after: condition: rows after one, of which the columns and the values are given; `tree` says it without rows
((/* columns */usr.idu) > (/* values */1));

-- refresh_upto: condition: rows that do not come after one
((/* columns */usr.idu) <= (/* values */1));

-- refresh_row: asks for rows of a table as they will be when the publisher comes to them; in a list, which is several times as quick
INSERT INTO /* log */event_log (/* table_key */table_key, /* status */status, /* event_type */event_type,
  /* event_time */event_time, /* perpetrator */perpetrator, /* table_name */table_name)
SELECT asked.key, :status, :kind, :time, :perpetrator, :called
FROM unnest(CAST(:keys AS text[])) WITH ORDINALITY AS asked (key, n) ORDER BY asked.n;

-- refresh_waiting: how many rows wait, as far as it matters
SELECT count(*) FROM (SELECT 1 FROM /* log */event_log WHERE /* status */status = 'N' LIMIT :limit) AS waiting;
