-- Reading a log in bulk; a table's second name comes without AS here.

-- row_range: the chosen rows of a row_range of numbers
SELECT entry./* record_id */record_id, entry./* status */status, entry./* event_type */event_type,
       TO_CHAR(CAST(entry./* event_time */event_time AS TIMESTAMP), 'YYYY-MM-DD HH24:MI:SS.FF6'),
       entry./* perpetrator */perpetrator, entry./* table_name */table_name,
       entry./* table_key */table_key, entry./* column_name */column_name,
       entry./* old_value */old_value, entry./* new_value */new_value/* transaction *//* context */
FROM /* log */event_log entry
WHERE entry./* record_id */record_id BETWEEN /* first */1 AND /* last */9 AND /* chosen */(1 = 1);

-- numbers_after: the numbers after a number, oldest first
SELECT * FROM (
    SELECT entry./* record_id */record_id FROM /* log */event_log entry
    WHERE entry./* record_id */record_id > /* first */0 ORDER BY 1
) WHERE ROWNUM <= /* limit */1000;
