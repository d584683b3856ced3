-- What the database's own catalog tells of tables and triggers.

-- try_condition: whether a condition can be asked of a table
SELECT COUNT(*) FROM /* target */usr WHERE /* condition */(1 = 1) AND 1 = 0;

-- are_alike: whether the server takes two texts for one
SELECT CASE WHEN /* one */'a' = /* other */'b' THEN 1 ELSE 0 END;

-- newest_number: the number of the newest row of the log
SELECT MAX(/* record_id */record_id) FROM /* log */event_log;

-- history_stamp: what grows with each version of a table that somebody enters, or the database itself
SELECT COUNT(*) + (SELECT COUNT(*) FROM /* seen */event_log_seen) FROM /* history */event_log_schema;
