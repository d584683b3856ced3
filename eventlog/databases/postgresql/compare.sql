-- Comparing tables: canonical texts of values and their hashes.

-- compare_hash: the hash of a text
('x' || encode(substr(sha256(convert_to(/* text */'1', getdatabaseencoding())), 1, 8), 'hex'))::bit(60)::bigint;

-- compare_bucket: in which of so many buckets a text is
(('x' || encode(substr(sha256(convert_to(/* text */'1', getdatabaseencoding())), 1, 8), 'hex'))::bit(60)::bigint
 % /* buckets */1);

-- canonical_string: a text with its length before it, so that two texts side by side are never taken for others
(length(/* value */fname)::text || ':'
 || CASE WHEN length(/* value */fname) > 1000
 THEN encode(sha256(convert_to(/* value */fname, getdatabaseencoding())), 'hex') ELSE /* value */fname END);

-- canonical_octet: bytes by their hash
encode(sha256(/* value */photo), 'hex');

-- canonical_state: a truth value as 1 or 0
/* value */active::integer::text;

-- canonical_number: an exact number without zeros at its end
trim_scale(/* value */share::numeric)::text;

-- canonical_float: a binary fraction with as many digits as it needs
replace(/* value */ratio::text, 'e+', 'e');

-- canonical_date: a day
/* value */born::text;

-- canonical_time: a time of day without zeros at its end
/* value */starts::text;

-- canonical_timestamp: date and time without zeros at their end
/* value */seen::text;

-- canonical_zoned: the same in UTC
(/* value */seen AT TIME ZONE 'UTC')::text;

-- compare_native: the hash of a text where both databases are PostgreSQL; it costs a third of the other.
-- All bytes count, whatever a column's collation says.
hashtextextended((/* text */'1') COLLATE "C", 0);

-- canonical_short: a text that is never long, with its length before it
(length(/* value */fname)::text || ':' || /* value */fname);

-- compare_quick: the hash of a row by hashes of its values, three quarters of the cost of hash_record_extended. That one is
-- the same for 1 and -1, and for two bigints of which one has the halves of the other swapped. The last hash mixes: else two rows
-- that swap values might have the same sum.
hashint4extended(0, /* parts */1);

-- quick_told: a value by a text, all of whose bytes count whatever its collation says
COALESCE(hashtextextended(/* value */'1' COLLATE "C", /* place */0), /* place */0);

-- quick_string: a text of any length
COALESCE(hashtextextended(/* value */fname COLLATE "C", /* place */0), /* place */0);

-- quick_int: a whole number, as the seed, of which every bit counts
COALESCE(hashint4extended(/* place */0, /* value */idu), /* place */0);

-- quick_number: an exact number; its own hash has no sign
COALESCE(hashtextextended(/* value */share::text COLLATE "C", /* place */0), /* place */0);

-- quick_state: a truth value
COALESCE(hashint4extended(/* place */0, /* value */active::integer), /* place */0);

-- quick_float: a binary fraction; the server's hash of zero is the seed, which stands for NULL
COALESCE(CASE WHEN /* value */ratio = 0 THEN hashint4extended(/* place */0, 0)
 ELSE hashfloat8extended(/* value */ratio, /* place */0) END, /* place */0);

-- quick_date: the number of a day; no finite one is the number that stands for an endless one
COALESCE(hashint4extended(/* place */0, CASE WHEN isfinite(/* value */born) THEN /* value */born - date '2000-01-01'
 WHEN /* value */born = 'infinity' THEN 2147483648 WHEN /* value */born = '-infinity' THEN -2147483649 END), /* place */0);

-- quick_timestamp: date and time; their own hash has half of the bits
COALESCE(hashtextextended(/* value */seen::text COLLATE "C", /* place */0), /* place */0);

-- quick_zoned: a moment, in the session's time zone, which is UTC
COALESCE(hashtextextended(/* value */seen::text COLLATE "C", /* place */0), /* place */0);
