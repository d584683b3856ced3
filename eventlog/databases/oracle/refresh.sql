-- The full load: keys of a table, a row_range at a time in the order of the key, and the log's rows that ask to read them.

-- refresh_keys: the keys of the next rows
SELECT * FROM (
  SELECT /* key */'idu=1' AS table_key FROM /* table */usr /* row */usr
  WHERE /* chosen */(1 = 1) AND /* after */(1 = 1) AND /* upto */(1 = 1) ORDER BY /* columns */usr.idu
) WHERE ROWNUM <= :limit;

-- refresh_bound: the key of one row so many further on, at which a range ends
SELECT table_key FROM (
  SELECT ordered.table_key, ROWNUM AS place FROM (
    SELECT /* key */'idu=1' AS table_key FROM /* table */usr /* row */usr
    WHERE /* chosen */(1 = 1) AND /* after */(1 = 1) AND /* upto */(1 = 1) ORDER BY /* columns */usr.idu
  ) ordered WHERE ROWNUM <= :skip + 1
) WHERE place = :skip + 1;

-- refresh_after: condition: rows after one; rows cannot be compared as such
/* tree */(1 = 1);

-- refresh_upto: condition: rows that do not come after one
/* tree */(1 = 1);

-- refresh_waiting: how many rows wait, as far as it matters
SELECT count(*) FROM /* log */event_log WHERE /* status */status = 'N' AND ROWNUM <= :limit;
