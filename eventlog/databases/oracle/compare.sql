-- Comparing tables: canonical texts of values and their hashes. No server has run it.

-- compare_bound: the value of the first key column so many rows further on, at which a range ends
SELECT idu FROM (
  SELECT ordered.idu, ROWNUM AS place FROM (
    SELECT /* first */usr.idu AS idu FROM /* table */usr /* row */usr WHERE /* within */(1 = 1) ORDER BY /* first */usr.idu
  ) ordered WHERE ROWNUM <= :skip + 1
) WHERE place = :skip + 1;

-- compare_hash: the hash of a text, of at most 4000 bytes
TO_NUMBER(SUBSTR(RAWTOHEX(STANDARD_HASH(/* text */'1', 'SHA256')), 1, 15), 'XXXXXXXXXXXXXXX');

-- compare_bucket: in which of so many buckets a text is
MOD(TO_NUMBER(SUBSTR(RAWTOHEX(STANDARD_HASH(/* text */'1', 'SHA256')), 1, 15), 'XXXXXXXXXXXXXXX'), /* buckets */1);

-- compare_last: the newest row of the log about each of these objects, and how many of their rows wait
SELECT /* table_key */table_key, max(/* record_id */record_id),
       sum(CASE WHEN /* status */status = 'N' THEN 1 ELSE 0 END)
FROM /* log */event_log WHERE /* table_name */table_name IN :called AND /* table_key */table_key IN :keys
GROUP BY /* table_key */table_key;

-- canonical_string: a text with its length before it; a long one by its hash, so that a row has room in 4000 bytes
(LENGTH(/* value */fname) || ':' || CASE WHEN LENGTH(/* value */fname) > 100
 THEN LOWER(RAWTOHEX(STANDARD_HASH(/* value */fname, 'SHA256'))) ELSE /* value */fname END);

-- canonical_octet: bytes by their hash
LOWER(RAWTOHEX(STANDARD_HASH(/* value */photo, 'SHA256')));

-- canonical_state: a truth value as 1 or 0
(CASE WHEN /* value */active THEN '1' WHEN NOT /* value */active THEN '0' END);

-- canonical_int: a whole number
TO_CHAR(/* value */idu, 'TM9');

-- canonical_number: an exact number without zeros at its end, and a digit before its point
REGEXP_REPLACE(TO_CHAR(/* value */salary, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.');

-- canonical_float: a binary fraction
REGEXP_REPLACE(TO_CHAR(/* value */ratio, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.');

-- canonical_date: a DATE has a time of day, which is left out at midnight
REPLACE(TO_CHAR(/* value */born, 'YYYY-MM-DD HH24:MI:SS'), ' 00:00:00');

-- canonical_time: there is no such type
/* value */starts;

-- canonical_timestamp: date and time without zeros at their end
RTRIM(RTRIM(TO_CHAR(/* value */seen, 'YYYY-MM-DD HH24:MI:SS.FF9'), '0'), '.');

-- canonical_zoned: the same in UTC
RTRIM(RTRIM(TO_CHAR(SYS_EXTRACT_UTC(/* value */seen), 'YYYY-MM-DD HH24:MI:SS.FF9'), '0'), '.');

-- compare_waiting: the rows of one table that wait, as many as are wanted, and their objects
SELECT /* record_id */record_id, /* table_key */table_key FROM /* log */event_log
WHERE /* status */status = 'N' AND /* table_name */table_name IN :called AND ROWNUM <= :limit;

-- compare_waiting_of: the rows of these objects that wait
SELECT /* record_id */record_id, /* table_key */table_key FROM /* log */event_log
WHERE /* status */status = 'N' AND /* table_name */table_name IN :called AND /* table_key */table_key IN :keys;

-- compare_remainder: the bucket of a whole number; a negative one has a remainder too
COALESCE(MOD(MOD(/* key */usr.idu, /* buckets */1) + /* buckets */1, /* buckets */1), 0);

-- canonical_short: a text with its length before it
(LENGTH(/* value */fname) || ':' || CASE WHEN LENGTH(/* value */fname) > 100
 THEN LOWER(RAWTOHEX(STANDARD_HASH(/* value */fname, 'SHA256'))) ELSE /* value */fname END);
