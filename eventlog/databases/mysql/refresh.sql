-- The full load: keys of a table, a row_range at a time in the order of the key, and the log's rows that ask to read them.

-- refresh_session: what triggers' sql_mode has, because texts are written in it: a backslash is one
SET SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES');

-- refresh_after: condition: rows after one; comparing whole rows would not use the index
/* tree */(1 = 1);

-- refresh_upto: condition: rows that do not come after one
/* tree */(1 = 1);
