-- Comparing tables: canonical texts of values and their hashes.

-- compare_hash: the hash of a text
CAST(CONV(LEFT(SHA2(/* text */'1', 256), 15), 16, 10) AS UNSIGNED);

-- compare_bucket: in which of so many buckets a text is
(CAST(CONV(LEFT(SHA2(/* text */'1', 256), 15), 16, 10) AS UNSIGNED) % /* buckets */1);

-- compare_last: the newest row of the log about each of these objects, and how many of their rows wait
SELECT /* table_key */table_key, max(/* record_id */record_id),
       sum(CASE WHEN /* status */status = 'N' THEN 1 ELSE 0 END)
FROM /* log */event_log WHERE /* table_name */table_name IN :called AND /* table_key */table_key IN :keys
GROUP BY /* table_key */table_key;

-- canonical_string: a text with its length before it, so that two texts side by side are never taken for others
CONCAT(CHAR_LENGTH(/* value */fname), ':',
  CASE WHEN CHAR_LENGTH(/* value */fname) > 1000 THEN SHA2(/* value */fname, 256) ELSE /* value */fname END);

-- canonical_octet: bytes by their hash
SHA2(/* value */photo, 256);

-- canonical_state: a truth value as 1 or 0, whether a number or a bit
CAST(/* value */active + 0 AS CHAR);

-- canonical_int: a whole number, also a ZEROFILL one without its zeros
CAST(/* value */idu + 0 AS CHAR);

-- canonical_number: an exact number without zeros at its end
(CASE WHEN LOCATE('.', /* value */share) > 0
 THEN TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST(/* value */share AS CHAR))) ELSE CAST(/* value */share AS CHAR) END);

-- canonical_float: a binary fraction as the server writes it, whole also where rows are sorted
CAST(/* value */ratio AS CHAR(260));

-- canonical_date: a day
CAST(/* value */born AS CHAR);

-- canonical_time: a time of day, or a span, without zeros at its end
TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM TIME_FORMAT(/* value */starts, '%H:%i:%s.%f')));

-- canonical_timestamp: date and time without zeros at their end
TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM DATE_FORMAT(/* value */seen, '%Y-%m-%d %H:%i:%s.%f')));

-- canonical_zoned: the same in UTC, which is the session's time zone
TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM DATE_FORMAT(/* value */seen, '%Y-%m-%d %H:%i:%s.%f')));

-- compare_waiting: the rows of one table that wait, as many as are wanted, and their objects
SELECT /* record_id */record_id, /* table_key */table_key FROM /* log */event_log
WHERE /* status */status = 'N' AND /* table_name */table_name IN :called LIMIT :limit;

-- compare_waiting_of: the rows of these objects that wait
SELECT /* record_id */record_id, /* table_key */table_key FROM /* log */event_log
WHERE /* status */status = 'N' AND /* table_name */table_name IN :called AND /* table_key */table_key IN :keys;

-- canonical_short: a text that is never long, with its length before it
CONCAT(CHAR_LENGTH(/* value */fname), ':', /* value */fname);

-- compare_quick: the hash of a row by the texts that the server has of its values, half the cost of one by canonical texts.
CAST(CONV(LEFT(SHA2(CONCAT_WS('|', /* parts */1), 256), 15), 16, 10) AS UNSIGNED);

-- quick_told: a value by its canonical text
COALESCE(/* value */'1', '~');

-- quick_short: the bytes of a text, for character sets do not mix, with their number before them; CONCAT_WS leaves out the length of NULL
LENGTH(/* value */fname), COALESCE(CAST(/* value */fname AS BINARY), '~');

-- quick_int: a whole number
COALESCE(/* value */idu, '~');

-- quick_number: an exact number, with all digits that its column has
COALESCE(/* value */share, '~');

-- quick_date: a day
COALESCE(/* value */born, '~');

-- quick_timestamp: date and time, with all digits that its column has
COALESCE(/* value */seen, '~');

-- quick_zoned: the same in UTC, which is the session's time zone
COALESCE(/* value */seen, '~');
