-- Comparing tables: canonical texts of values, the same in every database; hashes of rows by the database; ranges of keys.
-- A hash is the first 60 bits of SHA-256, the only one that all have: MySQL has no MD5 since 9.6.
-- Rows are put into buckets by the hash of their key.

-- compare_buckets: how many rows each bucket of a range has, and the sum of their hashes, in one number or in two halves
SELECT bucket, count(*), 0, sum(hash) FROM (
  SELECT /* bucket */1 AS bucket, /* hash */1 AS hash FROM /* table */usr /* row */usr WHERE /* within */(1 = 1)
) hashed GROUP BY bucket;

-- compare_totals: how many rows a range has, and the sum of their hashes, in one number or in two halves
SELECT count(*), 0, sum(/* hash */1) FROM /* table */usr /* row */usr WHERE /* within */(1 = 1);

-- compare_rows: the key of each row of a range, and its hash
SELECT /* keys */usr.idu, /* hash */1 FROM /* table */usr /* row */usr WHERE /* within */(1 = 1);

-- compare_whole: the key and the values of each row
SELECT /* keys */usr.idu, /* values */usr.fname FROM /* table */usr /* row */usr WHERE /* within */(1 = 1);

-- compare_count: how many rows there are
SELECT count(*) FROM /* table */usr /* row */usr WHERE /* within */(1 = 1);

-- compare_bound: the value of the first key column so many rows further on, at which a range ends
SELECT /* first */usr.idu FROM /* table */usr AS /* row */usr
WHERE /* within */(1 = 1) ORDER BY /* first */usr.idu LIMIT 1 OFFSET :skip;

-- compare_last: the newest row of the log about each of these objects, and how many of their rows wait
SELECT CAST(/* table_key */table_key AS text), max(/* record_id */record_id),
       sum(CASE WHEN /* status */status = 'N' THEN 1 ELSE 0 END)
FROM /* log */event_log WHERE /* table_name */table_name IN :called AND /* table_key */table_key IN :keys
GROUP BY /* table_key */table_key;

-- compare_parked: which of these rows wait for which outputs
SELECT record_id, output FROM /* parked */event_log_parked WHERE record_id IN :records;

-- compare_told: what the log says of these rows
SELECT log.record_id, log.status, outcome.reason, outcome.note FROM (
  SELECT /* record_id */record_id AS record_id, /* status */status AS status
  FROM /* log */event_log WHERE /* record_id */record_id IN :records AND /* each_half */(1 = 1)
) log LEFT JOIN /* outcomes */event_log_outcome outcome ON outcome.record_id = log.record_id;

-- canonical_padded: a text without the blanks at its end, where they do not count
RTRIM(/* value */fname);

-- canonical_int: a whole number
CAST(/* value */idu AS text);

-- compare_waiting: the rows of one table that wait, as many as are wanted, and their objects
SELECT /* record_id */record_id, CAST(/* table_key */table_key AS text) FROM /* log */event_log
WHERE /* status */status = 'N' AND /* table_name */table_name IN :called LIMIT :limit;

-- compare_waiting_of: the rows of these objects that wait
SELECT /* record_id */record_id, CAST(/* table_key */table_key AS text) FROM /* log */event_log
WHERE /* status */status = 'N' AND /* table_name */table_name IN :called AND /* table_key */table_key IN :keys;

-- compare_remainder: the bucket of a whole number; a negative one has a remainder too
COALESCE((/* key */usr.idu % /* buckets */1 + /* buckets */1) % /* buckets */1, 0);

-- compare_top: the highest value of a column
SELECT max(/* column */usr.changed) FROM /* table */usr /* row */usr WHERE /* within */(1 = 1);

-- compare_since: the keys of rows whose value of a column is not below one
SELECT /* keys */usr.idu FROM /* table */usr /* row */usr
WHERE /* within */(1 = 1) AND /* column */usr.changed >= :since;

-- compare_columns: no row, but the names of the columns
SELECT * FROM /* table */usr /* row */usr WHERE 1 = 0;
