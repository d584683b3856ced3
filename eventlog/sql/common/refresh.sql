-- The full load: keys of a table, a row_range at a time in the order of the key, and the log's rows that ask to read them.

-- refresh_count: how many rows are asked for
SELECT count(*) FROM /* table */usr /* row */usr WHERE /* chosen */(1 = 1);

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

-- refresh_row: asks for a row of a table as it will be when the publisher comes to it
INSERT INTO /* log */event_log (/* table_key */table_key, /* status */status, /* event_type */event_type,
  /* event_time */event_time, /* perpetrator */perpetrator, /* table_name */table_name/* number_name */)
VALUES (:key, :status, :kind, :time, :perpetrator, :called/* number */);

-- refresh_waiting: how many rows wait, as far as it matters
SELECT count(*) FROM (SELECT 1 FROM /* log */event_log WHERE /* status */status = 'N' LIMIT :limit) AS waiting;
