-- Reading a log in bulk: every text as a text, whatever the column's type.

-- row_range: the chosen rows of a row_range of numbers
SELECT entry./* record_id */record_id, CAST(entry./* status */status AS CHAR), entry./* event_type */event_type,
       IF(MICROSECOND(entry./* event_time */event_time) = 0,
          CAST(CAST(entry./* event_time */event_time AS DATETIME) AS CHAR),
          CAST(entry./* event_time */event_time AS CHAR)),
       entry./* perpetrator */perpetrator, entry./* table_name */table_name,
       entry./* table_key */table_key, entry./* column_name */column_name,
       entry./* old_value */old_value, entry./* new_value */new_value/* transaction *//* context */
FROM /* log */event_log AS entry
WHERE entry./* record_id */record_id BETWEEN /* first */1 AND /* last */9 AND /* chosen */(1 = 1);
