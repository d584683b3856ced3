-- Reading a log in bulk: every text as a text, whatever a column holds.

-- row_range: the chosen rows of a row_range of numbers
SELECT entry./* record_id */record_id, CAST(entry./* status */status AS text), entry./* event_type */event_type,
       CAST(entry./* event_time */event_time AS text),
       CAST(entry./* perpetrator */perpetrator AS text), CAST(entry./* table_name */table_name AS text),
       CAST(entry./* table_key */table_key AS text), CAST(entry./* column_name */column_name AS text),
       CAST(entry./* old_value */old_value AS text), CAST(entry./* new_value */new_value AS text)/* transaction *//* context */
FROM /* log */event_log AS entry
WHERE entry./* record_id */record_id BETWEEN /* first */1 AND /* last */9 AND /* chosen */(1 = 1);

-- chosen_tables: condition: rows of these tables
(CAST(entry./* table_name */table_name AS text) IN /* names */('usr'));

-- chosen_since: condition: rows from a time on, as texts are compared; those whose time is written in another way are left in
(CAST(entry./* event_time */event_time AS text) >= /* time */'2026-01-01'
 OR substr(CAST(entry./* event_time */event_time AS text), 5, 1) <> '-');

-- chosen_upto: condition: rows up to a time, as texts are compared; those whose time is written in another way are left in
(CAST(entry./* event_time */event_time AS text) <= /* time */'2026-01-02'
 OR substr(CAST(entry./* event_time */event_time AS text), 5, 1) <> '-');
