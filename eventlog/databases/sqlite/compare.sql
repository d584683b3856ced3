-- Comparing tables. SQLite computes no hashes: the functions that begin with eventlog_ are registered by who compares.

-- compare_buckets: how many rows each bucket of a range has, and the sum of their hashes in two halves, which do not overflow
SELECT bucket, count(*), sum(hash >> 30), sum(hash & 1073741823) FROM (
  SELECT /* bucket */1 AS bucket, /* hash */1 AS hash FROM /* table */usr AS /* row */usr WHERE /* within */(1 = 1)
) AS hashed GROUP BY bucket;

-- compare_totals: how many rows a range has, and the sum of their hashes in two halves, which do not overflow
SELECT count(*), sum(hash >> 30), sum(hash & 1073741823) FROM (
  SELECT /* hash */1 AS hash FROM /* table */usr AS /* row */usr WHERE /* within */(1 = 1)
) AS hashed;

-- compare_hash: the hash of a text
eventlog_hash(/* text */'1');

-- compare_bucket: in which of so many buckets a text is
(eventlog_hash(/* text */'1') % /* buckets */1);

-- canonical_string: a text with its length before it
eventlog_text(/* value */fname);

-- canonical_octet: bytes by their hash
eventlog_canonical('blob', /* value */photo);

-- canonical_state: a truth value as 1 or 0
eventlog_canonical('boolean', /* value */active);

-- canonical_int: a whole number
eventlog_canonical('bigint', /* value */idu);

-- canonical_number: an exact number without zeros at its end
eventlog_canonical('numeric', /* value */share);

-- canonical_float: a binary fraction with as many digits as it needs
eventlog_canonical('double', /* value */ratio);

-- canonical_date: a day
eventlog_canonical('date', /* value */born);

-- canonical_time: a time of day without zeros at its end
eventlog_canonical('time', /* value */starts);

-- canonical_timestamp: date and time without zeros at their end
eventlog_canonical('timestamp', /* value */seen);

-- canonical_zoned: the same in UTC
eventlog_canonical('timestamptz', /* value */seen);

-- canonical_short: a text with its length before it; SQLite keeps to no length
eventlog_text(/* value */fname);
