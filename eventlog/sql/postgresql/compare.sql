-- Comparing tables: canonical texts of values and their hashes.

-- compare_snapshot: begins a transaction that sees one moment, and changes nothing
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;

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

-- compare_quick: the hash of a row by its values, a quarter of the cost of one by texts; from PostgreSQL 14 on.
-- What a type holds to be equal has one hash, as 1.5 and 1.50.
hash_record_extended(ROW(/* parts */1), 0);

-- quick_told: a value by its canonical text
/* value */'1' COLLATE "C";

-- quick_short: a text, all of whose bytes count whatever its collation says
/* value */fname COLLATE "C";

-- quick_int: a whole number
/* value */idu;

-- quick_number: an exact number
/* value */share;

-- quick_float: a binary fraction
/* value */ratio;

-- quick_date: a day
/* value */born;

-- quick_timestamp: date and time
/* value */seen;

-- quick_zoned: a moment
/* value */seen;
